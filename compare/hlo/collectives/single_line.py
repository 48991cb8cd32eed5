"""Read a single line of HLO, as TPU profiles carry it for each operation, without its program.

Such a line may be cut, may leave out the shapes of the operands, and does not show the computations that it calls.
"""

import re
from dataclasses import dataclass

from compare.hlo.collective import COLLECTIVE_KINDS
from compare.hlo.devices.groups import Groups, ids_in
from compare.hlo.emission import megascale
from compare.hlo.emission.payload import carried_arrays, window_bytes
from compare.hlo.text.attributes import names, split_top
from compare.hlo.text.computation_spans import short
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.module import read
from compare.hlo.text.shapes import Array, arrays

UNKNOWN = "?"
_ENDS = {"start": "start", "done": "done", "update": "between"}
_TRANSFERS = {"send": "start", "recv": "between", "send-done": "between", "recv-done": "done"}
_WRAPPED = ("async", "call", "fusion", "custom-call")
_NAMED = re.compile(rf"({'|'.join(COLLECTIVE_KINDS)})(?![a-z])")
_CHAIN = re.compile(r"async-collective-(start|done)\b")
_WITHOUT_OPERANDS = ("parameter", "constant", "iota")
_UNTURNED = re.compile(r"\[[\d,]+\]<=\[\d+,[\d,]+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A collective, as far as one line of HLO describes it."""

    name: str
    opcode: str
    kind: str
    """Empty where the line is no collective; `?` for a collective of unknown kind."""
    part: str
    """`whole`, `start`, `between` or `done`, as in `event_names.EventRole`."""
    payload_bytes: int | None
    """Bytes, by the kind's rule; None where the line does not show them."""
    groups: Groups | None
    """Device groups; of a permute its pairs; the empty tuple is all devices; None where unknown."""
    operands: tuple[str, ...]
    meets: str
    """Rendezvous name that a send shares with its receive; empty for other instructions."""


@dataclass(frozen=True, slots=True)
class _Operand:
    name: str
    shape: str
    """Empty where the line leaves it out."""


def read_line(text: str) -> Line:
    """Read `%all-reduce.1 = bf16[8,128]{1,0} all-reduce(bf16[8,128]{1,0} %fusion.1), replica_groups={{0,1}}, …`.

    `HloError` where the text has no name, result and opcode.
    """
    text = " ".join(text.split())
    item = _instruction(text)
    operands = _operands(item)
    kind, part = _kind_and_part(item)
    groups = _groups(item, kind) if kind else None
    try:
        payload = _payload(item, operands, kind, groups) if kind in COLLECTIVE_KINDS else None
    except HloError:
        payload = None
    operand_names = tuple(operand.name for operand in operands or ())
    return Line(
        name=item.name,
        opcode=item.opcode,
        kind=kind,
        part=part,
        payload_bytes=payload,
        groups=groups,
        operands=operand_names,
        meets=_meets(item),
    )


def _instruction(text: str, parameters: tuple[str, ...] = ()) -> Instruction:
    """The instruction, parsed in a program of this line and parameters for its operands."""
    if " = " not in text:
        raise HloError(f"not a line of HLO: {short(text)!r}; one looks like 'name = f32[8] add(x, y)'")
    entry = read("\n".join(("HloModule line", "ENTRY line {", *parameters, text, "}"))).entry
    try:
        return entry.at(entry.line_starts[-1])
    except HloError:
        raise HloError(f"not a line of HLO: {short(text)!r}; its result and opcode cannot be read") from None


def _operands(item: Instruction) -> list[_Operand] | None:
    """The operands with names and shapes; None where the line is truncated among them."""
    if item.opcode in _WITHOUT_OPERANDS:
        return []
    try:
        parts = split_top(item.arguments)
    except HloError:
        return None
    words = (part.rpartition(" ") for part in parts)
    return [_Operand(name.lstrip("%"), shape.strip()) for shape, _, name in words]


def _kind_and_part(item: Instruction) -> tuple[str, str]:
    opcode = item.opcode
    if opcode in _TRANSFERS:
        return _transfer(item), _TRANSFERS[opcode]
    stem, _, end = opcode.rpartition("-")
    if opcode in COLLECTIVE_KINDS or end not in _ENDS:
        stem, part = opcode, "whole"
    else:
        part = _ENDS[end]
    if stem in COLLECTIVE_KINDS:
        return stem, part
    # `all-gather.11.cloned.1.call-start = (…) call-start(…), …, to_apply=%called_computation.1`: only the name tells.
    if stem in _WRAPPED and part != "whole":
        named = _NAMED.match(item.name)  # XLA names the wrapper after what it wraps, in another computation.
        return named[1] if named else "", part
    if opcode == "fusion":
        return _fused(item)
    return "", part


def _transfer(item: Instruction) -> str:
    """The kind of a send, receive or done; empty for a host transfer."""
    #   send(f32[8] %x, token[] %t), channel_id=1, is_host_transfer=true
    # offloads to the host; with _xla_host_transfer_handler_name="xla_megascale_runtime" it goes to another slice.
    if "megascale" not in item.text and "is_host_transfer=true" in item.text:
        return ""
    try:
        return megascale.kind_of(item)
    except HloError:
        return UNKNOWN


def _meets(item: Instruction) -> str:
    try:
        return megascale.rendezvous(item) if item.opcode in ("send", "recv") else ""
    except HloError:
        return ""


def _fused(item: Instruction) -> tuple[str, str]:
    """Kind and part of a fusion with a collective, from the names that the TPU compiler gives it."""
    # A line does not show what a fusion calls, but libtpu names both ends of a chain, and calls a scatter by its name:
    #   %async-collective-start.1 = f32[1000]{0} fusion(f32[1000]{0} %p), kind=kCustom
    #   %fusion.8 = f32[1000]{0} fusion(f32[1000]{0} %p), kind=kCustom, calls=%all-reduce-scatter.2
    if match := _CHAIN.match(item.name):
        return UNKNOWN, match[1]
    try:
        called = names(item.attributes.get("calls", ""))
    except HloError:
        called = []
    scatters = any(name.startswith("all-reduce-scatter") for name in (item.name, *called))
    return ("reduce-scatter" if scatters else ""), "whole"


def _groups(item: Instruction, kind: str) -> Groups | None:
    key = "source_target_pairs" if kind == "collective-permute" else "replica_groups"
    try:
        written = item.attributes.get(key, "")
        # At the very end of a line that is cut, the turn of `[4,2]<=[2,4]T(1,0)` may be what is missing.
        if not written or (_UNTURNED.fullmatch(written) and item.text.endswith(written)):
            return None
        return ids_in(item, key)
    except HloError:
        return None


def _payload(item: Instruction, operands: list[_Operand] | None, kind: str, groups: Groups | None) -> int | None:
    """Payload bytes: from the operands where the line has their shapes, else from the result."""
    if item.opcode == "fusion" or (item.opcode == "send" and kind == "all-gather"):
        return None  # The fusion's operands are not the collective's; the gather's result is its receive's.
    if operands and all(operand.shape for operand in operands):
        return _by_operands(item, operands, kind)
    result_bytes = _by_result(item, kind, is_cut=operands is None)
    size = {len(group) for group in groups or ()}
    if result_bytes is None or kind != "reduce-scatter" or item.opcode.endswith("-start"):
        return result_bytes
    return result_bytes * size.pop() if len(size) == 1 else None


def _by_operands(item: Instruction, operands: list[_Operand], kind: str) -> int | None:
    shapes = dict.fromkeys(f"%{operand.name} = {operand.shape} parameter(0)" for operand in operands)
    instruction = _instruction(item.text, tuple(shapes))
    if not item.opcode.endswith(("-done", "-update")):
        return sum(map(sum, window_bytes(instruction, carried_arrays(instruction, kind, None))))
    start = instruction.operand(0).shape
    if kind != "reduce-scatter":
        return _by_result(item, kind, is_cut=False)
    return None if isinstance(start, Array) or not start else sum(array.num_bytes for array in arrays(start[0]))


def _by_result(item: Instruction, kind: str, *, is_cut: bool) -> int | None:
    """Payload bytes from the result shape; None for a kind whose operands differ from its result in size.

    is_cut: the line ends among its operands, so that it has no attributes.
    """
    shape = item.shape
    if kind == "ragged-all-to-all" or item.opcode in _TRANSFERS or item.opcode.endswith("-update"):
        return None
    if item.opcode.endswith("-start") and item.opcode != "all-reduce-start":
        if isinstance(shape, Array) or len(shape) < 2:
            return None
        shape = shape[1 if kind == "all-gather" else 0]
    parts = arrays(shape)
    return sum(array.num_bytes for array in parts) if is_cut else sum(map(sum, window_bytes(item, parts)))
