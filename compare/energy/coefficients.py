"""What work costs in joules, by TPU generation: one table, each figure with unit, range, source and standing.

[neusim] `configs/chips/tpuv*.json` of platformxlab/NeuSim: its watts at full rate ÷ the full rate of the data sheet;
[cloud] Google Cloud's TPU documentation (v4: 90, 170 and 192 W at least, on average and at most, measured);
[hbm2] O'Connor et al., MICRO 2017: 3.92 pJ/bit for an access to a stack of HBM2; [hbm3e] SK hynix, IEDM 2023, as cited
by others: 3.44; [talk] *Enabling energy efficiency for distributed machine learning* (AstraWattch); [trillium] Google's
announcement of v6e: 67 % more energy-efficient than v5e; [ironwood] of tpu7x: twice v6e's performance per watt.
docs/energy.md says how each was derived.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from compare.timeline.arrays import Floats
from compare.timeline.errors import TimingError

MATRIX, VECTOR, MEMORY, ICI, DCN, STATIC = "matrix", "vector", "memory", "ici", "dcn", "static"

_PER_BYTE = {"pJ/bit": 8e-12, "pJ/byte": 1e-12}
UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        MATRIX: {"pJ/FLOP": 1e-12},
        VECTOR: {"pJ/op": 1e-12},
        MEMORY: _PER_BYTE,
        ICI: _PER_BYTE,
        DCN: _PER_BYTE,
        STATIC: {"W": 1.0},
    }
)
"""Component -> unit -> the joules of one unit: of a FLOP, an operation, a byte, a byte over a link of the torus, a byte
to another slice, a second of a chip."""

COMPONENTS = tuple(UNITS)
"""In the order of `amounts.AMOUNTS`: what is counted of a component stands in the same place there."""

STANDINGS = ("measured", "published", "derived", "assumed")
BOUNDS = VALUE, LOW, HIGH = "value", "low", "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """What one unit of a component's work costs.  low ≤ value ≤ high, in `unit`."""

    value: float
    low: float
    high: float
    unit: str
    source: str
    standing: str
    """One of STANDINGS: how well it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """The coefficients of one chip."""

    name: str
    """The generation, or the name of a user's file."""
    of: Mapping[str, Coefficient]
    """Every one of COMPONENTS."""
    core_share: Coefficient
    """Of the static power, what is on the core's supply and follows its voltage; the rest never does."""
    calibrated_on: str = field(default="")
    """The device on which they were calibrated; empty where they were not."""

    def rates(self, bound: str = VALUE) -> Floats:
        """Joules per unit of what is counted, in the order of COMPONENTS; bound: VALUE, LOW or HIGH."""
        rows = ((name, self.of[name]) for name in COMPONENTS)
        return np.array([getattr(row, bound) * UNITS[name][row.unit] for name, row in rows])


def _row(value: float, low: float, high: float, unit: str, source: str, standing: str = "derived") -> Coefficient:
    return Coefficient(value=value, low=low, high=high, unit=unit, source=source, standing=standing)


def _matrix(value: float, low: float, high: float, source: str) -> Coefficient:
    return _row(value, low, high, "pJ/FLOP", f"{source}; [neusim] is of systolic arrays and their memory")


def _vector(value: float) -> Coefficient:
    source = "[neusim] a vector unit ÷ (1,024 lanes × clock); range assumed: half to four times"
    return _row(value, value / 2, value * 4, "pJ/op", source)


def _memory(value: float, low: float, high: float, source: str) -> Coefficient:
    return _row(value, low, high, "pJ/bit", f"[neusim] on the chip + {source}, low without the chip; high assumed")


def _ici(value: float) -> Coefficient:
    source = "[neusim]; [talk] 2 pJ/bit for a scale-up network; range assumed"
    return _row(value, 1.1 if value < 2 else 1.5, 4.0, "pJ/bit", source)


def _static(value: float) -> Coefficient:
    source = "[neusim] sum of its static powers; range assumed: 30 % less to 30 % more"
    return _row(value, round(0.7 * value, 1), round(1.3 * value, 1), "W", source)


_AS_V4 = "v4's most, 192 W [cloud], at the data sheet's peak; low with memory at its rate besides; high [neusim]"
_DCN = _row(
    25.0, 10.0, 100.0, "pJ/bit", "[talk] a scale-out network; range assumed: to cards, optics and switches", "published"
)
_IDLE_V4 = _row(90.0, 81.0, 99.0, "W", "[cloud] v4's least power; range assumed: 10 %", "measured")
_IDLE_V5E = _row(
    64.0, 53.0, 87.6, "W",
    "[cloud] v4 idle takes 90/192 of its most; range: [neusim], whose file repeats v5p's watts, by v5e's units",
)  # fmt: skip

_TABLE = {
    "v4": {
        MATRIX: _matrix(0.35, 0.16, 0.60, _AS_V4),
        VECTOR: _vector(1.48),
        MEMORY: _memory(5.84, 3.92, 8.0, "[hbm2]"),
        ICI: _ici(2.21), DCN: _DCN, STATIC: _IDLE_V4,
    },
    "v5e": {
        MATRIX: _matrix(0.35, 0.19, 0.83, _AS_V4),
        VECTOR: _vector(1.73),
        MEMORY: _memory(5.50, 3.92, 7.5, "[hbm2]"),
        ICI: _ici(2.21), DCN: _DCN, STATIC: _IDLE_V5E,
    },
    "v5p": {
        MATRIX: _matrix(0.42, 0.18, 0.60, _AS_V4),
        VECTOR: _vector(1.52),
        MEMORY: _memory(5.50, 3.92, 7.5, "[hbm2]"),
        ICI: _ici(2.21), DCN: _DCN, STATIC: _static(114.5),
    },
    "v6e": {
        MATRIX: _matrix(0.29, 0.17, 0.61, "v5e's, by [trillium]; low [neusim]"),
        VECTOR: _vector(0.41),
        MEMORY: _memory(5.02, 3.92, 6.9, "[hbm2]"),
        ICI: _ici(1.58), DCN: _DCN, STATIC: _static(106.8),
    },
    "tpu7x": {
        MATRIX: _matrix(0.145, 0.09, 0.24, "v6e's, by [ironwood]; high as its pod's 10 MW allow"),
        VECTOR: _vector(0.36),
        MEMORY: _memory(4.54, 3.44, 6.2, "[hbm3e]"),
        ICI: _ici(1.58), DCN: _DCN, STATIC: _static(114.6),
    },
}  # fmt: skip

_CORE_SHARES = {
    "v4": (0.37, 0.13, 0.83), "v5e": (0.29, 0.06, 0.70), "v5p": (0.33, 0.12, 0.72), "v6e": (0.42, 0.07, 0.81),
    "tpu7x": (0.46, 0.14, 0.82),
}  # fmt: skip


def _core_share(value: float, low: float, high: float) -> Coefficient:
    source = "[neusim] static watts of arrays, vector units and their memory; low without it, high with what is other"
    return _row(value, low, high, "of static", source)


COEFFICIENTS: Mapping[str, Coefficients] = MappingProxyType(
    {
        name: Coefficients(name=name, of=MappingProxyType(rows), core_share=_core_share(*_CORE_SHARES[name]))
        for name, rows in _TABLE.items()
    }
)


def coefficients(generation: str) -> Coefficients:
    """The table's row of a generation.  `TimingError` for an unknown one."""
    if generation not in COEFFICIENTS:
        raise TimingError(f"no energy coefficients for {generation!r}; known are {', '.join(COEFFICIENTS)}")
    return COEFFICIENTS[generation]
