"""What a calibration says, as data: coefficients, errors, what could not be told apart, and the TOML that keeps it."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from compare.calibrate.constants import (
    ENERGY_UNITS,
    TIME_UNITS,
    convert_energy,
    convert_time,
    fit_energy,
    fit_time,
    least_rate,
    list_unusual,
)
from compare.calibrate.fit import CONFIDENCE, Estimate, Fit
from compare.calibrate.windows import ESTIMATED, Windows
from compare.timeline.arrays import Floats
from compare.timeline.errors import TimingError

MOST_VALUE = 1e30


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where the windows come from."""

    device: str
    """As reports name it after *calibrated on*."""
    generation: str
    """Of a TPU of the table, or the platform, whose constants are no TPU's; empty: of any chip."""
    date: str
    meter: str
    """What told the energy; empty where nothing did."""
    runtime: str
    windows: str
    """The file of the windows."""
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Time or energy."""

    fit: Fit
    estimates: tuple[Estimate, ...]
    """In the units of `ENERGY_UNITS` or `TIME_UNITS`."""
    unbounded: Mapping[str, float] = field(default_factory=dict)
    """Rates that are without bound, as the windows take no longer for that work: the least that each can be."""

    @property
    def errors(self) -> Floats:
        """Of leave-one-out predictions, absolute; of the windows that the others can predict."""
        return np.abs(self.fit.errors[~np.isnan(self.fit.errors)])

    @property
    def median_error(self) -> float | None:
        return float(np.median(self.errors)) if self.errors.size else None

    @property
    def largest_error(self) -> float | None:
        return float(self.errors.max()) if self.errors.size else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The constants of a device."""

    provenance: Provenance
    time: Part | None
    energy: Part | None
    notes: tuple[str, ...]

    @property
    def parts(self) -> Iterator[tuple[str, Part, Mapping[str, str]]]:
        """Each with the units of its estimates."""
        if self.time:
            yield "time", self.time, TIME_UNITS
        if self.energy:
            yield "energy", self.energy, ENERGY_UNITS


def calibrate(windows: Windows, provenance: Provenance) -> Calibration:
    """Fit times, and energy where it was measured.  `TimingError`, one line, where neither can be."""
    notes = list(windows.notes)
    time = energy = None
    try:
        fit = fit_time(windows.table)
        converted = {each: convert_time(each) for each in fit.estimates}
        time = Part(
            fit=fit,
            estimates=tuple(filter(None, converted.values())),
            unbounded={each.name: least_rate(each) for each, rate in converted.items() if rate is None},
        )
        notes += _matmuls_note(windows, time)
    except TimingError as error:
        if not windows.have_energy:
            raise
        notes.append(f"times are not fitted: {error}")
    if windows.have_energy:
        try:
            fit = fit_energy(windows.table)
            energy = Part(fit=fit, estimates=tuple(map(convert_energy, fit.estimates)))
        except TimingError as error:
            if time is None:
                raise
            notes.append(f"energy is not fitted: {error}")
    else:
        notes.append("energy is not fitted: no window has any")
    for part in filter(None, (time, energy)):
        notes += list_unusual(part.estimates, provenance.generation)
    return Calibration(provenance=provenance, time=time, energy=energy, notes=tuple(notes))


def _matmuls_note(windows: Windows, time: Part) -> list[str]:
    """What windows of products without the compiler's estimate leave out."""
    if "matrix_flops_per_s" not in {each.name for each in time.estimates} or (windows.table[ESTIMATED] > 0).any():
        return []
    return [
        f"without the column {ESTIMATED} cycle_factor is not fitted, by which a report's matmuls last; "
        "matrix_flops_per_s is of kernels whose author states their FLOPs"
    ]


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def format_toml(calibration: Calibration) -> str:
    """The chip file: what `--chip` reads."""
    origin = calibration.provenance
    lines = ["# A chip file, for --chip; written by python -m compare.calibrate (docs/calibration.md).", ""]
    on = f"{origin.device}, {origin.date}" if origin.date else origin.device
    lines += [f"name = {_text(origin.device)}"]
    lines += [f"generation = {_text(origin.generation)}"] if origin.generation else []
    lines += [f"calibrated-on = {_text(on)}", "", "[provenance]"]
    for name in ("device", "date", "runtime", "meter", "windows", "sha256"):
        if getattr(origin, name):
            lines.append(f"{name} = {_text(getattr(origin, name))}")
    for name, part, _ in calibration.parts:
        lines += [f"{name}_windows = {part.fit.num_windows}"]
        if part.median_error is not None:
            lines += [
                f"{name}_leave_one_out_median = {part.median_error:.4f}",
                f"{name}_leave_one_out_largest = {part.largest_error:.4f}",
            ]
        collinear = [" and ".join(group) for group in part.fit.collinear]
        lines += [f"{name}_not_told_apart = {json.dumps(collinear)}"] if collinear else []
        misfits = [each.name for each in part.fit.misfits]
        lines += [f"{name}_left_out = {json.dumps(misfits, ensure_ascii=False)}"] if misfits else []
    for name, part, units in calibration.parts:
        for estimate in part.estimates:
            high = estimate.high if estimate.high < MOST_VALUE else MOST_VALUE
            lines += [
                "",
                f"[{name}.{estimate.name}]",
                f"value = {estimate.value:.6g}",
                f"low = {_below(estimate.low, estimate.value)}",
                f"high = {_above(high, estimate.value)}",
                f"unit = {_text(units[estimate.name])}",
                f"source = {_text(f'fit of {part.fit.num_windows} windows, {CONFIDENCE:.0%} interval')}",
                'standing = "measured"',
            ]
    return "\n".join(lines) + "\n"


def to_json(calibration: Calibration) -> dict[str, object]:
    """The same as one JSON document, with the prediction of each left-out window."""
    return {
        "provenance": {name: getattr(calibration.provenance, name) for name in Provenance.__slots__},
        **{name: _part_json(part, units) for name, part, units in calibration.parts},
        "notes": list(calibration.notes),
    }


def _part_json(part: Part, units: Mapping[str, str]) -> dict[str, object]:
    return {
        "windows": part.fit.num_windows,
        "constants": {
            each.name: {
                "value": each.value,
                "low": each.low,
                "high": each.high if each.high < MOST_VALUE else None,
                "unit": units[each.name],
            }
            for each in part.estimates
        },
        "not_told_apart": [list(group) for group in part.fit.collinear],
        "not_seen": list(part.fit.unseen),
        "without_bound": {name: least if least < MOST_VALUE else None for name, least in part.unbounded.items()},
        "left_out": [
            {"name": each.name, "measured": each.measured, "predicted": each.predicted} for each in part.fit.misfits
        ],
        "leave_one_out": {
            "median": part.median_error,
            "largest": part.largest_error,
            "errors": [None if np.isnan(error) else round(float(error), 6) for error in part.fit.errors],
        },
    }


def _text(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)


def _below(bound: float, value: float) -> str:
    """Rounded bounds stay on their side of the rounded value."""
    return f"{min(bound, float(f'{value:.6g}')):.6g}"


def _above(bound: float, value: float) -> str:
    return f"{max(bound, float(f'{value:.6g}')):.6g}"
