"""What a metric gives: a number, and what it was made of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from compare.ccl_bench_metrics.errors import NotApplicable

Detail = float | int | str | None | Mapping[str, "Detail"] | list["Detail"]


@dataclass(frozen=True, slots=True)
class Value:
    """A number, and the table behind it, for `--json`."""

    number: float
    details: Mapping[str, Detail] = field(default_factory=dict)


def in_seconds(value_ns: float | int | None) -> float | None:
    return None if value_ns is None else value_ns / 1e9


def applicable(number: float | int | None, why_not: str) -> float:
    """The number.  `NotApplicable` where there is none."""
    if number is None or not math.isfinite(number):
        raise NotApplicable(why_not)
    return float(number)
