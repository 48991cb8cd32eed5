"""The published measurements, and the small programs compiled for comparison with them."""

import gzip
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compare.schedule.links import Torus
from meshes.devices.chip import Chip
from meshes.devices.generations import generation
from meshes.devices.topology import Place

HERE = Path(__file__).parent
MEASUREMENTS, PROGRAMS = HERE / "published.toml", HERE / "programs.json.gz"
COMPILED_STEPS = {"v5e-gather-matmul-2x2"}
"""The steps whose program is described exactly enough to be rewritten."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One figure that others measured."""

    id: str
    what: str
    role: str
    generation: str
    source: str
    quoted: str
    timing: str
    """`device`: of the operation alone; `host`: of the whole program, dispatch included."""
    fields: Mapping[str, Any] = field(repr=False)

    @property
    def is_program(self) -> bool:
        """Whether it is represented by a small program."""
        return self.what != "step" or self.id in COMPILED_STEPS

    @property
    def slice(self) -> str:
        """The slice, as the compiler names its shape; one chip is looked at as one of four."""
        sides = self._sides(self.fields["topology"])
        return "2x2" if sides == (1, 1) else "x".join(map(str, sides))

    @property
    def block(self) -> tuple[int, ...]:
        """The chips of one group: what of each side of the slice it covers."""
        shape = self.fields.get("group_shape")
        return self._sides("x".join(map(str, shape))) if shape else self._sides(self.slice)

    def _sides(self, text: str) -> tuple[int, ...]:
        """A plane is named with its shorter side first."""
        sides = tuple(map(int, text.split("x")))
        slice_sides = tuple(map(int, self.fields["topology"].split("x")))
        return sides[::-1] if len(slice_sides) == 2 and slice_sides[0] > slice_sides[1] else sides

    def request(self) -> str:
        """The request to `benchmarks.small_programs`."""
        return json.dumps({**self.fields, "slice": self.slice, "block": self.block})


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program, and where its logical devices sit."""

    text: str
    places: tuple[Place, ...]

    def torus(self, row: Chip, *, on_chip_weight: float) -> Torus:
        x, y, z = (1 + max((place[1 + side] for place in self.places), default=0) for side in range(3))
        wraps = row.wraps((x, y, z)[: row.torus_dims])
        places = self.places or (Place(0, 0, 0, 0, 0),)
        return Torus(places, (x, y, z), wraps, on_chip_weight)


def measurements() -> list[Measurement]:
    """All of them, in the file's order."""
    rows = tomllib.loads(MEASUREMENTS.read_text(encoding="utf-8"))["measurement"]
    keys = ("id", "what", "role", "generation", "source", "quoted", "timing")
    return [Measurement(*(row[key] for key in keys), fields=row) for row in rows]


def programs() -> dict[str, Program]:
    """By the measurement's id."""
    rows = json.loads(gzip.decompress(PROGRAMS.read_bytes()))
    return {name: Program(row["hlo"], tuple(Place(*place) for place in row["places"])) for name, row in rows.items()}


def save(compiled: Mapping[str, Program]) -> None:
    """Equal programs give an equal file."""
    rows = {name: {"hlo": program.text, "places": program.places} for name, program in sorted(compiled.items())}
    PROGRAMS.write_bytes(gzip.compress(json.dumps(rows).encode(), mtime=0))


def chip(measurement: Measurement) -> Chip:
    return generation(measurement.generation)
