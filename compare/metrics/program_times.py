"""Each program of a profile: its times, what it communicates, by source line and part of the model, its operations."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from math import isnan, nan

import numpy as np
import pandas as pd

from compare.metrics.source_places import UNKNOWN, find_line, find_part
from compare.metrics.summary import by_column, step_times
from compare.metrics.work import weigh_events
from compare.report.grouping import group_by, largest_first, sum_by
from compare.report.model.timing import TraceTimes
from compare.report.model.trace import KindTotal, PlaceTimes, ProgramTimes, TraceOperation
from compare.timeline.arrays import Floats, Ints
from compare.timeline.errors import TimingError
from compare.timeline.programs import list_programs, select_program
from compare.timeline.timeline import COMMUNICATION, COMPUTE, COPY, OCCUPIED, Timeline, has_role
from compare.timeline.tracks.numbers import Number, to_number, to_ratio
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTracks, distinct_rows

MOST_PLACES = 50
MOST_OPERATIONS = 10
"""Of each kind of time."""
_STEM = re.compile(r"(?:\.\d+)+$")
_WORDS = ("role", "kind", "axes", "category", "moves", "hlo_op", "name", "source", "source_stack", "path")
"""Columns of events that tell operations apart; those from `category` on, some profiles don't have."""
_OF_EVENTS = {
    "time_ns": "duration_ns",
    "alone_ns": "alone_ns",
    "payload_bytes": "payload_bytes",
    "flops": "flops",
    "accessed_bytes": "accessed_bytes",
}
"""Amount -> its column of events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Amounts:
    """Of one device in one step, means over both; NaN where no execution shows it."""

    executions: float
    time_ns: float
    alone_ns: float
    payload_bytes: float
    flops: float
    accessed_bytes: float

    @classmethod
    def of(cls, leaves: "Sequence[_Leaf]") -> "_Amounts":
        """The sums of what is known."""
        sums = {}
        for field in fields(cls):
            known = [value for leaf in leaves if not isnan(value := getattr(leaf.amounts, field.name))]
            sums[field.name] = sum(known) if known else nan
        return cls(**sums)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaf:
    """A distinct operation."""

    role: str
    kind: str
    axes: str
    category: str
    moves: str
    operation: str
    line: str
    inner: str
    part: str
    amounts: _Amounts


def time_programs(
    timeline: Timeline, *, most_operations: int = MOST_OPERATIONS, most_places: int = MOST_PLACES
) -> tuple[ProgramTimes, ...]:
    """The programs that were executed, the one with the most time first; none where no execution is known.

    most_operations: of each kind of time.
    """
    total = float(timeline.executions["duration_ns"].sum()) if len(timeline.executions) else 0.0
    times = []
    for program in list_programs(timeline):
        try:
            tracks = DeviceTracks.of(select_program(timeline, program))
        except TimingError:  # executions of no length
            continue
        times.append(_time_program(tracks, program, total, most_operations, most_places))
    return tuple(times)


def list_longest(tracks: DeviceTracks) -> dict[str, TraceOperation]:
    """Role -> the operation, with its like, in which a step spends the most time of that kind."""
    longest: dict[str, TraceOperation] = {}
    for operation in _operations(_leaves(tracks), {}, 1):
        longest.setdefault(operation.role, operation)
    return longest


def _time_program(
    tracks: DeviceTracks, program: str, total_ns: float, most_operations: int, most_places: int
) -> ProgramTimes:
    timeline = tracks.timeline
    runs = timeline.executions
    devices = int(runs["device"].nunique())
    leaves = _leaves(tracks)
    per_execution = TraceTimes(
        **step_times(measure_times(tracks)), by_axes=by_column(tracks, "axes"), by_kind=by_column(tracks, "kind")
    )
    return ProgramTimes(
        program=program,
        executions=to_number(len(runs) / devices),
        devices=devices,
        total_ns=to_number(float(runs["duration_ns"].sum()) / devices),
        share=to_ratio(float(runs["duration_ns"].sum()), total_ns),
        per_execution=per_execution,
        communication=_count(timeline),
        lines=_places(leaves, lambda leaf: (leaf.line, leaf.inner), most_places),
        parts=_places(leaves, lambda leaf: (leaf.part, ""), most_places),
        operations=tuple(_operations(leaves, timeline.rates, most_operations)),
    )


def _count(timeline: Timeline) -> dict[str, KindTotal]:
    """Kind -> the communications of all devices and executions, the longest kind first."""
    events = timeline.events
    comms = events[has_role(events, (COMMUNICATION,))]
    first, codes = distinct_rows(comms, ["kind"])
    counts = np.bincount(codes, minlength=len(first))
    total, exposed = (_sum_known(comms[name], codes, len(first)) for name in ("duration_ns", "exposed_ns"))
    kinds = comms["kind"].iloc[first].tolist()
    return {
        str(kinds[row]): KindTotal(
            count=int(counts[row]), total_ns=to_number(total[row]), exposed_ns=to_number(np.nan_to_num(exposed[row]))
        )
        for row in np.argsort(-total, kind="stable").tolist()
    }


def _leaves(tracks: DeviceTracks) -> list[_Leaf]:
    """What takes time, each distinct operation once, the longest first."""
    events = tracks.timeline.events
    weights = weigh_events(tracks) / max(tracks.device_steps, 1)
    chosen = np.flatnonzero(
        has_role(events, (*OCCUPIED, COMMUNICATION)) & events["step"].ge(0).to_numpy() & (weights > 0)
    )
    keys = [name for name in _WORDS if name in events]
    shown = events[[*keys, *(name for name in _OF_EVENTS.values() if name in events)]].iloc[chosen]
    first, codes = distinct_rows(shown, keys)
    unknown = [np.nan] * len(first)
    amounts = {"executions": np.bincount(codes, weights=weights[chosen], minlength=len(first)).tolist()}
    for name, column in _OF_EVENTS.items():
        amounts[name] = (
            _sum_known(shown[column] * weights[chosen], codes, len(first)).tolist() if column in shown else unknown
        )
    words = {
        name: [str(word) for word in shown[name].array[first]] if name in keys else [""] * len(first) for name in _WORDS
    }
    leaves = []
    for row in range(len(first)):
        word = {name: values[row] for name, values in words.items()}
        line, inner = find_line(word.pop("source"), word.pop("source_stack"))
        path, name, instruction = (word.pop(of) for of in ("path", "name", "hlo_op"))
        leaves.append(
            _Leaf(
                **word,
                operation=instruction or name,
                line=line,
                inner=inner,
                part=find_part(path) if path else UNKNOWN,
                amounts=_Amounts(**{name: values[row] for name, values in amounts.items()}),
            )
        )
    return sorted(leaves, key=lambda leaf: -leaf.amounts.time_ns)


def _sum_known(values: "pd.Series[float]", codes: Ints, size: int) -> Floats:
    """The sums by code of what is not NaN; NaN where nothing is."""
    known = values.notna().to_numpy()
    sums = np.bincount(codes[known], weights=values.to_numpy(np.float64)[known], minlength=size)
    return np.where(np.bincount(codes[known], minlength=size) > 0, sums, np.nan)


def _places(leaves: Sequence[_Leaf], place: Callable[[_Leaf], tuple[str, str]], most: int) -> tuple[PlaceTimes, ...]:
    """The longest places, of a name and an inner one; none where the profile names none."""
    if all(place(leaf)[0] == UNKNOWN for leaf in leaves):
        return ()
    groups = group_by(leaves, lambda leaf: (*place(leaf), leaf.role, leaf.kind, leaf.axes))
    rows = sorted(((*key, _Amounts.of(group)) for key, group in groups.items()), key=lambda row: -row[-1].time_ns)
    # What is communicated is shown, however little time it takes.
    comms = [number for number, row in enumerate(rows) if row[2] == COMMUNICATION]
    chosen = sorted({*range(min(most, len(rows))), *comms[:most]})
    return tuple(
        PlaceTimes(
            place=name,
            inner=inner,
            role=role,
            kind=kind,
            axes=axes,
            executions=to_number(amounts.executions),
            time_ns=to_number(amounts.time_ns),
            exposed_ns=to_number(amounts.alone_ns if role == COMMUNICATION else amounts.time_ns),
            payload_bytes=to_number(amounts.payload_bytes) if role == COMMUNICATION else None,
        )
        for name, inner, role, kind, axes, amounts in (rows[number] for number in chosen)
    )


def stem_of(name: str) -> str:
    """`fusion` of `fusion.3` and `fusion.7.1`."""
    return _STEM.sub("", name)


@dataclass(frozen=True, slots=True)
class _Roofline:
    ns: Number = None
    bound: str = ""


def _operations(leaves: Sequence[_Leaf], rates: Mapping[str, float], most: int) -> list[TraceOperation]:
    """The longest of each kind of time; operations that differ in their number alone are one."""
    groups = group_by(
        leaves,
        lambda leaf: (
            *(leaf.role, stem_of(leaf.operation), leaf.category),
            *(leaf.kind, leaf.axes, leaf.moves, leaf.line, leaf.part),
        ),
    )
    rows = sorted(((group, _Amounts.of(group)) for group in groups.values()), key=lambda row: -row[1].time_ns)
    of_role = sum_by((leaf.role, leaf.amounts.time_ns) for leaf in leaves)
    return [
        _operation(group, amounts, rates)
        for role in largest_first(of_role)
        for group, amounts in [row for row in rows if row[0][0].role == role and row[1].time_ns > 0][:most]
    ]


def _operation(group: Sequence[_Leaf], amounts: _Amounts, rates: Mapping[str, float]) -> TraceOperation:
    longest = group[0]
    is_comm = longest.role == COMMUNICATION
    roofline = _bound(amounts, rates) if longest.role == COMPUTE else _Roofline()
    return TraceOperation(
        role=longest.role,
        name=longest.operation,
        instructions=len({leaf.operation for leaf in group}),
        category=longest.kind if is_comm else longest.category,
        moves=longest.axes if is_comm else longest.moves,
        source=longest.line,
        part=longest.part,
        executions=to_number(amounts.executions),
        payload_bytes=to_number(amounts.payload_bytes) if is_comm else None,
        time_ns=to_number(amounts.time_ns),
        exposed_ns=to_number(amounts.alone_ns if is_comm else amounts.time_ns),
        flops=to_number(amounts.flops),
        memory_bytes=to_number(amounts.accessed_bytes if longest.role != COPY else np.nan),
        roofline_ns=roofline.ns,
        bound=roofline.bound,
    )


def _bound(amounts: _Amounts, rates: Mapping[str, float]) -> _Roofline:
    """What FLOPs and bytes take at the device's own rates; an operation that shows neither (a kernel) has none."""
    flops, moved = np.nan_to_num(amounts.flops), np.nan_to_num(amounts.accessed_bytes)
    if not (flops or moved) or set(rates) != {"flops_per_s", "memory_bytes_per_s"}:
        return _Roofline()
    arithmetic, memory = 1e9 * flops / rates["flops_per_s"], 1e9 * moved / rates["memory_bytes_per_s"]
    return _Roofline(to_number(max(arithmetic, memory)), "arithmetic" if arithmetic > memory else "memory")
