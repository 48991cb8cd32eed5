"""Devices compared: busy time, imbalance, stragglers."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from compare.metrics.network.sent_bytes import SentBytes
from compare.report.model.timing import DeviceTimes, Imbalance, Straggler
from compare.timeline.intervals import Union
from compare.timeline.tracks.numbers import to_number, to_ratio
from compare.timeline.tracks.times import TIMES, TimeTable
from compare.timeline.tracks.tracks import DeviceTracks

_COMPARED = ("step_ns", "compute_ns", "communication_ns", "exposed_ns", "wait_ns")


def per_device(tracks: DeviceTracks, table: TimeTable) -> tuple[DeviceTimes, ...]:
    """Means over steps of each shown device; idle_ns: neither computing nor communicating.  `None` where unknown."""
    if not tracks.has_devices:
        return ()
    frame = table.frame()
    rows = []
    for track in tracks.devices:
        device_rows = frame[frame["device"].eq(track.device)]
        busy = (Union.of(track.starts, track.stops) | track.busy).inside(track.begins, track.ends)
        idle = (track.ends - track.begins - busy)[track.known]
        rows.append(
            DeviceTimes(
                device=track.device,
                stands_for=track.weight,
                **{name: to_number(float(device_rows[name].mean())) for name in TIMES},
                idle_ns=to_number(float(idle.mean())) if idle.size else None,
                members=track.stands_for,
            )
        )
    return tuple(rows)


def imbalance(rows: Sequence[DeviceTimes]) -> dict[str, Imbalance]:
    """For each time: the largest over devices ÷ the mean over devices (1: balanced), and the device."""
    by_name = {}
    for name in _COMPARED:
        values = [(getattr(row, name), row.device, row.stands_for) for row in rows]
        known = [entry for entry in values if entry[0] is not None]
        if known:
            mean = sum(value * weight for value, _, weight in known) / sum(weight for *_, weight in known)
            largest, device, _ = max(known, key=lambda entry: (entry[0], -entry[1]))
            by_name[name] = Imbalance(largest_over_mean=to_ratio(largest, mean), device=device)
    return by_name


def arrival_lags(tracks: DeviceTracks, sent: Mapping[str, SentBytes]) -> pd.DataFrame:
    """How long after the first device of its group each device reaches a collective.

    device, step, collective, group, nth (execution in the step), lag_ns, last (it alone arrives last).  Permutes, and
    groups with fewer than two shown devices, are left out.  Needs one clock for all devices.
    """
    group_index = {
        (name, device): index
        for name, collective in sent.items()
        if collective.kind != "collective-permute"
        for index, group in enumerate(collective.groups)
        for device in group
    }
    inside = tracks.comms["step"].ge(0) & tracks.comms["device"].ge(0)
    rows = tracks.comms.loc[inside, ["device", "step", "collective", "start_ns"]]
    rows = rows.assign(collective=rows["collective"].astype(str))
    keys = pd.MultiIndex.from_frame(rows[["collective", "device"]])
    groups = pd.Series(group_index, dtype=float).reindex(keys).to_numpy() if group_index else np.full(len(rows), np.nan)
    rows = rows.assign(group=groups, nth=rows.groupby(["device", "step", "collective"]).cumcount())
    rows = rows[rows["group"].notna()].astype({"group": np.int64})
    starts = rows.groupby(["collective", "step", "group", "nth"])["start_ns"]
    first, last = starts.transform("min"), starts.transform("max")
    at_last = rows["start_ns"].eq(last)
    ties = at_last.groupby([rows[name] for name in ("collective", "step", "group", "nth")]).transform("sum")
    return rows.assign(lag_ns=rows["start_ns"] - first, last=at_last & ties.eq(1))[starts.transform("size").gt(1)]


def stragglers(table: pd.DataFrame) -> tuple[Straggler, ...]:
    """device, mean_lag_ns, last_share (fraction of executions that it alone reaches last); the latest first."""
    rows = [
        Straggler(
            device=int(rows["device"].iloc[0]),
            mean_lag_ns=to_number(float(rows["lag_ns"].mean())),
            last_share=to_ratio(int(rows["last"].sum()), len(rows)),
        )
        for _, rows in table.groupby("device")
    ]
    return tuple(sorted(rows, key=lambda row: (-(row.mean_lag_ns or 0), row.device)))
