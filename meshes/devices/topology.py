"""A slice of chips, or several: its grammar, its coordinates, the smallest that holds a mesh."""

import re
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple, Self

from meshes.devices.chip import Chip
from meshes.devices.generations import generation
from meshes.devices.mesh_spec import MOST_DEVICES
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

_NAME = re.compile(r"(?:([1-9]\d{0,5})x)?([a-z]+\d+[a-z]*):([1-9]\d{0,5}(?:x[1-9]\d{0,5})*)", re.ASCII)


class Place(NamedTuple):
    """Where one device is: its slice, its chip's coordinates on the torus, its core on the chip."""

    slice_index: int
    x: int
    y: int
    z: int
    core: int


@dataclass(frozen=True, slots=True)
class Topology:
    """`slices` equal slices of chips, each a torus (or part of one) of this shape."""

    generation_name: str
    shape: tuple[int, ...]
    slices: int = 1

    @classmethod
    def parse(cls, name: str) -> Self:
        """`"v5e:2x4"`, `"v5p:4x4x8"`, or `"2xv5e:4x4"` for two slices."""
        match = _NAME.fullmatch(name)
        if not match:
            raise MeshError(
                f"cannot read topology {quote(name)}; write generation:shape, like 'v5e:2x4' or '2xv5e:4x4'"
            )
        slices, chip, sides = match.groups()
        topology = cls(chip, tuple(map(int, sides.split("x"))), int(slices or 1))
        topology._check(name)
        return topology

    def _check(self, name: str) -> None:
        row = self.generation
        if self.num_devices > MOST_DEVICES:
            many = f"{self.num_devices:,}" if self.num_devices < 2**63 else "too many"
            raise MeshError(f"{name} has {many} devices; there are at most {MOST_DEVICES:,}")
        sides = "x".join(map(str, self.shape))
        cube = len(self.shape) == 3 and all(side % 4 == 0 and side <= row.largest_side for side in self.shape)
        if sides not in row.slices and not (row.torus_dims == 3 and cube):
            larger = ", or sides that are multiples of 4" if row.torus_dims == 3 else ""
            raise MeshError(
                f"{row.name} has no slice {sides!r} (in {name!r}); its slices are {', '.join(row.slices)}{larger}"
            )

    @classmethod
    def smallest(cls, num_devices: int, *, generation_name: str = "v5e") -> Self:
        """The smallest slice of this generation with exactly `num_devices` devices.

        A program over a part of a slice is refused by the TPU compiler, so that "holds" means "is filled by".
        """
        row = generation(generation_name)
        sizes = {prod(map(int, name.split("x"))) * row.devices: name for name in reversed(row.slices)}
        if num_devices not in sizes:
            available = ", ".join(map(str, sorted(sizes)))
            raise MeshError(
                f"no single {row.name} slice has {num_devices} devices (there are {available}); "
                f"choose sizes whose product is one of these, or name a topology, like '@v5p:4x4x8' or '@2xv5e:16x16'"
            )
        return cls.parse(f"{row.name}:{sizes[num_devices]}")

    @property
    def generation(self) -> Chip:
        return generation(self.generation_name)

    @property
    def slice_name(self) -> str:
        """One slice, as the TPU compiler names it: `v5e:2x4`."""
        return f"{self.generation_name}:{'x'.join(map(str, self.shape))}"

    @property
    def name(self) -> str:
        return f"{self.slices}x{self.slice_name}" if self.slices > 1 else self.slice_name

    @property
    def num_chips(self) -> int:
        return prod(self.shape) * self.slices

    @property
    def num_devices(self) -> int:
        return self.num_chips * self.generation.devices

    @property
    def sides(self) -> tuple[int, int, int]:
        """The shape as x, y, z; a plane has z = 1."""
        x, y, z = (*self.shape, 1)[:3]
        return x, y, z

    @property
    def wraps(self) -> tuple[bool, ...]:
        """For each side, whether its ends are linked into a ring."""
        return self.generation.wraps(self.shape)

    def places(self) -> tuple[Place, ...]:
        """Every device: slices outermost, then x, y, z, then the cores of a chip."""
        x, y, z = self.sides
        cores = self.generation.devices
        return tuple(Place(*at) for at in product(range(self.slices), range(x), range(y), range(z), range(cores)))
