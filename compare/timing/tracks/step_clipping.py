"""Communications cut at the edges of steps: the part of each that one step holds, and its share of that step's time."""

import numpy as np
import pandas as pd

from compare.timing.arrays import Column, Ints
from compare.timing.intervals import Union, exposed_shares
from compare.timing.tracks.tracks import DeviceTrack, DeviceTracks

_NEVER = Union(np.empty(0), np.empty(0))


def clip_to_steps(tracks: DeviceTracks) -> pd.DataFrame:
    """One row for each communication and step that it reaches into; none where devices are unknown.

    comm: its row in `tracks.comms`; device, step, weight; place: of the step on its device; step_ns: how long that
    step is; begins: whether it starts in this step.  start_ns: from the step's start; duration_ns, wait_ns: inside the
    step; part: of the whole communication.  communication_share_ns, exposed_share_ns, wait_share_ns: its length, its
    exposed length, its waiting, where several run at once divided evenly among them, so that each adds up to the
    device's own (NaN where the waiting is not shown).
    """
    tables = [_of(track) for track in tracks.devices] if tracks.has_devices else []
    shares = ("part", "communication_share_ns", "exposed_share_ns", "wait_share_ns")
    columns = (
        "comm",
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
    whole = {name: np.int64 for name in ("comm", "device", "step", "weight", "place")}
    kinds = tracks.comms[["collective", "scope", "kind", "axes"]].iloc[frame["comm"].to_numpy(np.int64)]
    return pd.concat([frame.astype({**whole, "begins": bool}), kinds.reset_index(drop=True)], axis=1)


def _of(track: DeviceTrack) -> dict[str, Column]:
    own, place = _reached(track)
    starts, stops = track.starts[own], track.stops[own]
    from_, to = np.maximum(starts, track.begins[place]), np.minimum(stops, track.ends[place])
    waits = track.waits[own]
    until = np.clip(np.minimum(starts + np.nan_to_num(waits, nan=0.0), stops), from_, to)
    length = stops - starts
    return {
        "comm": own + track.rows.start,
        "device": np.full(own.size, track.device),
        "step": track.steps[place],
        "weight": np.full(own.size, track.weight),
        "place": place,
        "step_ns": (track.ends - track.begins)[place],
        "begins": track.at[own] == place,
        "start_ns": from_ - track.begins[place],
        "duration_ns": to - from_,
        "wait_ns": np.where(np.isnan(waits), np.nan, until - from_),
        "part": np.divide(to - from_, length, out=np.ones_like(length), where=length > 0),
        "communication_share_ns": exposed_shares(from_, to, _NEVER),
        "exposed_share_ns": exposed_shares(from_, to, track.busy),
        "wait_share_ns": np.where(np.isnan(waits), np.nan, exposed_shares(from_, until, _NEVER)),
    }


def _reached(track: DeviceTrack) -> tuple[Ints, Ints]:
    """Pairs of a communication and a step that it reaches into, or starts in without lasting."""
    first = np.searchsorted(track.ends, track.starts, side="right")
    last = np.searchsorted(track.begins, track.stops, side="left") - 1
    instant = (track.stops == track.starts) & (track.at >= 0)
    first, last = np.where(instant, track.at, first), np.where(instant, track.at, last)
    times = np.maximum(last - first + 1, 0)
    own = np.repeat(np.arange(times.size), times)
    nth = np.arange(own.size) - np.repeat(np.cumsum(times) - times, times)
    return own, first[own] + nth
