"""Numbers as reports write them: whole where they are, to the picosecond where not, `None` where unknown."""

import math
from collections.abc import Mapping

Number = int | float | None

_DIGITS = 3
"""Of a nanosecond: picoseconds, the clock of a profile."""

_SHARE_DIGITS = 9


def to_number(value: float | None) -> Number:
    """To three decimals; a whole number as one."""
    return _rounded(value, _DIGITS)


def to_ratio(part: float | None, whole: float | None) -> Number:
    """The quotient, `None` where the whole is nothing or either is unknown."""
    if part is None or whole is None or not whole:
        return None
    return _rounded(part / whole, _SHARE_DIGITS)


def to_whole(value: float | None) -> int | None:
    """To the nearest whole number."""
    return None if value is None or not math.isfinite(value) else round(value)


def round_to_total(values: Mapping[str, float], *, total: Number) -> dict[str, Number]:
    """Parts rounded so that they add up to the rounded total; the largest takes the rounding."""
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
    found = round(float(value), digits)
    return int(found) if found.is_integer() else found
