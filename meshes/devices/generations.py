"""TPU generations: one cited table of what their chips and links can do.

Sources: [cloud] the system-architecture page of each generation in Google Cloud's TPU documentation;
[book] "How to Scale Your Model", chapter "How to Think About TPUs" (one-way bandwidth of a link);
[v4] Jouppi et al., ISCA 2023 (clock, torus, 4x4x4 cubes); [jax] the devices and clock that the TPU
compiler itself reports.  `None` where no source states a figure.
"""

from dataclasses import dataclass
from types import MappingProxyType

from meshes.process.errors import MeshError

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One TPU generation; figures are per chip unless the name says otherwise."""

    name: str
    """As libtpu spells it: it is part of the topology that the compiler is given."""
    bf16_flops: float
    """FLOP/s."""
    hbm_bytes: int
    hbm_bytes_per_s: float
    ici_link_bytes_per_s: float | None
    """One way, one link, by the data sheet: the peak that metrics compare with.  The schedule model uses the rate that
    collectives reach, `link_bytes_per_s` in `compare/schedule/constants.py`."""
    torus_dims: int
    wrap_multiple: int
    """A side of the slice closes into a ring when it is a multiple of this (and see `full_cubes`)."""
    full_cubes: bool
    """Whether every side must be such a multiple before any of them closes."""
    cores: int
    devices: int
    """What XLA sees: one device for each chip, or one for each core."""
    clock_hz: float | None
    slices: tuple[str, ...]
    """The shapes that can be asked for, smallest first; for 3D, the ones below one 4x4x4 cube."""
    largest_side: int

    @property
    def hbm_bytes_per_device(self) -> int:
        return self.hbm_bytes // self.devices

    def wraps(self, shape: tuple[int, ...]) -> tuple[bool, ...]:
        """For each side of a slice of this shape, whether its ends are linked."""
        closed = tuple(side % self.wrap_multiple == 0 for side in shape)
        return closed if all(closed) or not self.full_cubes else (False,) * len(shape)


_PLANE = ("1x1", "1x2", "2x2", "2x4", "4x4", "4x8", "8x8", "8x16", "16x16")
_CUBE = ("1x1x1", "1x2x1", "2x2x1", "2x2x2", "2x2x4", "2x4x4")

_TABLE = (
    Generation(
        name="v5e", bf16_flops=197e12, hbm_bytes=16 * GIB, hbm_bytes_per_s=819e9,
        ici_link_bytes_per_s=45e9, torus_dims=2, wrap_multiple=16, full_cubes=False,
        cores=1, devices=1, clock_hz=1.5e9, slices=_PLANE, largest_side=16,
    ),
    Generation(
        name="v6e", bf16_flops=918e12, hbm_bytes=32 * GIB, hbm_bytes_per_s=1638e9,
        ici_link_bytes_per_s=90e9, torus_dims=2, wrap_multiple=16, full_cubes=False,
        cores=1, devices=1, clock_hz=1.75e9, slices=_PLANE, largest_side=16,
    ),
    Generation(
        name="v4", bf16_flops=275e12, hbm_bytes=32 * GIB, hbm_bytes_per_s=1200e9,
        ici_link_bytes_per_s=45e9, torus_dims=3, wrap_multiple=4, full_cubes=True,
        cores=2, devices=2, clock_hz=1.05e9, slices=_CUBE, largest_side=64,
    ),
    Generation(
        name="v5p", bf16_flops=459e12, hbm_bytes=95 * GIB, hbm_bytes_per_s=2765e9,
        ici_link_bytes_per_s=90e9, torus_dims=3, wrap_multiple=4, full_cubes=True,
        cores=2, devices=1, clock_hz=1.75e9, slices=_CUBE, largest_side=64,
    ),
    Generation(
        name="tpu7x", bf16_flops=2307e12, hbm_bytes=192 * GIB, hbm_bytes_per_s=7380e9,
        ici_link_bytes_per_s=None, torus_dims=3, wrap_multiple=4, full_cubes=True,
        cores=2, devices=2, clock_hz=None, slices=_CUBE, largest_side=64,
    ),
)  # fmt: skip

GENERATIONS = MappingProxyType({row.name: row for row in _TABLE})


def generation(name: str) -> Generation:
    """The row of the table with this name."""
    if name not in GENERATIONS:
        raise MeshError(f"unknown TPU generation {name!r}; known are {', '.join(GENERATIONS)}")
    return GENERATIONS[name]
