"""What one operation of a profile is: communication, compute, or what encloses others; and how that is known.

In this order: by the program that it belongs to; by the line of HLO that the profile has for it; by its category; by
its name.  What an earlier source says no later one overrules: a fusion named `broadcast_all-reduce` communicates only
if its HLO does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compare.hlo.collective import COLLECTIVE_KINDS
from compare.hlo.collectives.event_names import clone_of
from compare.hlo.collectives.single_line import Line, read_line
from compare.hlo.devices.axes import Mesh
from compare.hlo.devices.groups import Groups
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import OP_NAME
from compare.hlo.text.metadata import scope_in
from compare.timing.join.async_pairing import BETWEEN, DONE, INSIDE, START, WHOLE
from compare.timing.join.programs import WRAPPERS, ProfileProgram

_NAMED = re.compile(rf"({'|'.join(COLLECTIVE_KINDS)})(-start|-done)?((?:\.[\w\-]+)*)")
_CATEGORY = re.compile(rf"({'|'.join(COLLECTIVE_KINDS)}|all-reduce-scatter)(-start|-done)?(?: fusion)?")
_TELLING = re.compile(
    rf"{'|'.join(COLLECTIVE_KINDS)}|async-collective|-(?:start|done|update)\(| (?:while|conditional|call|send|recv)\("
)
_HANDS_ON = re.compile(r"get-tuple-element|param|tuple|bitcast|copy|opt-barrier")
CONTAINERS = ("while", "conditional", "call")
_ENCLOSING = re.compile(rf"(?:{'|'.join(CONTAINERS)})(?:\.[\w\-]+)*")
HALVES = {"whole": WHOLE, "start": START, "done": DONE, "inside": INSIDE, "between": BETWEEN}
_SUFFIX = {None: WHOLE, "-start": START, "-done": DONE}

UNKNOWN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What an operation is; of what is no communication the kind is empty."""

    kind: str = ""
    half: int = WHOLE
    collective: str = ""
    scope: str = ""
    axes: str = ""
    payload_bytes: float = float("nan")
    encloses: bool = False
    """A loop, call or branch around others."""
    waits: bool = False
    """The device only waits in it, for what another of its cores does."""
    wraps: bool = False
    """It calls what is not known; where its kind is `?`, it communicates only if another core shows that it does."""
    meets: str = ""
    """Of a send or receive that only its line tells of, what it has in common with the other."""
    joined: bool = True
    """Whether an instruction is known for it."""
    foreign: bool = False
    """Its program is known, and has no such instruction."""


COMPUTES = Operation()


@dataclass(frozen=True, slots=True)
class ProfileFields:
    """All that a profile says of an operation."""

    hlo_op: str
    text: str
    category: str
    tf_op: str


def identify_operation(signs: ProfileFields, program: ProfileProgram | None, mesh: Mesh) -> Operation:
    """What it is."""
    found = _in_program(signs, program) if program is not None else None
    if found is not None:
        return found
    told = _by_line(signs, mesh) if signs.text else _by_name(signs)
    return replace(told, foreign=program is not None)


def _in_program(signs: ProfileFields, program: ProfileProgram) -> Operation | None:
    """By the instruction of this name, or the one that it is a clone of."""
    name = signs.hlo_op
    if name not in program.instructions:
        clone = clone_of(name, program.instructions)
        if clone is None:
            return None
        name = clone
    if name in program.containers:
        return Operation(encloses=True)
    carrier = program.carriers.get(name)
    if carrier is None or carrier.part == "beside":
        return Operation(waits=carrier is None and name in program.waits)
    row = carrier.row
    return Operation(
        kind=row.kind,
        half=HALVES[carrier.part],
        collective=row.name,
        scope=row.scope,
        axes=row.axes,
        payload_bytes=row.payload_bytes,
    )


