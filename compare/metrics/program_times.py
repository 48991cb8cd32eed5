"""Each program of a profile: its times, what it communicates, by source line and part of the model, its operations."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.metrics.source_places import UNKNOWN, find_line, find_part
from compare.metrics.summary import by_column, step_times
from compare.metrics.work import weigh_events
from compare.report.model.timing import TraceTimes
from compare.report.model.trace import KindTotal, PlaceTimes, ProgramTimes, TraceOperation
from compare.timeline.errors import TimingError
from compare.timeline.programs import list_programs, select_program
from compare.timeline.timeline import COMMUNICATION, COMPUTE, COPY, OCCUPIED, Timeline
from compare.timeline.tracks.numbers import Number, to_number, to_ratio
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTracks

MOST_PLACES = 50
MOST_OPERATIONS = 10
"""Of each kind of time."""
_AMOUNTS = ("executions", "time_ns", "alone_ns", "payload_bytes", "flops", "accessed_bytes")
_STEM = re.compile(r"(?:\.\d+)+$")


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
        lines=_places(leaves, ["line", "inner"], most_places),
        parts=_places(leaves, ["part"], most_places),
        operations=tuple(_operations(leaves, timeline.rates, most_operations)),
    )


def _count(timeline: Timeline) -> dict[str, KindTotal]:
    """Kind -> the communications of all devices and executions, the longest kind first."""
    events = timeline.events
    comms = events[events["role"].eq(COMMUNICATION)]
    sums = comms.groupby(comms["kind"].astype(str)).agg(
        count=("kind", "size"), total=("duration_ns", "sum"), exposed=("exposed_ns", "sum")
    )
    sums = sums.sort_values("total", ascending=False, kind="stable")
    return {
        str(kind): KindTotal(count=int(count), total_ns=to_number(total), exposed_ns=to_number(exposed))
        for kind, count, total, exposed in sums.itertuples()
    }


def _leaves(tracks: DeviceTracks) -> pd.DataFrame:
    """What takes time, a row for each distinct operation; _AMOUNTS are of one device in one step, means over both.

    flops and accessed_bytes are NaN where no execution shows them.
    """
    events = tracks.timeline.events
    weights = weigh_events(tracks) / max(tracks.device_steps, 1)
    chosen = (
        events["role"].isin((*OCCUPIED, COMMUNICATION)).to_numpy() & events["step"].ge(0).to_numpy() & (weights > 0)
    )
    leaves = events[chosen]
    weights = weights[chosen]
    keys = ["role", "hlo_op", "name", "kind", "axes"]
    keys += [name for name in ("category", "moves", "source", "source_stack", "path") if name in leaves]
    amounts = {"executions": np.ones(len(leaves)), "time_ns": leaves["duration_ns"].to_numpy(np.float64)}
    amounts |= {
        name: leaves[name].to_numpy(np.float64) if name in leaves else np.full(len(leaves), np.nan)
        for name in _AMOUNTS[2:]
    }
    table = leaves[keys].assign(**{name: values * weights for name, values in amounts.items()})
    grouped = table.groupby(keys, observed=True, sort=False, dropna=False)
    sums = grouped[list(_AMOUNTS)].sum(min_count=1).reset_index().astype(dict.fromkeys(keys, str))
    for name in ("category", "moves", "source", "source_stack", "path"):
        if name not in sums:
            sums[name] = ""
    lines = [find_line(*pair) for pair in zip(sums["source"], sums["source_stack"], strict=True)]
    return sums.assign(
        line=[line for line, _ in lines],
        inner=[inner for _, inner in lines],
        part=[find_part(path) if path else UNKNOWN for path in sums["path"]],
        operation=sums["hlo_op"].where(sums["hlo_op"].ne(""), sums["name"]),
    )


def _places(leaves: pd.DataFrame, by: Sequence[str], most: int) -> tuple[PlaceTimes, ...]:
    """The longest places; none where the profile names none."""
    if leaves.empty or leaves[by[0]].eq(UNKNOWN).all():
        return ()
    rows = leaves.groupby([*by, "role", "kind", "axes"], sort=False)[list(_AMOUNTS)].sum(min_count=1).reset_index()
    rows = rows.sort_values("time_ns", ascending=False, kind="stable")
    comms = rows[rows["role"].eq(COMMUNICATION)]
    # What is communicated is shown, however little time it takes.
    chosen = rows[rows.index.isin({*rows.index[:most], *comms.index[:most]})]
    return tuple(
        PlaceTimes(
            place=row[by[0]],
            inner=row.get("inner", ""),
            role=row["role"],
            kind=row["kind"],
            axes=row["axes"],
            executions=to_number(row["executions"]),
            time_ns=to_number(row["time_ns"]),
            exposed_ns=to_number(row["alone_ns"] if row["role"] == COMMUNICATION else row["time_ns"]),
            payload_bytes=to_number(row["payload_bytes"]) if row["role"] == COMMUNICATION else None,
        )
        for row in chosen.to_dict("records")
    )


def stem_of(name: str) -> str:
    """`fusion` of `fusion.3` and `fusion.7.1`."""
    return _STEM.sub("", name)


@dataclass(frozen=True, slots=True)
class _Roofline:
    ns: Number = None
    bound: str = ""


def _operations(leaves: pd.DataFrame, rates: Mapping[str, float], most: int) -> list[TraceOperation]:
    """The longest of each kind of time; operations that differ in their number alone are one."""
    if leaves.empty:
        return []
    leaves = leaves.assign(stem=[stem_of(name) for name in leaves["operation"]])
    keys = ["role", "stem", "category", "kind", "axes", "moves", "line", "part"]
    leaves = leaves.sort_values("time_ns", ascending=False, kind="stable")
    grouped = leaves.groupby(keys, sort=False)
    sums = (
        grouped[list(_AMOUNTS)]
        .sum(min_count=1)
        .assign(operation=grouped["operation"].first(), instructions=grouped["operation"].nunique())
    )
    rows = sums.reset_index().sort_values("time_ns", ascending=False, kind="stable").to_dict("records")
    of_role = leaves.groupby("role")["time_ns"].sum().sort_values(ascending=False, kind="stable")
    return [
        _operation(row, rates)
        for role in of_role.index
        for row in [row for row in rows if row["role"] == role and row["time_ns"] > 0][:most]
    ]


def _operation(row: Mapping[Hashable, object], rates: Mapping[str, float]) -> TraceOperation:
    amounts = {name: float(str(row[name])) for name in _AMOUNTS}
    words = {
        name: str(row[name]) for name in ("role", "operation", "category", "kind", "axes", "moves", "line", "part")
    }
    is_comm = words["role"] == COMMUNICATION
    roofline = _bound(amounts, rates) if words["role"] == COMPUTE else _Roofline()
    return TraceOperation(
        role=words["role"],
        name=words["operation"],
        instructions=int(str(row["instructions"])),
        category=words["kind"] if is_comm else words["category"],
        moves=words["axes"] if is_comm else words["moves"],
        source=words["line"],
        part=words["part"],
        executions=to_number(amounts["executions"]),
        payload_bytes=to_number(amounts["payload_bytes"]) if is_comm else None,
        time_ns=to_number(amounts["time_ns"]),
        exposed_ns=to_number(amounts["alone_ns"] if is_comm else amounts["time_ns"]),
        flops=to_number(amounts["flops"]),
        memory_bytes=to_number(amounts["accessed_bytes"] if words["role"] != COPY else np.nan),
        roofline_ns=roofline.ns,
        bound=roofline.bound,
    )


def _bound(amounts: Mapping[str, float], rates: Mapping[str, float]) -> _Roofline:
    """What FLOPs and bytes take at the device's own rates; an operation that shows neither (a kernel) has none."""
    flops, moved = (np.nan_to_num(amounts[name]) for name in ("flops", "accessed_bytes"))
    if not (flops or moved) or set(rates) != {"flops_per_s", "memory_bytes_per_s"}:
        return _Roofline()
    arithmetic, memory = 1e9 * flops / rates["flops_per_s"], 1e9 * moved / rates["memory_bytes_per_s"]
    return _Roofline(to_number(max(arithmetic, memory)), "arithmetic" if arithmetic > memory else "memory")
