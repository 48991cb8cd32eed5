"""The pipeline: which stage holds which microbatch when, and the bubble share.

GPipe (Huang et al., arXiv:1811.06965) idles (p − 1)/(m + p − 1) of the time.  A shifting buffer computes in these ticks
too, on no data: a stage's bubble is the ticks in which it holds no microbatch, busy or not.  In GPipe order it has
m + p − 1 ticks, which the executions of its shift mark; in tick k the stage s holds microbatch k − s, or none.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.report.model.mesh import DeviceMesh
from compare.report.model.timing import PipelinePhase, PipelineTimes, StageTimes, Tick
from compare.timeline.arrays import Ints, Times
from compare.timeline.intervals import Union
from compare.timeline.timeline import CONTAINER
from compare.timeline.tracks.numbers import Number, to_number, to_ratio
from compare.timeline.tracks.tracks import DeviceTrack, DeviceTracks, spans

FILL, STEADY, DRAIN = "fill", "steady", "drain"
BEFORE, AFTER = "before", "after"


def summarize_pipeline(
    tracks: DeviceTracks, table: pd.DataFrame, *, microbatches: int, num_stages: int
) -> PipelineTimes | None:
    """Means over devices and steps of `table` (from `find_ticks`); `None` where it is empty, or with one stage.

    stages: stage, ticks, bubble_ticks, pipeline_ns, bubble_ns, bubble_share, busy_in_bubble_ns, idle_ns (in all
    ticks).  bubble_share: over all stages; gpipe_bubble_share: of a uniform pipeline.  ticks: tick, start_ns,
    duration_ns, microbatches (per stage, or `None`).  phases: before, fill, steady, drain, after.
    """
    if table.empty or num_stages == 1:
        return None
    bubble = table["microbatch"].lt(0)
    weighted = pd.DataFrame(
        {
            "stage": table["stage"],
            "pipeline_ns": table["tick_ns"],
            "bubble_ns": table["tick_ns"].where(bubble, 0.0),
            "busy_in_bubble_ns": table["busy_ns"].where(bubble, 0.0),
            "idle_ns": table["tick_ns"] - table["busy_ns"],
            "bubble_ticks": bubble.astype(float),
        }
    )
    sums = weighted.drop(columns="stage").mul(table["weight"], axis=0).groupby(weighted["stage"]).sum()
    device_steps = table[table["tick"].eq(0)].groupby("stage")["weight"].sum()
    total = sums.sum()
    count = int(table["tick"].max()) + 1
    return PipelineTimes(
        stages=tuple(
            _stage(stage, row, float(device_steps[stage]), count)
            for stage, row in zip(sums.index.tolist(), sums.to_dict("records"), strict=True)
        ),
        bubble_share=to_ratio(float(total["bubble_ns"]), float(total["pipeline_ns"])),
        gpipe_bubble_share=to_ratio(num_stages - 1, microbatches + num_stages - 1),
        ticks=_ticks(table, microbatches, num_stages),
        phases=_phases(tracks, table, microbatches, num_stages),
    )


def _stage(stage: int, row: Mapping[Hashable, float], device_steps: float, count: int) -> StageTimes:
    times = ("pipeline_ns", "bubble_ns", "busy_in_bubble_ns", "idle_ns")
    return StageTimes(
        stage=stage,
        ticks=count,
        bubble_ticks=to_number(row["bubble_ticks"] / device_steps),
        **{name: to_number(row[name] / device_steps) for name in times},
        bubble_share=to_ratio(row["bubble_ns"], row["pipeline_ns"]),
    )


def _ticks(table: pd.DataFrame, microbatches: int, num_stages: int) -> tuple[Tick, ...]:
    rows = []
    for _, group in table.groupby("tick"):
        held = [int(group["tick"].iloc[0]) - stage for stage in range(num_stages)]
        rows.append(
            Tick(
                tick=held[0],
                start_ns=_mean(group, group["start_ns"]),
                duration_ns=_mean(group, group["end_ns"] - group["start_ns"]),
                microbatches=tuple(microbatch if 0 <= microbatch < microbatches else None for microbatch in held),
            )
        )
    return tuple(rows)


def _phases(tracks: DeviceTracks, table: pd.DataFrame, microbatches: int, num_stages: int) -> tuple[PipelinePhase, ...]:
    """The phases of a mean step, in order; empty ones are left out."""
    names = np.select([table["tick"] >= microbatches, table["tick"] < num_stages - 1], [DRAIN, FILL], STEADY)
    step = pd.DataFrame(
        [
            {"device": track.device, "step": int(step), "step_ns": end - begin}
            for track in tracks.devices
            for step, begin, end in zip(track.steps, track.begins, track.ends, strict=True)
        ]
    )
    edges = table.assign(phase=names).groupby(["device", "step", "weight", "phase"], sort=False)
    spans = edges.agg(start_ns=("start_ns", "min"), end_ns=("end_ns", "max")).reset_index()
    bounds = spans.groupby(["device", "step", "weight"]).agg(low=("start_ns", "min"), high=("end_ns", "max"))
    bounds = bounds.reset_index().merge(step, on=["device", "step"])
    before = bounds.assign(phase=BEFORE, start_ns=0.0, end_ns=bounds["low"])
    after = bounds.assign(phase=AFTER, start_ns=bounds["high"], end_ns=bounds["step_ns"])
    columns = ["phase", "weight", "start_ns", "end_ns"]
    phases = pd.concat([before[columns], spans[columns], after[columns]])
    return tuple(
        PipelinePhase(
            phase=phase,
            start_ns=_mean(rows, rows["start_ns"]),
            duration_ns=_mean(rows, rows["end_ns"] - rows["start_ns"]),
        )
        for phase in (BEFORE, FILL, STEADY, DRAIN, AFTER)
        if len(rows := phases[phases["phase"].eq(phase)])
    )


def _mean(rows: pd.DataFrame, values: "pd.Series[float]") -> Number:
    return to_number(float(np.average(values, weights=rows["weight"])))


SHIFT = "pipeline.shift"
COLUMNS = ["device", "weight", "step", "stage", "tick", "microbatch", "start_ns", "end_ns", "tick_ns", "busy_ns"]


def find_ticks(tracks: DeviceTracks, stages: Sequence[int], *, microbatches: int) -> pd.DataFrame:
    """COLUMNS, one row for each tick of each device and step whose shifts are those of a pipeline.

    A device that represents devices of several stages has rows for each stage.

    `stages`: per device of the mesh.  microbatch: the one that the stage holds, -1 for none.  start_ns, end_ns:
    from the step's start.  tick_ns: that span less the exposed part of its shifts, which are between ticks.  busy_ns:
    the part of it in which the device computes or communicates.
    """
    count = microbatches + max(stages)
    tables = []
    for track in tracks.devices if tracks.has_devices else ():
        loops = _loops(tracks, track.device)
        shifts = np.flatnonzero((tracks.comms["scope"].iloc[track.rows] == SHIFT).to_numpy() & (track.step_index >= 0))
        names = tracks.comms["collective"].iloc[track.rows].to_numpy()[shifts]
        busy = Union.of(track.starts, track.stops) | track.busy
        for step in range(track.steps.size):
            shift_rows = _series(
                shifts[track.step_index[shifts] == step], names[track.step_index[shifts] == step], count
            )
            if shift_rows.size:
                edges = _edges(track, shift_rows, step, count, loops)
                held = Counter(stages[device] for device in track.stands_for)
                tables += [
                    _table(track, step, shift_rows, edges, busy, stage, microbatches).assign(weight=weight)
                    for stage, weight in held.items()
                ]
    return pd.concat(tables, ignore_index=True)[COLUMNS] if tables else pd.DataFrame(columns=COLUMNS)


def _series(shifts: Ints, names: NDArray[np.object_], count: int) -> Ints:
    """The shifts that mark ticks: all, or those of one collective, if there are as many as ticks or one less."""
    if shifts.size in (count, count - 1):
        return shifts
    for name in dict.fromkeys(names):
        some: Ints = shifts[names == name]
        if some.size in (count, count - 1):
            return some
    return shifts[:0]


def _loops(tracks: DeviceTracks, device: int) -> tuple[Times, Times]:
    events = tracks.timeline.events
    return spans(events[events["role"].eq(CONTAINER) & events["device"].eq(device)])


def _edges(track: DeviceTrack, shifts: Ints, step: int, count: int, loops: tuple[Times, Times]) -> Times:
    """The start of each tick, and the end of the last.

    The loop around the shifts gives the start of the first tick and the end of the last.  Without one these ticks get
    the median length of the others, within the step.
    """
    starts, stops = track.starts[shifts], track.stops[shifts]
    low, high = track.begins[step], track.ends[step]
    one_missing = shifts.size == count - 1
    around = np.flatnonzero((loops[0] <= starts[0]) & (loops[1] >= stops[-1]) & (loops[0] >= low) & (loops[1] <= high))
    if around.size:
        best = around[np.argmin(loops[1][around] - loops[0][around])]
        low, high = loops[0][best], loops[1][best]
    shift_first = starts[0] - low <= high - stops[-1]
    if not around.size and shifts.size > 1:
        gap = float(np.median(starts[1:] - stops[:-1]))
        low = starts[0] if shift_first and not one_missing else max(low, starts[0] - gap)
        high = min(high, stops[-1] + gap) if shift_first or one_missing else stops[-1]
    inner = starts if one_missing else starts[1:] if shift_first else stops[:-1]
    return np.concatenate(([low], inner, [high]))


def _table(
    track: DeviceTrack, step: int, shifts: Ints, edges: Times, busy: Union, stage: int, microbatches: int
) -> pd.DataFrame:
    begins, ends = edges[:-1], edges[1:]
    shift = Union.of(track.starts[shifts], track.stops[shifts])
    exposed = (shift | track.busy).inside(begins, ends) - track.busy.inside(begins, ends)
    ticks = np.arange(begins.size)
    held = ticks - stage
    return pd.DataFrame(
        {
            "device": track.device,
            "step": track.steps[step],
            "stage": stage,
            "tick": ticks,
            "microbatch": np.where((held >= 0) & (held < microbatches), held, -1),
            "start_ns": begins - track.begins[step],
            "end_ns": ends - track.begins[step],
            "tick_ns": np.maximum(ends - begins - exposed, 0),
            "busy_ns": busy.inside(begins, ends) - exposed,
        }
    )


def stages_of(mesh: DeviceMesh) -> list[int]:
    """The stage of each device of a report's mesh."""
    return [device.coordinates.get("pp", 0) for device in mesh.devices]
