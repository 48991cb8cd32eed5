"""Numbers as reports write them: ints where exact, else to the picosecond; `None` where unknown."""

import math
from collections.abc import Mapping

Number = int | float | None

_DIGITS = 3
"""Decimals of a nanosecond: picoseconds, the resolution of a profile."""

_SHARE_DIGITS = 9


def to_number(value: float | None) -> Number:
    """Rounded to three decimals; an int where it is one."""
    return _rounded(value, _DIGITS)


def to_ratio(part: float | None, total: float | None) -> Number:
    """part ÷ total; `None` where the total is 0 or either is unknown."""
    if part is None or total is None or not total:
        return None
    return _rounded(part / total, _SHARE_DIGITS)


def to_whole(value: float | None) -> int | None:
    """Rounded to an int."""
    return None if value is None or not math.isfinite(value) else round(value)


def round_to_total(values: Mapping[str, float], *, total: Number) -> dict[str, Number]:
    """Parts rounded so that they add up to the rounded total; the largest takes the rounding error."""
    if total is None or any(math.isnan(value) for value in values.values()):
        return dict.fromkeys(values)
    rounded = {name: round(value, _DIGITS) for name, value in values.items()}
    if rounded:
        largest = max(rounded, key=lambda name: rounded[name])
        rounded[largest] += total - sum(rounded.values())
    return {name: to_number(value) for name, value in rounded.items()}


def _rounded(value: float | None, digits: int) -> Number:
    if value is None or not math.isfinite(value):
        return None
    rounded = round(float(value), digits)
    return int(rounded) if rounded.is_integer() else rounded
