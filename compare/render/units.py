"""Numbers as text: three digits and a unit.  MB means 10^6 bytes; times are given in ns."""

import math
import re
from collections.abc import Sequence

UNKNOWN = "–"

KEPT = "\N{NO-BREAK SPACE}"
_UNIT = r"×|%|→|[kMGTP]?(?:B|FLOP)\b|[mµn]?s\b|[kMGmµn]?[JW]\b"
_NUMBER = re.compile(rf"(?<=\d) (?=(?:{_UNIT}))|(?<=×) (?=\d)|(?<=→) (?=\d)")

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
_TIMES = ("ns", "µs", "ms", "s")
_THOUSAND = 1000
_PREFIXES = {1e9: "G", 1e6: "M", 1e3: "k", 1.0: "", 1e-3: "m", 1e-6: "µ", 1e-9: "n"}


def bytes_text(count: int | float | None) -> str:
    """`49.2 kB`; a dash where unknown."""
    return UNKNOWN if count is None else _scaled(count, _UNITS, whole_from=0)


def _scaled(amount: float, units: Sequence[str], *, whole_from: float = math.inf) -> str:
    """Three digits and the unit that fits an amount of the first; whole_from: amounts of that one without decimals."""
    sign, value, unit = "−" if amount < 0 else "", abs(amount), 0
    # 999.6 would round to four digits: it goes to the next unit.
    while value >= _THOUSAND - 0.5 and unit < len(units) - 1:
        value /= _THOUSAND
        unit += 1
    return f"{sign}{_digits(value) if unit or value < whole_from else f'{value:.0f}'} {units[unit]}"


def _digits(value: float) -> str:
    """Three significant digits: `1.61`, `49.2`, `823`."""
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f}"


def flops_text(count: int | float | None) -> str:
    """`18.6 TFLOP`; a dash where unknown."""
    return UNKNOWN if count is None else bytes_text(count).removesuffix("B") + "FLOP"


def span_text(value: float, low: float, high: float, *, unit: str) -> str:
    """`544 J (381–715)`: a value and its range, all with the value's unit.  unit: `J` or `W`."""
    if not (value or low or high):
        return f"0 {unit}"
    scale = _scale(abs(value) or max(abs(low), abs(high)))
    ends = (_signed(end / scale) for end in (low, high))
    return f"{_signed(value / scale)} {_PREFIXES[scale]}{unit} ({'–'.join(ends)})"


def _scale(size: float) -> float:
    """The largest of the units of which it has one or more; of 999.6 the next."""
    return next((scale for scale in _PREFIXES if size >= scale * (1 - 0.5e-3)), min(_PREFIXES)) if size else 1.0


def _signed(value: float) -> str:
    return f"{'−' if value < 0 else ''}{_digits(abs(value))}"


def percent_text(share: float | None) -> str:
    """`37.1 %`; a dash where unknown."""
    return UNKNOWN if share is None else f"{_digits(100 * share)} %"


_NO_TIME_NS = 0.005
"""What rounding leaves of a difference of two times."""


def time_text(ns: int | float | None) -> str:
    """`61.0 ms`, `850 µs`, `0 s`; a dash where unknown."""
    if ns is None:
        return UNKNOWN
    return "0 s" if abs(ns) < _NO_TIME_NS else _scaled(ns, _TIMES, whole_from=1)


def joules_text(joules: float | None) -> str:
    """`41.0 J`, `850 µJ`, `1.20 MJ`; a dash where unknown."""
    return _energy_text(joules, ("µJ", "mJ", "J", "kJ", "MJ"), of_first=1e-6)


def watts_text(watts: float | None) -> str:
    """`105 W`, `1.20 kW`; a dash where unknown."""
    return _energy_text(watts, ("mW", "W", "kW", "MW"), of_first=1e-3)


def _energy_text(amount: float | None, units: Sequence[str], *, of_first: float) -> str:
    """of_first: the amount that is one of the first unit."""
    if amount is None:
        return UNKNOWN
    value = amount / of_first
    return _scaled(value, units) if value else f"0 {next(name for name in units if len(name) == 1)}"


def exact_text(count: int | None) -> str:
    """`1,610,612,736 B`; a dash where unknown."""
    return UNKNOWN if count is None else f"{count:,} B"


def ratio_text(ratio: float | None, qualifier: str = "") -> str:
    """`1.28 ×`, `at least 1.28 ×`."""
    if ratio is None:
        return UNKNOWN
    number = f"{ratio:.2f}" if ratio < 100 else f"{ratio:,.0f}"
    return f"{qualifier} {number} ×".strip()


_QUALIFIED = {"upper-bound": ("at most ", ""), "stated": ("", " by the compiler's word")}
"""`executions_are` -> what stands before the number and behind it."""


def times_text(executions: int | None, executions_are: str = "exact") -> str:
    """`80 ×`, `at most 80 ×`, `80 × by the compiler's word`; `? ×` where a trip count is unknown."""
    if executions is None:
        return "? ×"
    before, behind = _QUALIFIED.get(executions_are, ("", ""))
    return f"{before}{executions:,} ×{behind}"


def axes_text(axes: str) -> str:
    """`over pp and tp`; `over unknown axes` where the groups match none."""
    names = axes.split(",")
    return "over unknown axes" if axes in ("", "?") else "over " + " and ".join(names)


def count_text(number: int, noun: str) -> str:
    """`1 device`, `8 devices`."""
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"


def list_text(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def keep_units_together(words: str) -> str:
    """Prose with no-break spaces between numbers and units."""
    return _NUMBER.sub(KEPT, words)


def capitalize_first(words: str) -> str:
    """With a capital first letter."""
    return words[:1].upper() + words[1:]
