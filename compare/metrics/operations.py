"""The operations that take a step's time: docs/metrics.md, section 15.

On the main line of a device: what computes, waits for local copies, and communication while nothing computes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from compare.hlo.collectives.event_names import original_of
from compare.hlo.counts.partition_index import first_call_context
from compare.hlo.provenance.layout_passthrough import trace_sources
from compare.hlo.provenance.result_use import PRODUCTS
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.metadata import SourceMetadata, SourceNames
from compare.hlo.text.module import Module
from compare.hlo.text.shapes import arrays
from compare.metrics.work import UNKNOWN_SCOPE, Peaks, weigh_events
from compare.report.model.program import CollectiveRow
from compare.report.model.timing import Operation
from compare.timeline.arrays import Floats, Mask
from compare.timeline.timeline import COMMUNICATION, COMPUTE, COPY, OCCUPIED, has_role
from compare.timeline.tracks.numbers import to_number
from compare.timeline.tracks.tracks import DeviceTracks

MOST_OPERATIONS = 10
MOST_TENSORS = 4
"""Names of parameters in a row."""

ARITHMETIC, MEMORY, OTHER, COLLECTIVE = "arithmetic", "memory", "other", "collective"
"""What bounds an operation."""


@dataclass(frozen=True)
class ProgramText:
    """The program of a timeline, and what is known of its parameters."""

    module: Module
    parameters: Mapping[int, str] = field(default_factory=dict)
    """Names of parameters of ENTRY by number."""
    caches: frozenset[int] = frozenset()
    names: SourceNames | None = None

    @cached_property
    def instructions(self) -> Mapping[str, Instruction]:
        return {item.name: item for part in self.module.computations.values() for item in part}

    @cached_property
    def metadata(self) -> SourceMetadata:
        return SourceMetadata(self.module, self.names)

    def find(self, name: str) -> Instruction | None:
        """The instruction of this name, or the one that it was cloned from."""
        return self.instructions.get(original_of(name, self.instructions) or "")

    @cached_property
    def waits(self) -> frozenset[str]:
        """The ends of local copies: an event of one is a wait."""
        return frozenset(name for name, item in self.instructions.items() if item.opcode.endswith("-done"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Executions:
    """One instruction in a step of one device, mean over both."""

    name: str
    role: str
    scope: str
    executions: float
    time_ns: float
    matrix_flops: float
    memory_bytes: float
    payload_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """What instructions of one row have in common."""

    role: str
    opcode: str
    shape: str
    path: str | None
    scope: str
    source_line: str | None


def list_operations(
    tracks: DeviceTracks, text: ProgramText, *, rows: Sequence[CollectiveRow], reached: Peaks | None
) -> tuple[Operation, ...]:
    """The longest operations, alike instructions as one; nothing for a timeline without work.

    rows: the report's collectives.  reached: the rates of the schedule model; without them no bounds are known.
    """
    if "matrix_flops" not in tracks.timeline.events:
        return ()
    by_name = {row.name: row for row in rows}
    folded: dict[_Kind, list[_Executions]] = {}
    for one in (*_computed(tracks, text), *_communicated(tracks)):
        if one.time_ns > 0:
            folded.setdefault(_kind(one, text, by_name.get(one.name)), []).append(one)
    longest = sorted(folded.items(), key=lambda entry: -sum(one.time_ns for one in entry[1]))[:MOST_OPERATIONS]
    return tuple(_operation(kind, group, text, reached) for kind, group in longest)


def _computed(tracks: DeviceTracks, text: ProgramText) -> Iterator[_Executions]:
    """Of what computes, and of waits for copies, with the bytes that these move."""
    events = tracks.timeline.events
    everything = np.ones(len(events), np.bool_)
    moved_by = dict(_sums(tracks, everything, "hlo_op", ("memory_bytes",)))
    columns = ("duration_ns", "matrix_flops", "memory_bytes")
    scopes = _scopes(tracks)
    computed = _sums(tracks, has_role(events, OCCUPIED), "hlo_op", columns)
    for name, (executions, time_ns, flops, moved) in computed:
        item, role = text.find(name), COMPUTE
        if item is not None and name in text.waits:
            role, (executions, moved) = COPY, moved_by.get(item.operand(0).name, [executions, moved])
        yield _Executions(
            name=name,
            role=role,
            scope=scopes.get(name, ""),
            executions=executions,
            time_ns=time_ns,
            matrix_flops=flops,
            memory_bytes=moved,
        )


def _communicated(tracks: DeviceTracks) -> Iterator[_Executions]:
    """Of each collective the share of exposed time that is its own."""
    events = tracks.timeline.events
    chosen = has_role(events, (COMMUNICATION,))
    for name, (executions, time_ns, payload) in _sums(tracks, chosen, "collective", ("alone_ns", "payload_bytes")):
        yield _Executions(
            name=name,
            role=COMMUNICATION,
            scope="",
            executions=executions,
            time_ns=time_ns,
            matrix_flops=0.0,
            memory_bytes=0.0,
            payload_bytes=payload,
        )


def _sums(tracks: DeviceTracks, chosen: Mask, by: str, columns: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    """(value of `by`, executions, the columns' sums) in a step of one device, means over devices and steps."""
    events = tracks.timeline.events
    names = events[by].astype("category")
    weights = np.where(chosen & events["step"].ge(0).to_numpy(), weigh_events(tracks), 0.0)
    codes, size = names.cat.codes.to_numpy(), len(names.cat.categories)
    weights, codes = np.where(codes >= 0, weights, 0.0), np.maximum(codes, 0)
    amounts: list[Floats] = [weights]
    amounts += [
        np.where(weights > 0, np.nan_to_num(events[name].to_numpy(np.float64)), 0.0) * weights for name in columns
    ]
    totals = [np.bincount(codes, weights=part, minlength=size) / max(tracks.device_steps, 1) for part in amounts]
    for code in np.flatnonzero(totals[0] > 0).tolist():
        yield str(names.cat.categories[code]), [float(part[code]) for part in totals]


def _scopes(tracks: DeviceTracks) -> Mapping[str, str]:
    """Of each instruction that computes."""
    events = tracks.timeline.events
    computes = events[has_role(events, OCCUPIED)].drop_duplicates("hlo_op")
    return dict(zip(computes["hlo_op"].astype(str), computes["scope"].astype(str), strict=True))


def _kind(one: _Executions, text: ProgramText, row: CollectiveRow | None) -> _Kind:
    if one.role == COMMUNICATION:
        shape = row.shapes[0] if row and row.shapes else ""
        return _Kind(
            one.role,
            row.kind if row else "?",
            shape,
            None,
            row.scope if row else UNKNOWN_SCOPE,
            row.source_line if row else None,
        )
    item, scope = text.find(one.name), one.scope or UNKNOWN_SCOPE
    if item is None:
        return _Kind(one.role, one.name, "", None, scope, None)
    if one.role == COPY:
        item = item.operand(0)
    path = text.metadata.path(item)
    last = path.rpartition("/")[2] if path else None
    opcode = item.opcode.removesuffix("-start")
    return _Kind(one.role, opcode, _largest_shape(item), last, scope, text.metadata.source_line(item))


def _largest_shape(item: Instruction) -> str:
    """Of the arrays that it makes, like `bf16[32,1,8,1152,128]`."""
    made = arrays(item.shape)
    if not made:
        return ""
    largest = max(made, key=lambda array: array.num_bytes)
    return f"{largest.dtype}[{','.join(map(str, largest.dims))}]"


def _operation(kind: _Kind, group: Sequence[_Executions], text: ProgramText, reached: Peaks | None) -> Operation:
    longest = max(group, key=lambda one: one.time_ns)
    time_ns, flops, moved = (
        sum(getattr(one, name) for one in group) for name in ("time_ns", "matrix_flops", "memory_bytes")
    )
    is_comm = kind.role == COMMUNICATION
    arithmetic_ns = memory_ns = None
    if reached is not None and not is_comm:
        arithmetic_ns, memory_ns = 1e9 * flops / reached.flops_per_s, 1e9 * moved / reached.memory_bytes_per_s
    return Operation(
        role=kind.role,
        opcode=kind.opcode,
        shape=kind.shape,
        path=kind.path,
        scope=kind.scope,
        source_line=kind.source_line or (None if is_comm else _line_inside(longest.name, text)),
        name=longest.name,
        instructions=len(group),
        tensors=() if is_comm else tuple(_tensors([one.name for one in group], text)),
        executions=to_number(sum(one.executions for one in group)),
        time_ns=to_number(time_ns),
        matrix_flops=None if is_comm else to_number(flops),
        memory_bytes=None if is_comm else to_number(moved),
        payload_bytes=to_number(sum(one.payload_bytes for one in group)) if is_comm else None,
        arithmetic_ns=to_number(arithmetic_ns),
        memory_ns=to_number(memory_ns),
        bound=COLLECTIVE if is_comm else _bound(kind.role, time_ns, arithmetic_ns, memory_ns),
    )


def _bound(role: str, time_ns: float, arithmetic_ns: float | None, memory_ns: float | None) -> str | None:
    """The longer of the two bounds, if it is at least half of the time; else the rest of the compiler's estimate."""
    if arithmetic_ns is None or memory_ns is None:
        return None
    if role == COPY:
        return MEMORY
    longer = max(arithmetic_ns, memory_ns)
    if 2 * longer < time_ns:
        return OTHER
    return ARITHMETIC if longer == arithmetic_ns else MEMORY


def _line_inside(name: str, text: ProgramText) -> str | None:
    """Of a fusion without a line: that of its product, or of the last of its instructions that has one."""
    item = text.find(name)
    parts = list(item.callees[0]) if item is not None and item.opcode == "fusion" and item.callees else []
    parts.sort(key=lambda part: (part.opcode in PRODUCTS, part.index), reverse=True)
    return next((line for part in parts if (line := text.metadata.source_line(part))), None)


def _tensors(names: Iterable[str], text: ProgramText) -> Iterator[str]:
    """The parameters whose values the operations read, unchanged or in another layout, at most MOST_TENSORS."""
    seen: set[str] = set()
    for name in names:
        item = text.find(name)
        if item is None:
            continue
        for number in sorted(_parameters(item, text)):
            tensor = text.parameters.get(number, "")
            if tensor and tensor not in seen and len(seen) < MOST_TENSORS:
                seen.add(tensor)
                yield tensor


def _parameters(item: Instruction, text: ProgramText) -> frozenset[int]:
    if item.opcode.endswith("-done"):
        item = item.operand(0)
    frame = first_call_context(item.computation)
    try:
        return trace_sources([(frame, operand, ()) for operand in item.operands], caches=text.caches).parameters
    except HloError:
        return frozenset()
