"""Samples of one meter over time: power, temperature, clock, throttling, as a device or a tool recorded them."""

from dataclasses import dataclass, replace

import numpy as np

from compare.timeline.arrays import Floats, Times

POWER, TEMPERATURE, THROTTLE, USE, CLOCK, RATE, COUNT = (
    "power",
    "temperature",
    "throttle",
    "use",
    "clock",
    "rate",
    "count",
)
"""Quantities of a meter; `count`: a counter that only grows, `use` and `throttle`: percent."""

CHIP, CORE, MEMORY, HOST = "chip", "core", "memory", "host"
"""What a meter measures; `chip`: core and memory together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """The samples of one meter of one device, in order of time."""

    device: int
    """The device that it measures; of a meter of a host the first device of that host."""
    name: str
    """The meter's name where it was recorded, like `HBM SPI Sampler Power Meter(W)` or `gpu_power`."""
    quantity: str
    component: str
    unit: str
    times_ns: Times
    """From the timeline's zero."""
    values: Floats
    host: int = 0
    failed: int = 0
    """Samples left out, since the meter could not be read."""

    @property
    def seconds(self) -> float:
        """From the first sample to the last."""
        return float(self.times_ns[-1] - self.times_ns[0]) / 1e9 if self.times_ns.size else 0.0

    @property
    def mean(self) -> float:
        """Time-weighted: each value holds until the next sample; of samples of one instant their plain mean."""
        spans = np.diff(self.times_ns)
        if not spans.sum() > 0:
            return float(self.values.mean()) if self.values.size else float("nan")
        return float((self.values[:-1] * spans).sum() / spans.sum())

    @property
    def peak(self) -> float:
        return float(self.values.max()) if self.values.size else float("nan")

    @property
    def integral(self) -> float:
        """By trapezoids, in the unit × seconds: joules of watts."""
        return float(np.trapezoid(self.values, self.times_ns)) / 1e9

    @property
    def growth(self) -> float:
        """What a counter of 32 bits, which starts again at 0, has counted."""
        steps = np.diff(self.values)
        return float(np.where(steps < 0, steps + 2.0**32, steps).sum())


def add_series(parts: list[Series], *, name: str) -> Series:
    """The sum of meters of one device, like those of its core and its memory, at the times of any of them.

    Between its samples each is a straight line; before the first and after the last it keeps that value.
    """
    if len(parts) == 1:
        return replace(parts[0], name=name)
    times = np.unique(np.concatenate([part.times_ns for part in parts]))
    first = parts[0]
    return Series(
        device=first.device,
        host=first.host,
        name=name,
        quantity=first.quantity,
        unit=first.unit,
        component=CHIP,
        times_ns=times,
        values=np.sum([np.interp(times, part.times_ns, part.values) for part in parts], axis=0),
        failed=sum(part.failed for part in parts),
    )


class EnergyCurve:
    """The energy that a device has taken at any time since its first sample, in J: straight power between samples.

    Before the first and after the last sample the power keeps that sample's value.
    """

    def __init__(self, power: Series):
        self._times, self._watts = power.times_ns, power.values
        pieces = (self._watts[1:] + self._watts[:-1]) / 2 * np.diff(self._times) / 1e9
        self._joules = np.concatenate(([0.0], np.cumsum(pieces)))

    def at(self, times_ns: Times) -> Floats:
        """Joules from the first sample until each time; negative before it."""
        place = np.clip(np.searchsorted(self._times, times_ns, side="right") - 1, 0, self._times.size - 1)
        watts = np.interp(times_ns, self._times, self._watts)
        joules: Floats = self._joules[place] + (self._watts[place] + watts) / 2 * (times_ns - self._times[place]) / 1e9
        return joules

    def joules(self, begins_ns: Times, ends_ns: Times) -> Floats:
        """Of each window."""
        return self.at(ends_ns) - self.at(begins_ns)

    def peak_of_windows(self, begin_ns: float, end_ns: float, *, window_ns: float) -> float:
        """The most watts of a moving mean over so long; over all where that is shorter."""
        starts = np.concatenate((self._times, self._times - window_ns, [begin_ns]))
        last = max(end_ns - window_ns, begin_ns)
        starts = np.unique(np.clip(starts, begin_ns, last))
        ends = np.minimum(starts + window_ns, end_ns)
        return float((self.joules(starts, ends) / (ends - starts)).max() * 1e9)
