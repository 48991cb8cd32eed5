"""Joules of a window from the profile that was recorded of it, where the device's power meters are in it."""

from pathlib import Path

import numpy as np

from compare.metrics.meters import choose_power
from compare.profile.join.profile import read_profile
from compare.timeline.errors import TimingError
from compare.timeline.series import EnergyCurve


def measure_joules(path: Path, *, seconds: float) -> float | None:
    """Mean power of each device from its first event to its last × seconds, summed; `None` where no meter is read.

    A profile without events, of idle devices, has its mean over all samples.
    """
    try:
        timeline = read_profile([path], axes={})
    except TimingError:
        return None
    total = 0.0
    powers = choose_power(timeline.meters)
    for device, power in powers.items():
        events = timeline.events[timeline.events["device"] == device]
        starts = events["start_ns"].to_numpy(np.float64)
        ends = starts + events["duration_ns"].to_numpy(np.float64)
        if starts.size and ends.max() > starts.min():
            joules = EnergyCurve(power).joules(starts.min(keepdims=True), ends.max(keepdims=True))
            total += float(joules[0]) / (ends.max() - starts.min()) * 1e9 * seconds
        else:
            total += power.mean * seconds
    return total if powers else None
