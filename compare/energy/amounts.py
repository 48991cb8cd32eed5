"""Joules from amounts: of each component what is counted × its coefficient.  Pure arithmetic, in and out arrays.

How other rooms use it:

```python
rates = joule_rates(generation("v5e"))         # or joule_rates(read_chip(path, base), LOW)
joules(amounts, rates)                         # (…, 6) -> (…, 6): by component, whatever the rows are
span(amounts, chip)                            # least and most total over the box of all coefficients' ranges
span_of_ratio(above, below, chip)              # of a ratio, with the same coefficients above and below
```

`amounts` are rows of AMOUNTS: of an event, a step, a verdict, or a difference of two (then also negative).  Static
power is work like any other, in seconds × chips: `static_amounts`.  Everything is linear in both, so sums over events,
verdicts or frameworks add up exactly as their energies do.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from compare.energy.coefficients import COMPONENTS, HIGH, LOW, joule_rates
from compare.timeline.arrays import Floats
from compare.timeline.columns import WORK_COLUMNS
from meshes.devices.chip import Chip

CHIP_S = "chip_s"
AMOUNTS = (*WORK_COLUMNS, CHIP_S)
"""What is counted for each of COMPONENTS, in their order: FLOPs, operations, bytes, bytes × links, bytes, seconds of a
chip."""


@dataclass(frozen=True, slots=True)
class Span:
    """The least and the most that a figure can be."""

    low: float
    high: float


def joules(amounts: Floats, rates: Floats) -> Floats:
    """By component: amounts × rates, of rows of AMOUNTS or of one; rates: of `joule_rates`, or changed."""
    if np.shape(amounts)[-1:] != (len(COMPONENTS),) or np.shape(rates) != (len(COMPONENTS),):
        raise ValueError(f"rows of {len(COMPONENTS)} amounts and as many rates, not {amounts.shape} and {rates.shape}")
    products: Floats = amounts * rates
    return products


def event_amounts(events: pd.DataFrame) -> Floats:
    """The rows of a timeline's events, (events, 6), from their WORK_COLUMNS; they have no static work: the step has."""
    rows = np.zeros((len(events), len(AMOUNTS)))
    for at, name in enumerate(WORK_COLUMNS):
        rows[:, at] = events[name].to_numpy(np.float64)
    return rows


def event_joules(events: pd.DataFrame, rates: Floats) -> Floats:
    """The energy of each event on its device, (events,): what is counted × rates, without any static energy."""
    energies = np.zeros(len(events))
    for name, rate in zip(WORK_COLUMNS, rates.tolist()[:-1], strict=True):
        energies += events[name].to_numpy(np.float64) * rate
    return energies


def static_amounts(ns: Floats | float, *, chips: float) -> Floats:
    """The rows of durations of so many chips, whatever these do meanwhile."""
    rows = np.zeros((*np.shape(ns), len(AMOUNTS)))
    rows[..., AMOUNTS.index(CHIP_S)] = np.asarray(ns) * (chips / 1e9)
    return rows


def span(amounts: Floats, chip: Chip) -> Span:
    """The least and the most of one row's total, each coefficient anywhere in its range; of a difference too."""
    ends = np.stack((joules(amounts, joule_rates(chip, LOW)), joules(amounts, joule_rates(chip, HIGH))))
    return Span(float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum()))


def span_of_ratio(above: Floats, below: Floats, chip: Chip, *, time_error: float = 0.0) -> Span:
    """The same of the ratio of two rows' totals, both with the same coefficients; NaN where the lower row can be 0.

    A ratio of sums with the same positive coefficients is least and most at corners of the box of their ranges.
    time_error: each row's seconds are off by as much, up or down, each on its own; 0 takes them as exact.
    """
    low, high = joule_rates(chip, LOW), joule_rates(chip, HIGH)
    corners = np.array([np.where(at, high, low) for at in product((False, True), repeat=len(COMPONENTS))])
    ratios = []
    for sign in (-time_error, time_error):
        divisors = corners @ _stretch(below, 1 - sign)
        if (divisors <= 0).any():
            return Span(float("nan"), float("nan"))
        ratios.append(corners @ _stretch(above, 1 + sign) / divisors)
    return Span(float(np.min(ratios)), float(np.max(ratios)))


def _stretch(row: Floats, factor: float) -> Floats:
    """The row of a step that takes so much longer."""
    stretched: Floats = np.array(row, np.float64)
    stretched[AMOUNTS.index(CHIP_S)] *= factor
    return stretched
