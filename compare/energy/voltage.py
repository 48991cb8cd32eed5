"""Supply voltage against frequency: a table of a chip file, or a line of slope γ; both relative to the nominal point.

```toml
[voltage]
gamma = 0.5                                  # V/V0 = 1 - gamma (1 - f/f0), from 0 (fixed) to 1 (proportional)
# points = [[0.5, 0.8], [1.0, 1.0], [1.1, 1.06]]   # or [f/f0, V/V0] in rising order: straight between two points
```

Without gamma and points γ is 0.5, which is assumed: from 0 to 1 all are shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from compare.timeline.errors import TimingError
from meshes.process.documents import name_unknown_key
from meshes.process.one_line import quote

GAMMA = 0.5
"""Assumed.  NeuSim's voltages of v5p, from 0.45 V at a standstill to 0.70 V at 1.7 GHz, are a line of 0.36."""
GAMMAS = (0.0, 1.0)
"""The range that is assumed."""
MOST_POINTS = 100
STEP = 0.01
"""Of a central difference at the nominal point, as a fraction of the frequency or of another speed."""


@dataclass(frozen=True, slots=True)
class Voltage:
    """V/V0 by f/f0."""

    gamma: float | None = GAMMA
    points: tuple[tuple[float, float], ...] = ()
    """(f/f0, V/V0), f rising; where there are any they count, and gamma is `None`."""
    is_assumed: bool = True
    """Whether nobody gave them: then every line from GAMMAS[0] to GAMMAS[1] may be right."""
    core_share: float | None = None
    """Of static power, what is taken to follow this voltage; `None`: the chip's, with its range."""

    def at(self, frequency: float) -> float:
        """V/V0 at f/f0.  `TimingError` outside of a table, or where a line falls to nothing.

        A table that ends at the nominal point goes on for STEP along its last line, which a derivative there needs.
        """
        if self.gamma is not None:
            value = 1 - self.gamma * (1 - frequency)
            if value <= 0:
                raise TimingError(f"with gamma {self.gamma:g} there is no voltage at {frequency:g} of the frequency")
            return value
        points = _extend(self.points) if abs(frequency - 1) <= STEP + 1e-12 else self.points
        frequencies, voltages = zip(*points, strict=True)
        if not frequencies[0] <= frequency <= frequencies[-1]:
            raise TimingError(
                f"voltage.points are of {frequencies[0]:g} to {frequencies[-1]:g} of the frequency, not of "
                f"{frequency:g}; add a point, or ask for less"
            )
        return float(np.interp(frequency, frequencies, voltages))

    @property
    def slope(self) -> float:
        """d ln V / d ln f at the nominal point, over ±1 %."""
        if self.gamma is not None:
            return self.gamma
        return float(np.log(self.at(1 + STEP) / self.at(1 - STEP)) / np.log((1 + STEP) / (1 - STEP)))

    def __str__(self) -> str:
        if self.gamma is None:
            return f"V(f) by a table of {len(self.points)} points"
        return f"V/V0 = 1 - {self.gamma:g} (1 - f/f0)"


def parse_voltage(table: Mapping[str, object]) -> Voltage:
    """Of a chip's `voltage`; the assumed line where it is empty.  `TimingError`, which names the key."""
    for key in table:
        if key not in ("gamma", "points"):
            raise TimingError(name_unknown_key(key, ("gamma", "points"), "voltage."))
    if len(table) == 2:
        raise TimingError("voltage: gamma or points, not both")
    if "points" in table:
        return Voltage(None, _points(table["points"]), is_assumed=False)
    return Voltage(_fraction(table.get("gamma", GAMMA), "gamma"), is_assumed="gamma" not in table)


def _fraction(value: object, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise TimingError(f"voltage.{key}: a number from 0 to 1, not {quote(value)}")
    return float(value)


def _points(rows: object) -> tuple[tuple[float, float], ...]:
    if not isinstance(rows, list) or not 2 <= len(rows) <= MOST_POINTS:
        raise TimingError(f"voltage.points: two to {MOST_POINTS} pairs of f/f0 and V/V0, not {quote(rows)}")
    points = tuple(_point(row) for row in rows)
    frequencies = [frequency for frequency, _ in points]
    if any(after <= before for before, after in pairwise(frequencies)):
        raise TimingError("voltage.points: each f/f0 is larger than the one before")
    if not any(abs(frequency - 1) < 1e-9 and abs(voltage - 1) < 1e-9 for frequency, voltage in points):
        raise TimingError("voltage.points: one of them is [1.0, 1.0], the nominal point")
    return points


def _extend(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """With a point at 1 ± STEP where the table ends before that, on the line through its last two points."""
    below, above = 1 - STEP, 1 + STEP
    before = [(below, _on_line(points[0], points[1], below))] if points[0][0] > below else []
    after = [(above, _on_line(points[-2], points[-1], above))] if points[-1][0] < above else []
    return [*before, *points, *after]


def _on_line(first: tuple[float, float], second: tuple[float, float], frequency: float) -> float:
    return first[1] + (second[1] - first[1]) * (frequency - first[0]) / (second[0] - first[0])


def _point(row: object) -> tuple[float, float]:
    numbers: Sequence[object] = row if isinstance(row, list) else ()
    values = [float(each) for each in numbers if isinstance(each, int | float) and not isinstance(each, bool)]
    if len(numbers) != 2 or len(values) != 2 or not all(0 < value < 100 for value in values):
        raise TimingError(f"voltage.points: [f/f0, V/V0], two positive numbers, not {quote(row)}")
    return values[0], values[1]
