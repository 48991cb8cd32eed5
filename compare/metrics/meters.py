"""Meters and measured windows by themselves: means, peaks, joules, and how much devices and hosts differ."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compare.profile.power.files import PowerFiles
from compare.profile.power.zeus import Window
from compare.report.model.power import MeasuredPower, Meter, PowerWindow
from compare.timeline.series import CHIP, CORE, COUNT, MEMORY, POWER, TEMPERATURE, Series, add_series

_DIGITS = 9
"""Decimals of joules and watts."""
_FASTEST = ("SPI Sampler", "PL4", "PL3", "PL2", "PL1")
"""Meters of one rail, the one that follows it fastest first."""


def summarize_files(files: PowerFiles) -> MeasuredPower:
    """The same of files by themselves, without a profile."""
    return MeasuredPower(
        heat_measured=any(series.quantity == TEMPERATURE for series in files.series),
        meters=summarize_meters(files.series),
        steps=(),
        windows=summarize_windows(files.windows),
        notes=files.notes,
    )


def choose_power(meters: Sequence[Series]) -> dict[int, Series]:
    """Device -> its power: of the whole chip where a meter shows that, else of its rails together.

    Of several meters of one rail it takes the one that follows the power fastest.
    """
    powers: dict[int, Series] = {}
    for device in sorted({meter.device for meter in meters if meter.quantity == POWER}):
        rails: dict[str, list[Series]] = {}
        for meter in meters:
            if meter.device == device and meter.quantity == POWER:
                rails.setdefault(meter.component, []).append(meter)
        fastest = {component: min(parts, key=_slowness) for component, parts in rails.items()}
        chosen = [fastest[CHIP]] if CHIP in fastest else [fastest[part] for part in (CORE, MEMORY) if part in fastest]
        if chosen:
            powers[device] = add_series(chosen, name=" + ".join(series.name for series in chosen))
    return powers


def _slowness(meter: Series) -> int:
    return next((place for place, word in enumerate(_FASTEST) if word in meter.name), len(_FASTEST))


def summarize_meters(meters: Sequence[Series]) -> tuple[Meter, ...]:
    """One row for each name of a meter, over all devices; a counter has only its growth."""
    groups: dict[tuple[str, str, str], list[Series]] = {}
    for meter in meters:
        groups.setdefault((meter.name, meter.quantity, meter.component), []).append(meter)
    return tuple(_counter(parts) if quantity == COUNT else _meter(parts) for (_, quantity, _), parts in groups.items())


def _counter(parts: Sequence[Series]) -> Meter:
    """What a counter shows at an instant is no amount: it began to count at an unknown time."""
    growths = [part.growth for part in parts]
    fastest = parts[growths.index(max(growths))].device
    return replace(
        _meter(parts),
        mean=None,
        peak=None,
        lowest_device_mean=None,
        highest_device_mean=None,
        within_hosts_std=None,
        between_hosts_std=None,
        peak_device=fastest,
        total=to_joules(sum(growths)),
    )


def _meter(parts: Sequence[Series]) -> Meter:
    first = parts[0]
    means = np.array([part.mean for part in parts])
    peaks = np.array([part.peak for part in parts])
    hosts = np.array([part.host for part in parts])
    by_host = [means[hosts == host] for host in np.unique(hosts)]
    shared = [values for values in by_host if values.size > 1]
    total = sum(part.integral for part in parts) if first.quantity == POWER else None
    return Meter(
        name=first.name,
        quantity=first.quantity,
        component=first.component,
        unit=first.unit,
        devices=len({part.device for part in parts}),
        samples=sum(part.values.size for part in parts),
        failed=sum(part.failed for part in parts),
        mean=to_joules(float(means.mean())),
        peak=to_joules(float(peaks.max())),
        peak_device=parts[int(peaks.argmax())].device,
        lowest_device_mean=to_joules(float(means.min())),
        highest_device_mean=to_joules(float(means.max())),
        within_hosts_std=to_joules(float(np.mean([values.std() for values in shared]))) if shared else None,
        between_hosts_std=(
            to_joules(float(np.std([values.mean() for values in by_host]))) if len(by_host) > 1 else None
        ),
        total=to_joules(total),
    )


def summarize_windows(windows: Sequence[Window]) -> tuple[PowerWindow, ...]:
    """One row for each name of a window, in order of their first."""
    names = dict.fromkeys(window.name for window in windows)
    return tuple(_windows(name, [window for window in windows if window.name == name]) for name in names)


def _windows(name: str, windows: Sequence[Window]) -> PowerWindow:
    seconds = sum(window.seconds for window in windows)
    joules: dict[int, float] = {}
    for window in windows:
        for device, energy in window.energy_j.items():
            joules[device] = joules.get(device, 0.0) + energy
    hosts = [sum(window.host_j.values()) for window in windows if window.host_j]
    return PowerWindow(
        name=name,
        windows=len(windows),
        devices=len(joules),
        mean_s=to_joules(seconds / len(windows)),
        energy_j=to_joules(sum(joules.values()) / len(windows)),
        host_energy_j=to_joules(sum(hosts) / len(hosts)) if hosts else None,
        mean_w=to_joules(sum(joules.values()) / len(joules) / seconds),
        device_std_w=to_joules(float(np.std(list(joules.values()))) / seconds) if len(joules) > 1 else None,
    )


def to_joules(value: float | None) -> float | None:
    """Joules or watts as reports write them; `None` where unknown."""
    return None if value is None or not np.isfinite(value) else round(float(value), _DIGITS)
