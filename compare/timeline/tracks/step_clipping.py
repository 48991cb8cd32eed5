"""Communications clipped to steps: the part of each within a step, and its share of that step's time."""

import numpy as np
import pandas as pd

from compare.timeline.arrays import Column, Ints
from compare.timeline.intervals import Union, exposed_shares
from compare.timeline.tracks.tracks import DeviceTrack, DeviceTracks

_NEVER = Union(np.empty(0), np.empty(0))


def clip_to_steps(tracks: DeviceTracks) -> pd.DataFrame:
    """One row for each communication and step that it overlaps; none where devices are unknown.

    comm: its row in `tracks.comms`; device, step, weight; place: index of the step on its device; step_ns: length of
    the step; begins: whether it starts in this step.  start_ns: from the step's start; duration_ns, wait_ns: inside the
    step; part: fraction of the full communication.  communication_share_ns, exposed_share_ns, wait_share_ns: its
    length, exposed length and wait, divided evenly among communications that run at once, so that each adds up to the
    device's own (NaN where the wait is not shown).
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
    frame = pd.DataFrame(
        {name: np.concatenate([table[name] for table in tables]) if tables else [] for name in columns}
    )
    integers = {name: np.int64 for name in ("comm", "device", "step", "weight", "place")}
    kinds = tracks.comms[["collective", "scope", "kind", "axes"]].iloc[frame["comm"].to_numpy(np.int64)]
    return pd.concat([frame.astype({**integers, "begins": bool}), kinds.reset_index(drop=True)], axis=1)


def _of(track: DeviceTrack) -> dict[str, Column]:
    rows, step = _reached(track)
    starts, stops = track.starts[rows], track.stops[rows]
    from_, to = np.maximum(starts, track.begins[step]), np.minimum(stops, track.ends[step])
    waits = track.waits[rows]
    until = np.clip(np.minimum(starts + np.nan_to_num(waits, nan=0.0), stops), from_, to)
    length = stops - starts
    return {
        "comm": rows + track.rows.start,
        "device": np.full(rows.size, track.device),
        "step": track.steps[step],
        "weight": np.full(rows.size, track.weight),
        "place": step,
        "step_ns": (track.ends - track.begins)[step],
        "begins": track.step_index[rows] == step,
        "start_ns": from_ - track.begins[step],
        "duration_ns": to - from_,
        "wait_ns": np.where(np.isnan(waits), np.nan, until - from_),
        "part": np.divide(to - from_, length, out=np.ones_like(length), where=length > 0),
        "communication_share_ns": exposed_shares(from_, to, _NEVER),
        "exposed_share_ns": exposed_shares(from_, to, track.busy),
        "wait_share_ns": np.where(np.isnan(waits), np.nan, exposed_shares(from_, until, _NEVER)),
    }


def _reached(track: DeviceTrack) -> tuple[Ints, Ints]:
    """(communication, step) index pairs that overlap; of an instant communication the step in which it starts."""
    first = np.searchsorted(track.ends, track.starts, side="right")
    last = np.searchsorted(track.begins, track.stops, side="left") - 1
    instant = (track.stops == track.starts) & (track.step_index >= 0)
    first, last = np.where(instant, track.step_index, first), np.where(instant, track.step_index, last)
    times = np.maximum(last - first + 1, 0)
    rows = np.repeat(np.arange(times.size), times)
    nth = np.arange(rows.size) - np.repeat(np.cumsum(times) - times, times)
    return rows, first[rows] + nth
