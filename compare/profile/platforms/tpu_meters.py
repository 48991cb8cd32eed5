"""Power meters, temperatures and throttling of TPUs, where a profile was recorded with them.

The counters of line `_counters_` are named by libtpu (of 0.0.42 and 0.0.51), and described, with their options
(`tpu_power_trace_level`, `tpu_e2e_enable_fw_*`), in openxla/xprof's `docs/advanced_profiler_options.md`.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from compare.profile.xplane.xspace import Line, Plane
from compare.timeline.series import CORE, MEMORY, POWER, TEMPERATURE, THROTTLE, Series

_COUNTERS = re.compile(r"_?counters_\d*", re.IGNORECASE)
_METERS = (
    (re.compile(r"(?P<part>VDD Core|HBM) (?:SPI Sampler|FW) Power Meter(?: PL\d+)?\s*\(W\)"), POWER, "W"),
    (re.compile(r"(?P<part>Compute Die|HBM) FW Max Temperature\s*\(C\)"), TEMPERATURE, "°C"),
    (re.compile(r"(?P<part>VDD Core|HBM) FW Throttle\s*\(%\)"), THROTTLE, "%"),
)
_VALUES = {"power", "temperature", "throttle", "value", "counter_value"}
"""Names of the statistic that holds a counter's value, in lower case."""
_STATES = "power throttle"
"""The line whose events are states of throttling, each from its start to its end."""


def read_meters(plane: Plane, *, device: int, zero_ns: int) -> tuple[Series, ...]:
    """All meters of a TensorCore's plane, those without a sample that can be read left out."""
    stats = [name for name in dict.fromkeys(plane.stat_names.values()) if name.lower() in _VALUES]
    series: list[Series] = []
    for line in plane.lines:
        if _COUNTERS.fullmatch(line.name.strip()) and len(line):
            series += _counters(line, stats, device=device, zero_ns=zero_ns)
        elif line.name.strip().lower() == _STATES and len(line):
            series += _states(line, device=device, zero_ns=zero_ns)
    return tuple(series)


def _counters(line: Line, stats: Sequence[str], *, device: int, zero_ns: int) -> Iterator[Series]:
    names, starts = line.display_names, line.start_ns(zero_ns)
    values = np.full(len(line), np.nan)
    for stat in stats:
        values = np.where(np.isnan(values), line.floats(stat), values)
    for code, name in enumerate(names.categories):
        for pattern, quantity, unit in _METERS:
            if match := pattern.fullmatch(str(name).strip()):
                chosen = np.asarray(names.codes) == code
                known = chosen & np.isfinite(values)
                order = np.argsort(starts[known], kind="stable")
                if order.size:
                    yield Series(
                        device=device,
                        name=str(name).strip(),
                        quantity=quantity,
                        unit=unit,
                        component=MEMORY if match["part"] == "HBM" else CORE,
                        times_ns=starts[known][order],
                        values=values[known][order],
                        failed=int(chosen.sum() - known.sum()),
                    )


def _states(line: Line, *, device: int, zero_ns: int) -> Iterator[Series]:
    """Each state as a meter that shows 100 % while the device is in it."""
    names, starts = line.names, line.start_ns(zero_ns)
    ends = starts + line.duration_ns
    for code, name in enumerate(names.categories):
        chosen = np.flatnonzero(np.asarray(names.codes) == code)
        if not chosen.size:
            continue
        times = np.concatenate(([starts.min()], starts[chosen], ends[chosen], [ends.max()]))
        change = np.concatenate(([0.0], np.ones(chosen.size), -np.ones(chosen.size), [0.0]))
        order = np.argsort(times, kind="stable")
        yield Series(
            device=device,
            name=f"Power Throttle: {name}",
            quantity=THROTTLE,
            unit="%",
            component=CORE,
            times_ns=times[order],
            values=100 * np.clip(np.cumsum(change[order]), 0, 1),
        )
