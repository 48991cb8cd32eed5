"""What work costs in joules, by the energies of a chip's file (`meshes/devices/`).

docs/energy.md says how each figure of the generations was derived.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from compare.timeline.arrays import Floats
from meshes.devices.chip import Chip

MATRIX, VECTOR, MEMORY, ICI, DCN, STATIC = "matrix", "vector", "memory", "ici", "dcn", "static"

JOULES: Mapping[str, float] = MappingProxyType(
    {"pJ/FLOP": 1e-12, "pJ/op": 1e-12, "pJ/bit": 8e-12, "pJ/byte": 1e-12, "W": 1.0}
)
"""Unit of a coefficient -> the joules of one of what is counted: a FLOP, an operation, a byte, a second of a chip."""

COMPONENTS = (MATRIX, VECTOR, MEMORY, ICI, DCN, STATIC)
"""In the order of `amounts.AMOUNTS`: what is counted of a component stands in the same place there."""

BOUNDS = VALUE, LOW, HIGH = "value", "low", "high"


def joule_rates(chip: Chip, bound: str = VALUE) -> Floats:
    """Joules per unit of what is counted, in the order of COMPONENTS; bound: VALUE, LOW or HIGH."""
    rows = (chip.energy[name] for name in COMPONENTS)
    return np.array([getattr(row, bound) * JOULES[row.unit] for row in rows])


def energy_calibrated_on(chip: Chip) -> str:
    """The device on which a user's coefficients were calibrated; empty where the generation's stand."""
    return chip.calibrated_on if chip.own_of("energy") else ""
