"""The ticks of a pipeline, from the executions of its shift.

A shifting buffer in GPipe order has m + p − 1 ticks; in tick k the stage s holds microbatch k − s, or none.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.report.model.mesh import DeviceMesh
from compare.timeline.arrays import Ints, Times
from compare.timeline.intervals import Union
from compare.timeline.timeline import CONTAINER
from compare.timeline.tracks.tracks import DeviceTrack, DeviceTracks, spans

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
