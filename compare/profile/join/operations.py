"""Classify an operation of a profile: communication, compute, or a container of others.

Sources, in this order: its program; the HLO line in the profile; its category; its name.  A later source never
overrules an earlier one: a fusion named `broadcast_all-reduce` communicates only if its HLO does.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compare.hlo.collective import COLLECTIVE_KINDS
from compare.hlo.collectives.event_names import original_of
from compare.hlo.collectives.single_line import Line, read_line
from compare.hlo.devices.axes import Mesh
from compare.hlo.devices.groups import Groups
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import OP_NAME
from compare.hlo.text.metadata import scope_in
from compare.profile.join.async_pairing import BETWEEN, DONE, INSIDE, START, WHOLE
from compare.profile.join.carried_programs import WRAPPERS, ProfileProgram
from compare.profile.join.local_copies import local_copy_of

_NAMED = re.compile(rf"({'|'.join(COLLECTIVE_KINDS)})(-start|-done)?((?:\.[\w\-]+)*)")
_CATEGORY = re.compile(rf"({'|'.join(COLLECTIVE_KINDS)}|all-reduce-scatter)(-start|-done)?(?: fusion)?")
_TELLING = re.compile(
    rf"{'|'.join(COLLECTIVE_KINDS)}|async-collective|-(?:start|done|update)\(| (?:while|conditional|call|send|recv)\("
)
# Where a loop or a tuple is between, a done's operand is one of these, and only its name leads to its start.
_HANDS_ON = re.compile(r"get-tuple-element|param|tuple|bitcast|copy|opt-barrier")
CONTAINERS = ("while", "conditional", "call")
_ENCLOSING = re.compile(rf"(?:{'|'.join(CONTAINERS)})(?:\.[\w\-]+)*")
HALVES = {"whole": WHOLE, "start": START, "done": DONE, "inside": INSIDE, "between": BETWEEN}
_SUFFIX = {None: WHOLE, "-start": START, "-done": DONE}

UNKNOWN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What an operation is; `kind` is empty unless it communicates."""

    kind: str = ""
    half: int = WHOLE
    collective: str = ""
    scope: str = ""
    axes: str = ""
    payload_bytes: float = float("nan")
    group_size: float = float("nan")
    """Devices of its largest group; of a permute, and where unknown, NaN."""
    encloses: bool = False
    """A loop, call or branch around others."""
    waits: bool = False
    """The device only waits in it, for another of its cores."""
    copies: bool = False
    """The device starts a local copy in it, or waits for one."""
    moves: str = ""
    """Of a local copy, from which memory to which."""
    wraps: bool = False
    """A call of unknown content; with kind `?` it communicates only if another core shows a communication for it."""
    meets: str = ""
    """Of a send or receive known from its HLO line alone, the rendezvous that both ends share."""
    joined: bool = True
    """Whether its instruction is known."""
    foreign: bool = False
    """Its program is known, but has no such instruction."""


COMPUTES = Operation()


@dataclass(frozen=True, slots=True)
class ProfileFields:
    """The fields of a profile that describe an operation."""

    hlo_op: str
    text: str
    category: str
    tf_op: str


def identify_operation(signs: ProfileFields, program: ProfileProgram | None, mesh: Mesh) -> Operation:
    """Classify an operation by the best source available."""
    operation = _in_program(signs, program) if program is not None else None
    if operation is not None:
        return operation
    #   %slice-start.3 = (…) async-start(s8[9000]{0:T(1024)} %p), calls=%async_computation
    # By its line this would be a call of unknown content; its name tells that it copies.
    moves = local_copy_of(signs.hlo_op, signs.text, signs.category)
    if moves is not None:
        operation = Operation(copies=True, moves=moves)
    else:
        operation = _by_line(signs, mesh) if signs.text else _by_name(signs)
    return replace(operation, foreign=program is not None)


def _in_program(signs: ProfileFields, program: ProfileProgram) -> Operation | None:
    """By the instruction of this name, or the one that it was cloned from."""
    # An event may have the name of a clone of the program's instruction: `fusion.9.clone.1`, `twice.remat2`.
    name = original_of(signs.hlo_op, program.instructions)
    if name is None:
        return None
    if name in program.containers:
        return Operation(encloses=True)
    carrier = program.carriers.get(name)
    if carrier is None and name in program.copies:
        return Operation(copies=True, moves=program.copies[name])
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
        group_size=_group_size(row.kind, row.groups),
    )


