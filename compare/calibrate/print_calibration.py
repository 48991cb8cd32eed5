"""A calibration in a terminal."""

from collections.abc import Iterator, Mapping
from textwrap import wrap

from compare.calibrate.fit import CONFIDENCE
from compare.calibrate.result import MOST_VALUE, Calibration, Part
from compare.render.units import count_text
from meshes.process.one_line import quote

_MEASURED = {"time": "s", "energy": "J"}


def list_lines(calibration: Calibration) -> Iterator[str]:
    """The constants with their intervals, the errors, and what could not be fitted."""
    yield f"calibrated on {calibration.provenance.device}"
    for name, part, units in calibration.parts:
        yield f"{name}, from {count_text(part.fit.num_windows, 'window')} ({CONFIDENCE:.0%} intervals):"
        yield from _constants(part, units)
        if part.median_error is not None:
            yield (
                f"  each benchmark predicted from all others: median error {part.median_error:.1%}, "
                f"largest {part.largest_error:.1%}"
            )
        alone = part.fit.num_windows - part.errors.size
        if alone:
            yield f"  {count_text(alone, 'window')} cannot be predicted: no other shows what they do"
        for misfit in part.fit.misfits:
            yield (
                f"  left out: window {quote(misfit.name)} has {misfit.measured:.4g} {_MEASURED[name]}, "
                f"and all others say {misfit.predicted:.4g}"
            )
        for rate, least in part.unbounded.items():
            words = f", at least {least:.4g} {units[rate]}" if least < MOST_VALUE else ""
            yield f"  not fitted: {rate} is without bound{words}: the windows take no longer for such work"
        for group in part.fit.collinear:
            yield (
                f"  not fitted: the windows cannot tell {' and '.join(group)} apart; "
                "add windows in which one of them varies alone"
            )
        if part.fit.unseen:
            words = f"not fitted: no window shows {', '.join(part.fit.unseen)}"
            yield from wrap(words, width=100, initial_indent="  ", subsequent_indent="    ")
    for note in calibration.notes:
        yield f"note: {note}"


def _constants(part: Part, units: Mapping[str, str]) -> Iterator[str]:
    width = max((len(each.name) for each in part.estimates), default=0)
    for each in part.estimates:
        high = f"{each.high:.4g}" if each.high < MOST_VALUE else "∞"
        yield f"  {each.name:<{width}}  {each.value:.4g} {units[each.name]} ({each.low:.4g} to {high})"
