"""The work of a step, by part of the model, against the peaks of a device: docs/metrics.md, section 14."""

from dataclasses import dataclass

import numpy as np

from compare.report.model.timing import ScopeWork, StepWork, Times
from compare.timing.arrays import Floats, Ints
from compare.timing.timeline import COMPUTE, UNKNOWN, WORK_COLUMNS
from compare.timing.tracks.numbers import to_number, to_ratio
from compare.timing.tracks.tracks import DeviceTracks

UNKNOWN_SCOPE = "?"
_NETWORK = ("ici_byte_hops", "dcn_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What one device can do by its data sheet."""

    flops_per_s: float
    memory_bytes_per_s: float


def summarize_work(
    tracks: DeviceTracks, step: Times, *, useful_flops: float | None, peaks: Peaks | None
) -> StepWork | None:
    """The sums over a step of one device, means over devices and steps; `None` for a timeline without work.

    useful_flops: of one device in one step.  peaks: `None` unless the devices are TPUs.
    """
    events = tracks.timeline.events
    if not set(WORK_COLUMNS) <= set(events.columns):
        return None
    weights = _weights(tracks) * events["step"].ge(0).to_numpy()
    scopes = events["scope"].astype(str).replace("", UNKNOWN_SCOPE)
    names, codes = np.unique(scopes.to_numpy(dtype=str), return_inverse=True)
    columns = {name: events[name].to_numpy(np.float64) for name in WORK_COLUMNS}
    columns["compute_ns"] = np.where(events["role"].eq(COMPUTE), events["duration_ns"], 0.0)
    per_step = {
        name: _sums(name, values, weights, codes, names.size) / max(tracks.device_steps, 1)
        for name, values in columns.items()
    }
    total = {name: float(per_step[name].sum()) for name in WORK_COLUMNS}
    flops, moved = total["matrix_flops"], total["memory_bytes"]
    possible = moved_at_most = roofline_ns = None
    if peaks is not None and step.step_ns is not None:
        possible, moved_at_most = (rate * step.step_ns / 1e9 for rate in (peaks.flops_per_s, peaks.memory_bytes_per_s))
        roofline_ns = 1e9 * max(flops / peaks.flops_per_s, moved / peaks.memory_bytes_per_s)
    return StepWork(
        **{name: to_number(amount) for name, amount in total.items()},
        useful_flops=to_number(useful_flops),
        useful_share=to_ratio(useful_flops, flops),
        mfu=to_ratio(useful_flops, possible),
        matrix_share=to_ratio(flops, possible),
        memory_share=to_ratio(moved, moved_at_most),
        roofline_ns=to_number(roofline_ns),
        by_scope={
            str(name): ScopeWork(**{column: to_number(values[index]) for column, values in per_step.items()})
            for index, name in enumerate(names)
            if any(values[index] != 0 for values in per_step.values())
        },
    )


def _weights(tracks: DeviceTracks) -> Floats:
    """Of each event the devices that it stands for; one of unknown device counts once, a device without steps never."""
    devices = tracks.timeline.events["device"].to_numpy()
    weights = np.where(devices == UNKNOWN, 1.0, 0.0)
    for track in tracks.devices:
        if track.device != UNKNOWN:
            weights[devices == track.device] = track.weight
    return weights


def _sums(name: str, values: Floats, weights: Floats, codes: Ints, size: int) -> Floats:
    """By scope.  Unknown work of instructions is left out, with a note; on networks it makes the sum unknown."""
    known = values if name in _NETWORK else np.nan_to_num(values, nan=0.0)
    weighted: Floats = np.where(weights > 0, known * weights, 0.0)
    return np.bincount(codes, weights=weighted, minlength=size).astype(np.float64)
