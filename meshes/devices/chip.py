"""A chip: what its data sheet says, the rates at which work runs on it, and what that work costs."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number of a chip.  low ≤ value ≤ high, in `unit`."""

    unit: str
    value: float
    low: float
    high: float
    source: str
    standing: str
    """`measured`, `published`, `derived` or `assumed`."""


Figures = Mapping[str, Figure]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chip:
    """One TPU generation, or a user's chips of one; figures are per chip unless the name says otherwise."""

    name: str
    """The generation, as libtpu spells it: it is part of the topology that the compiler is given."""
    title: str
    """The same, or the name that a user's file has."""
    calibrated_on: str = ""
    """The device on which a user's figures were calibrated; empty: no file says one."""
    sheet: Figures
    """The data sheet."""
    time: Figures
    """Rates of the schedule model, of a device."""
    energy: Figures
    """What work costs; `core_share` is the part of static power that follows the core's voltage."""
    voltage: Mapping[str, object]
    """Supply voltage against frequency, as a user's file has it; empty: nobody said."""
    own: frozenset[str] = frozenset()
    """Figures of a user's file that differ from the generation's: `time.launch_s`."""

    torus_dims: int
    wrap_multiple: int
    """A side of the slice closes into a ring when it is a multiple of this (and see `full_cubes`)."""
    full_cubes: bool
    """Whether every side must be such a multiple before any of them closes."""
    cores: int
    devices: int
    """What XLA sees: one device for each chip, or one for each core."""
    slices: tuple[str, ...]
    """The shapes that can be asked for, smallest first; for 3D, the ones below one 4x4x4 cube."""
    largest_side: int
    device_kinds: tuple[str, ...]
    """How JAX names its devices."""

    @property
    def bf16_flops(self) -> float:
        """FLOP/s."""
        return self.sheet["bf16_flops"].value

    @property
    def hbm_bytes(self) -> int:
        return int(self.sheet["hbm_bytes"].value)

    @property
    def hbm_bytes_per_s(self) -> float:
        return self.sheet["hbm_bytes_per_s"].value

    @property
    def ici_link_bytes_per_s(self) -> float | None:
        """One way, one link, by the data sheet: the peak that metrics compare with.  The schedule model uses the rate
        that collectives reach, `time.link_bytes_per_s`."""
        return self._sheet_value("ici_link_bytes_per_s")

    @property
    def clock_hz(self) -> float | None:
        """`None`, as of a link, where no source states it."""
        return self._sheet_value("clock_hz")

    @property
    def hbm_bytes_per_device(self) -> int:
        return self.hbm_bytes // self.devices

    def _sheet_value(self, key: str) -> float | None:
        return self.sheet[key].value if key in self.sheet else None

    def own_of(self, part: str) -> set[str]:
        """Keys of a user's own figures in `sheet`, `time` or `energy`."""
        return {key for place in self.own for of, _, key in [place.partition(".")] if of == part}

    def wraps(self, shape: tuple[int, ...]) -> tuple[bool, ...]:
        """For each side of a slice of this shape, whether its ends are linked."""
        closed = tuple(side % self.wrap_multiple == 0 for side in shape)
        return closed if all(closed) or not self.full_cubes else (False,) * len(shape)
