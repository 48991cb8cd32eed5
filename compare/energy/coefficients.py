"""What work costs in joules, by the energies of a chip's file (`meshes/devices/`).

docs/energy.md says how each figure of the generations was derived.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from compare.timeline.arrays import Floats
from meshes.devices.chip import Chip, Figure
from meshes.devices.generations import generation

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

BOUNDS = VALUE, LOW, HIGH = "value", "low", "high"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """The coefficients of one chip."""

    name: str
    """The generation, or the name of a user's file."""
    of: Mapping[str, Figure]
    """Every one of COMPONENTS."""
    core_share: Figure
    """Of the static power, what is on the core's supply and follows its voltage; the rest never does."""
    calibrated_on: str = ""
    """The device on which they were calibrated; empty where they were not."""

    def rates(self, bound: str = VALUE) -> Floats:
        """Joules per unit of what is counted, in the order of COMPONENTS; bound: VALUE, LOW or HIGH."""
        rows = ((name, self.of[name]) for name in COMPONENTS)
        return np.array([getattr(row, bound) * UNITS[name][row.unit] for name, row in rows])


def coefficients(chip: Chip | str) -> Coefficients:
    """Those of a chip, or of the generation with this name."""
    if isinstance(chip, str):
        chip = generation(chip)
    return Coefficients(
        name=chip.title,
        of=MappingProxyType({component: chip.energy[component] for component in COMPONENTS}),
        core_share=chip.energy["core_share"],
        calibrated_on=chip.calibrated_on if chip.own_of("energy") else "",
    )