def _by_line(signs: ProfileFields, mesh: Mesh) -> Operation:
    """By the line of HLO alone: its opcode, its groups, its operands."""
    if not _TELLING.search(signs.text):  # a quick test: most lines are fusions that compute
        return _by_category(signs) if " fusion(" in signs.text else COMPUTES
    try:
        line = read_line(signs.text)
    except HloError:
        return _by_name(signs)
    # `async-start` or `call-start` may hold a collective or a slice; what it calls is not on its line.
    wraps = bool(WRAPPERS.fullmatch(line.opcode))
    by_category = _by_category(signs) if line.kind == UNKNOWN or wraps or line.opcode == "fusion" else COMPUTES
    if not line.kind and not wraps:
        return by_category if by_category.kind else Operation(encloses=line.opcode in CONTAINERS)
    half = HALVES[line.part]
    op_name = OP_NAME.search(signs.text)
    return Operation(
        kind=by_category.kind or line.kind or UNKNOWN,
        half=half,
        collective=_begun_by(line) if half in (DONE, BETWEEN) and line.opcode != "recv" else line.name,
        scope=scope_in(signs.tf_op) or scope_in(op_name[1] if op_name else "") or UNKNOWN,
        axes=UNKNOWN if line.groups is None else _axes(line.kind, line.groups, mesh),
        payload_bytes=float("nan") if line.payload_bytes is None else line.payload_bytes,
        group_size=_group_size(
            line.kind, line.groups or ((tuple(range(mesh.num_devices)),) if line.groups == () else ())
        ),
        wraps=wraps,
        meets=line.meets,
        joined=line.kind in COLLECTIVE_KINDS and line.opcode != "fusion",
    )


def _group_size(kind: str, groups: Groups) -> float:
    return float(max(map(len, groups))) if groups and kind != "collective-permute" else float("nan")


def _begun_by(line: Line) -> str:
    """The start of a done: its operand, or, where that is a pass-through, the start with the done's name."""
    operand = line.operands[0] if line.operands and line.opcode != "fusion" else ""
    return line.name.replace("-done", "-start") if not operand or _HANDS_ON.match(operand) else operand


def _axes(kind: str, groups: Groups, mesh: Mesh) -> str:
    if kind == "collective-permute":
        return mesh.axes_of_pairs(groups)
    return mesh.axes_of_groups(groups or (tuple(range(mesh.num_devices)),))


def _by_category(signs: ProfileFields) -> Operation:
    """By its category alone, which gives only the kind."""
    match = _CATEGORY.fullmatch(signs.category.lower())
    if not match:
        return COMPUTES
    named = _NAMED.fullmatch(signs.hlo_op)
    kind = "reduce-scatter" if match[1] == "all-reduce-scatter" else match[1]
    half = match[2] or (named[2] if named else None)
    return _unjoined(signs, kind, half, f"{named[1]}{named[3]}" if named else signs.hlo_op)


def _by_name(signs: ProfileFields) -> Operation:
    """By its category; without one, by its name."""
    if signs.category:
        operation = _by_category(signs)
        return operation if operation.kind else Operation(encloses=signs.category.lower() in CONTAINERS)
    if named := _NAMED.fullmatch(signs.hlo_op):
        return _unjoined(signs, named[1], named[2], f"{named[1]}{named[3]}")
    return Operation(encloses=bool(_ENCLOSING.fullmatch(signs.hlo_op)))


def _unjoined(signs: ProfileFields, kind: str, half: str | None, collective: str) -> Operation:
    scope = scope_in(signs.tf_op) or UNKNOWN
    return Operation(kind=kind, half=_SUFFIX[half], collective=collective, scope=scope, axes=UNKNOWN, joined=False)


def add_start_facts(operations: Sequence[Operation], modules: Sequence[str]) -> list[Operation]:
    """Copy kind, axes and scope from each start to its done, and from each send to its receive.

    A done names its start, but no groups.  A transfer between slices is four operations, whose send and receive share a
    rendezvous.  modules: the program of each operation.
    """
    pairs = list(zip(modules, operations, strict=True))
    starts = {
        (module, operation.collective): operation
        for module, operation in pairs
        if operation.kind and operation.half == START
    }
    sends = {
        (module, operation.meets): operation
        for module, operation in pairs
        if operation.meets and operation.half == START
    }
    starts |= {
        (module, operation.collective): sends[module, operation.meets]
        for module, operation in pairs
        if (module, operation.meets) in sends
    }
    return [
        replace(starts.get((module, operation.collective), operation), half=operation.half)
        if operation.half in (DONE, BETWEEN)
        else operation
        for module, operation in pairs
    ]


def start_names(operations: Sequence[Operation], names: Sequence[str]) -> list[str]:
    """For each full operation the collective of the `-start` of its name, else its own.

    The line of asynchronous operations may omit the `-start` that a name has on the device's main line.
    """
    starts = {name for name, operation in zip(names, operations, strict=True) if operation.half == START}
    collectives = []
    for name, operation in zip(names, operations, strict=True):
        start = (
            name.replace(operation.kind, f"{operation.kind}-start", 1)
            if operation.kind and operation.half == WHOLE
            else name
        )
        collectives.append(start if start in starts else name)
    return collectives