def _by_line(signs: ProfileFields, mesh: Mesh) -> Operation:
    """By the line of HLO alone: its opcode, its groups, its operands."""
    if not _TELLING.search(signs.text):  # most lines are of fusions that compute, and quickly seen to be
        return _by_category(signs) if " fusion(" in signs.text else COMPUTES
    try:
        line = read_line(signs.text)
    except HloError:
        return _by_name(signs)
    wraps = bool(WRAPPERS.fullmatch(line.opcode))
    told = _by_category(signs) if line.kind == UNKNOWN or wraps or line.opcode == "fusion" else COMPUTES
    if not line.kind and not wraps:
        return told if told.kind else Operation(encloses=line.opcode in CONTAINERS)
    half = HALVES[line.part]
    op_name = OP_NAME.search(signs.text)
    return Operation(
        kind=told.kind or line.kind or UNKNOWN,
        half=half,
        collective=_begun_by(line) if half in (DONE, BETWEEN) and line.opcode != "recv" else line.name,
        scope=scope_in(signs.tf_op) or scope_in(op_name[1] if op_name else "") or UNKNOWN,
        axes=UNKNOWN if line.groups is None else _axes(line.kind, line.groups, mesh),
        payload_bytes=float("nan") if line.payload_bytes is None else line.payload_bytes,
        wraps=wraps,
        meets=line.meets,
        joined=line.kind in COLLECTIVE_KINDS and line.opcode != "fusion",
    )


def _begun_by(line: Line) -> str:
    """The start of a done: its operand, or where that only hands on what the start made, the one named alike."""
    made = line.operands[0] if line.operands and line.opcode != "fusion" else ""
    return line.name.replace("-done", "-start") if not made or _HANDS_ON.match(made) else made


def _axes(kind: str, groups: Groups, mesh: Mesh) -> str:
    if kind == "collective-permute":
        return mesh.axes_of_pairs(groups)
    return mesh.axes_of_groups(groups or (tuple(range(mesh.num_devices)),))


def _by_category(signs: ProfileFields) -> Operation:
    """What kind it is, and no more."""
    match = _CATEGORY.fullmatch(signs.category.lower())
    if not match:
        return COMPUTES
    named = _NAMED.fullmatch(signs.hlo_op)
    kind = "reduce-scatter" if match[1] == "all-reduce-scatter" else match[1]
    half = match[2] or (named[2] if named else None)
    return _unjoined(signs, kind, half, f"{named[1]}{named[3]}" if named else signs.hlo_op)


def _by_name(signs: ProfileFields) -> Operation:
    """By its category; where there is none by its name."""
    if signs.category:
        told = _by_category(signs)
        return told if told.kind else Operation(encloses=signs.category.lower() in CONTAINERS)
    if named := _NAMED.fullmatch(signs.hlo_op):
        return _unjoined(signs, named[1], named[2], f"{named[1]}{named[3]}")
    return Operation(encloses=bool(_ENCLOSING.fullmatch(signs.hlo_op)))


def _unjoined(signs: ProfileFields, kind: str, half: str | None, collective: str) -> Operation:
    scope = scope_in(signs.tf_op) or UNKNOWN
    return Operation(kind=kind, half=_SUFFIX[half], collective=collective, scope=scope, axes=UNKNOWN, joined=False)


def add_start_facts(operations: Sequence[Operation], modules: Sequence[str]) -> list[Operation]:
    """Give each done, and each receive, the kind, axes and scope that the line of its start, or send, says.

    The done of a communication names its start, and no groups.  Between slices it is four operations: the send and the
    receive have a rendezvous in common.  modules: the program of each operation.
    """
    places = list(zip(modules, operations, strict=True))
    begun = {(module, one.collective): one for module, one in places if one.kind and one.half == START}
    sends = {(module, one.meets): one for module, one in places if one.meets and one.half == START}
    begun |= {
        (module, one.collective): sends[module, one.meets] for module, one in places if (module, one.meets) in sends
    }
    return [
        replace(begun.get((module, one.collective), one), half=one.half) if one.half in (DONE, BETWEEN) else one
        for module, one in places
    ]


def start_names(operations: Sequence[Operation], names: Sequence[str]) -> list[str]:
    """For each whole operation the collective of the `-start` that is named like it, else its own.

    On the line of asynchronous operations a communication may lack the `-start` that it has on the device's own line.
    """
    starts = {name for name, one in zip(names, operations, strict=True) if one.half == START}
    found = []
    for name, one in zip(names, operations, strict=True):
        start = name.replace(one.kind, f"{one.kind}-start", 1) if one.kind and one.half == WHOLE else name
        found.append(start if start in starts else name)
    return found
