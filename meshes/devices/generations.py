"""TPU generations: a cited file for each, `<generation>.toml` beside this one, read when it is first asked for.

Sources of the data sheets: [cloud] the system-architecture page of each generation in Google Cloud's TPU documentation
(v4: 90, 170 and 192 W at least, on average and at most, measured); [book] "How to Scale Your Model", chapter "How to
Think About TPUs" (one-way bandwidth of a link); [v4] Jouppi et al., ISCA 2023 (clock, torus, 4x4x4 cubes); [jax] the
devices, the clock and the estimates that the TPU compiler itself reports.  A key is left out where no source states it.

Of the energies: [neusim] `configs/chips/tpuv*.json` of platformxlab/NeuSim: its watts at full rate ÷ the full rate of
the data sheet; [hbm2] O'Connor et al., MICRO 2017: 3.92 pJ/bit for an access to a stack of HBM2; [hbm3e] SK hynix, IEDM
2023, as cited by others: 3.44; [talk] *Enabling energy efficiency for distributed machine learning* (AstraWattch);
[trillium] Google's announcement of v6e: 67 % more energy-efficient than v5e; [ironwood] of tpu7x: twice v6e's
performance per watt.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from meshes.process.errors import MeshError

if TYPE_CHECKING:
    from meshes.devices.chip import Chip

NAMES = ("v5e", "v6e", "v4", "v5p", "tpu7x")


class _Generations(Mapping[str, "Chip"]):
    """Read one by one, as they are asked for."""

    def __getitem__(self, name: str) -> "Chip":
        return _read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


GENERATIONS = _Generations()


@cache
def _read(name: str) -> "Chip":
    if name not in NAMES:
        raise KeyError(name)
    from pathlib import Path

    from meshes.devices.chip_file import read_chip  # with TOML, which a list of names does not need

    return read_chip(Path(__file__).with_name(f"{name}.toml"))


def generation(name: str) -> "Chip":
    """The chip with this name."""
    if name not in NAMES:
        raise MeshError(f"unknown TPU generation {name!r}; known are {', '.join(NAMES)}")
    return GENERATIONS[name]
