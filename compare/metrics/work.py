"""The work of a step, by part of the model, against the peaks of a device: docs/metrics.md, section 14."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from compare.report.model.timing import ScopeWork, StepWork, Times
from compare.timeline.arrays import Floats, Ints, Mask
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.timeline import COMPUTE, UNKNOWN
from compare.timeline.tracks.numbers import Number, to_number, to_ratio
from compare.timeline.tracks.tracks import DeviceTracks

UNKNOWN_SCOPE = "?"
_NETWORK = ("ici_byte_hops", "dcn_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What one device can do: by its data sheet, or as far as the schedule model reaches."""

    flops_per_s: float
    memory_bytes_per_s: float


class Least(Protocol):
    """The least that the plan needs of a device in a step, for one part of the model."""

    @property
    def num_bytes(self) -> float: ...
    @property
    def flops(self) -> float: ...


def summarize_work(
    tracks: DeviceTracks,
    step: Times,
    *,
    useful_flops: float | None,
    peaks: Peaks | None,
    reached: Peaks | None = None,
    waits: Set[str] = frozenset(),
    floor: Mapping[str, Least] | None = None,
) -> StepWork | None:
    """The sums over a step of one device, means over devices and steps; `None` for a timeline without work.

    useful_flops: of one device in one step.  peaks: `None` unless the devices are TPUs.  reached: the same as far as
    the schedule model reaches, for bounds.  waits: instructions whose compute is a wait for a local copy.  floor: the
    least that the plan needs, by scope.
    """
    events = tracks.timeline.events
    if not set(WORK_COLUMNS) <= set(events.columns):
        return None
    weights = weigh_events(tracks) * events["step"].ge(0).to_numpy()
    scopes = events["scope"].astype(str).replace("", UNKNOWN_SCOPE)
    names, codes = np.unique(scopes.to_numpy(dtype=str), return_inverse=True)
    columns = {name: events[name].to_numpy(np.float64) for name in WORK_COLUMNS}
    columns["compute_ns"] = np.where(events["role"].eq(COMPUTE), events["duration_ns"], 0.0)
    if reached is not None:
        columns |= _bounds(columns, events["hlo_op"].isin(waits).to_numpy(), reached)
    least = _floor_times(floor, reached)
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
            str(name): ScopeWork(
                **{column: to_number(values[index]) for column, values in per_step.items()},
                floor_ns=to_number(least.get(str(name))),
            )
            for index, name in enumerate(names)
            if any(values[index] != 0 for values in per_step.values())
        },
        **_whole_floor(floor, reached),
    )


def _bounds(columns: Mapping[str, Floats], is_wait: Mask, reached: Peaks) -> dict[str, Floats]:
    """Of each computing event what its arithmetic takes at the peak, and what its memory takes beyond that."""
    compute_ns = columns["compute_ns"]
    at_peak = np.minimum(1e9 * np.nan_to_num(columns["matrix_flops"]) / reached.flops_per_s, compute_ns)
    moving = np.minimum(1e9 * np.nan_to_num(columns["memory_bytes"]) / reached.memory_bytes_per_s, compute_ns)
    memory_ns = np.where(is_wait, compute_ns, np.maximum(moving - at_peak, 0.0))
    return {"arithmetic_ns": at_peak, "memory_ns": memory_ns}


def _floor_times(floor: Mapping[str, Least] | None, reached: Peaks | None) -> dict[str, float]:
    if floor is None or reached is None:
        return {}
    return {scope: _least_ns(part.num_bytes, part.flops, reached) for scope, part in floor.items()}


def _least_ns(num_bytes: float, flops: float, reached: Peaks) -> float:
    return 1e9 * max(num_bytes / reached.memory_bytes_per_s, flops / reached.flops_per_s)


def _whole_floor(floor: Mapping[str, Least] | None, reached: Peaks | None) -> dict[str, Number]:
    """Of the step; less than the sum of its parts, since one part's bytes can move beside another's arithmetic."""
    if floor is None or reached is None:
        return {}
    num_bytes, flops = (sum(getattr(part, name) for part in floor.values()) for name in ("num_bytes", "flops"))
    return {
        "floor_ns": to_number(_least_ns(num_bytes, flops, reached)),
        "floor_bytes": to_number(num_bytes),
        "floor_flops": to_number(flops),
    }


def weigh_events(tracks: DeviceTracks) -> Floats:
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
