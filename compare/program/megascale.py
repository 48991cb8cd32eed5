"""Collectives between slices: a send and a receive that the megascale runtime turns into one collective.

The attributes of the pair say it all: `_xla_megascale_transfer_type`, `_xla_megascale_target`.
"""

import re
from collections.abc import Iterable

from compare.program.attributes import read_map
from compare.program.devices import Program
from compare.program.errors import MOST_DEVICES
from compare.program.groups import Groups, read_pairs
from compare.program.instruction import Instruction

KINDS = {
    "ONE_TO_ONE": "collective-permute", "ALL_REDUCE": "all-reduce", "ALL_GATHER": "all-gather",
    "REDUCE_SCATTER": "reduce-scatter", "ALL_TO_ALL": "all-to-all", "BROADCAST": "collective-broadcast",
}  # fmt: skip
_SLICE_UNIT = 100_000
_PRODUCT = re.compile(r"\{([\d,\s]+)\}x\{([\d,:\s]+)\}")
_LIST = re.compile(r"\{(\d+(?:(?:,|->)\d+)*)\}")
_PAIRS = "_xla_send_recv_source_target_pairs"


def is_wire(item: Instruction) -> bool:
    """Whether a send or receive moves data between devices: not one to the host."""
    marks = ("_xla_megascale_transfer_type", _PAIRS)
    return any(mark in item.text for mark in marks) or "is_host_transfer=true" not in item.text


def kind_of(item: Instruction) -> str:
    attributes = _attributes(item)
    if _PAIRS in attributes:
        return "collective-permute"
    word = attributes.get("_xla_megascale_transfer_type", "")
    if word not in KINDS:
        raise item.error(f"unknown megascale transfer type {word!r}; known are {', '.join(KINDS)}")
    return KINDS[word]


def is_megascale(item: Instruction) -> bool:
    return item.opcode in ("send", "recv") and "_xla_megascale_transfer_type" in item.text


def rendezvous(item: Instruction) -> str:
    """What a send and its receive have in common."""
    attributes = _attributes(item)
    return attributes.get("_xla_host_transfer_rendezvous") or attributes.get(_PAIRS) or ""


def pairs(items: Iterable[Instruction]) -> dict[Instruction, Instruction]:
    """The receive of every send of a wire, in the order in which they stand."""
    waiting: dict[tuple[str, str], list[Instruction]] = {}
    wires = [item for item in items if item.opcode in ("send", "recv") and is_wire(item)]
    for item in wires:
        if item.opcode == "recv":
            waiting.setdefault((item.computation.name, rendezvous(item)), []).append(item)
    found: dict[Instruction, Instruction] = {}
    for item in wires:
        if item.opcode == "send":
            receives = waiting.get((item.computation.name, rendezvous(item)))
            if not receives:
                raise item.error("a send whose receive is not in its computation")
            found[item] = receives.pop(0)
    for left in waiting.values():
        if left:
            raise left[0].error("a receive whose send is not in its computation")
    return found


def groups_of(item: Instruction, program: Program) -> Groups:
    """Its groups, of a permute its pairs, as ids of devices of the whole mesh."""
    attributes = _attributes(item)
    if _PAIRS in attributes:
        return program.everywhere(read_pairs(attributes[_PAIRS]))
    text = attributes.get("_xla_megascale_target", "")
    if found := _PRODUCT.fullmatch(text):
        slices, places = _range(found[1], item), _range(found[2], item)
        return tuple(tuple(_device(one, place, item, program) for one in slices) for place in places)
    rows = _LIST.findall(text)
    if not rows or "{" + ",".join("{" + row + "}" for row in rows) + "}" != text.replace(" ", ""):
        raise item.error(f"unknown spelling of a megascale target: {text!r}")
    ids = [[int(word) for word in re.split(",|->", row)] for row in rows]
    return tuple(tuple(_device(one // _SLICE_UNIT, one % _SLICE_UNIT, item, program) for one in row) for row in ids)


def _attributes(item: Instruction) -> dict[str, str]:
    return read_map(item.attributes.get("frontend_attributes", "{}"))


def _range(text: str, item: Instruction) -> list[int]:
    """`0:3,7` is 0, 1, 2, 3, 7."""
    numbers: list[int] = []
    for part in text.split(","):
        low, _, high = part.strip().partition(":")
        first, last = int(low or 0), int(high or low or 0)
        if last > MOST_DEVICES:
            raise item.error(f"its target names place {last}, and {MOST_DEVICES} devices are the most")
        numbers += range(first, last + 1)
    return numbers


def _device(from_one: int, place: int, item: Instruction, program: Program) -> int:
    """Slices count from 1, places from 0."""
    if not 1 <= from_one <= program.slices or place >= program.in_slice:
        raise item.error(
            f"its target names place {place} of slice {from_one}; "
            f"the axes make {program.slices} slices of {program.in_slice} devices"
        )
    return (from_one - 1) * program.in_slice + place


def slices_named(item: Instruction) -> int:
    """The largest slice that its target names; 1 for what is no megascale transfer."""
    if not is_megascale(item):
        return 1
    text = _attributes(item).get("_xla_megascale_target", "")
    if found := _PRODUCT.fullmatch(text):
        return max(_range(found[1], item))
    return max((int(number) // _SLICE_UNIT for number in re.findall(r"\d+", text)), default=1)
