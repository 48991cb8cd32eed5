"""Communications cut at the edges of steps: the part of each that one step holds, and its share of that step's time."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timing.intervals import Union, shared_alone
from compare.timing.tracks.tracks import Lane, Lanes

_NEVER = Union(np.empty(0), np.empty(0))


def pieces(lanes: Lanes) -> pd.DataFrame:
    """One row for each communication and step that it reaches into; none where devices are unknown.

    talk: its row in `lanes.talks`; device, step, weight; place: of the step on its device; step_ns: how long that
    step is; begins: whether it starts in this step.  start_ns: from the step's start; duration_ns, wait_ns: inside the
    step; part: of the whole communication.  own_ns, alone_ns, wait_own_ns: its length, its exposed length, its waiting,
    where several run at once divided evenly among them, so that each adds up to the device's own (NaN where the
    waiting is not shown).
    """
    tables = [_of(lane) for lane in lanes.lanes] if lanes.told else []
    shares = ("part", "own_ns", "alone_ns", "wait_own_ns")
    columns = (
        "talk",
        "device",
        "step",
        "weight",
        "place",
        "step_ns",
        "begins",
        "start_ns",
        "duration_ns",
        "wait_ns",
        *shares,
    )
    frame = pd.DataFrame({name: np.concatenate([table[name] for table in tables]) if tables else []
                          for name in columns})  # fmt: skip
    whole = {name: np.int64 for name in ("talk", "device", "step", "weight", "place")}
    kinds = lanes.talks[["collective", "scope", "kind", "axes"]].iloc[frame["talk"].to_numpy(np.int64)]
    return pd.concat([frame.astype({**whole, "begins": bool}), kinds.reset_index(drop=True)], axis=1)


def _of(lane: Lane) -> dict[str, NDArray[np.generic]]:
    own, place = _reached(lane)
    starts, stops = lane.starts[own], lane.stops[own]
    from_, to = np.maximum(starts, lane.begins[place]), np.minimum(stops, lane.ends[place])
    waits = lane.waits[own]
    until = np.clip(np.minimum(starts + np.nan_to_num(waits, nan=0.0), stops), from_, to)
    length = stops - starts
    return {
        "talk": own + lane.rows.start,
        "device": np.full(own.size, lane.device),
        "step": lane.steps[place],
        "weight": np.full(own.size, lane.weight),
        "place": place,
        "step_ns": (lane.ends - lane.begins)[place],
        "begins": lane.at[own] == place,
        "start_ns": from_ - lane.begins[place],
        "duration_ns": to - from_,
        "wait_ns": np.where(np.isnan(waits), np.nan, until - from_),
        "part": np.divide(to - from_, length, out=np.ones_like(length), where=length > 0),
        "own_ns": shared_alone(from_, to, _NEVER),
        "alone_ns": shared_alone(from_, to, lane.busy),
        "wait_own_ns": np.where(np.isnan(waits), np.nan, shared_alone(from_, until, _NEVER)),
    }


def _reached(lane: Lane) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a communication and a step that it reaches into, or starts in without lasting."""
    first = np.searchsorted(lane.ends, lane.starts, side="right")
    last = np.searchsorted(lane.begins, lane.stops, side="left") - 1
    instant = (lane.stops == lane.starts) & (lane.at >= 0)
    first, last = np.where(instant, lane.at, first), np.where(instant, lane.at, last)
    times = np.maximum(last - first + 1, 0)
    own = np.repeat(np.arange(times.size), times)
    nth = np.arange(own.size) - np.repeat(np.cumsum(times) - times, times)
    return own, first[own] + nth
