"""Rates per TPU generation that data sheets do not give, each with its source; the data sheets are
`meshes.devices.generations`.

fit: fitted to published measurements, named by their ids in `benchmarks/published.toml`; a test fits them again.
[cloud] Google Cloud's TPU documentation; [book] "How to Scale Your Model"; [jax] the compiler's own figures.
assumed: no source; the basis of the guess follows.
"""

from dataclasses import dataclass
from types import MappingProxyType

from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and its source."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The constants of one generation, per chip unless the name says otherwise."""

    name: str
    clock_hz: Figure | None = None
    """Set only where `meshes.devices.generations` has no clock."""
    cycle_factor: Figure
    """Measured time ÷ (the compiler's estimated cycles ÷ clock)."""
    copy_bytes_per_cycle: Figure
    """Bytes (read and written) per cycle in the compiler's estimates, per device."""
    window_cycles: Figure
    """Cycles that the compiler adds for every window of a loop."""
    hbm_reach: Figure
    """The fraction of the data sheet's memory bandwidth that an operation reaches."""
    link_bytes_per_s: Figure
    """Of one link, one direction, as reached by a collective; the data sheet's is `ici_link_bytes_per_s`."""
    launch_s: Figure
    """Latency of a collective before its first step."""
    hop_s: Figure
    """Latency of a step to a neighbouring chip, without its bytes."""
    chip_bytes_per_s: Figure
    """Between the devices of one chip, one direction."""
    dcn_bytes_per_s: Figure
    """A chip's share of its host's network cards, one direction."""
    dcn_launch_s: Figure


def _fit(value: float, *ids: str) -> Figure:
    return Figure(value, f"fit: {', '.join(ids)}")


_HOP = Figure(4.6567e-7, "assumed: as v6e")
_ESTIMATE = Figure(1.0, "assumed: the estimate as it is")
_REACH = Figure(0.83004, "assumed: as v6e")
_COPY = "[jax] its estimate for a copy of 256 MiB"
_WINDOW = "[jax] its estimates of one loop in small and in large windows"
_ONE_DEVICE = Figure(600e9, "not used: one device a chip")
_DCN_LAUNCH = Figure(50e-6, "assumed: two copies between host and device, and the network's round trip")
_V5E_LINKS = ("v5e-ag-8x4-131kB", "v5e-ag-8x4-34MB")
_V5P_LINKS = ("v5p-ppermute-16KiB", "v5p-ppermute-64MiB")
_V6E_LINKS = ("v6e-ppermute-16KiB", "v6e-ppermute-64MiB", "v6e-ar-4x2-0.25MiB")
_TPU7X_LINKS = ("tpu7x-ag-2x2x1-1MiB", "tpu7x-ag-2x2x1-256MiB")

_TABLE = (
    Constants(
        name="v4", cycle_factor=_ESTIMATE,
        copy_bytes_per_cycle=Figure(226.1, _COPY), window_cycles=Figure(574, _WINDOW), hbm_reach=_REACH,
        link_bytes_per_s=Figure(43.2e9, "assumed: as much of the sheet's rate as v5p, 96 %"),
        launch_s=Figure(4.3446e-6, "assumed: as v5p"), hop_s=_HOP,
        chip_bytes_per_s=Figure(600e9, "assumed: half the memory's rate, which both devices share"),
        dcn_bytes_per_s=Figure(6.25e9, "[book] part 2"), dcn_launch_s=_DCN_LAUNCH,
    ),
    Constants(
        name="v5e", cycle_factor=_fit(0.94909, "v5e-matmul-8192"),
        copy_bytes_per_cycle=Figure(222.2, _COPY), window_cycles=Figure(1_814, _WINDOW), hbm_reach=_REACH,
        link_bytes_per_s=_fit(37.303e9, *_V5E_LINKS), launch_s=_fit(3.9677e-6, *_V5E_LINKS), hop_s=_HOP,
        chip_bytes_per_s=_ONE_DEVICE,
        dcn_bytes_per_s=Figure(3.125e9, "[cloud] v5e: 2 cards of 100 Gbit/s for 8 chips"), dcn_launch_s=_DCN_LAUNCH,
    ),
    Constants(
        name="v5p", cycle_factor=_ESTIMATE,
        copy_bytes_per_cycle=Figure(573.8, _COPY), window_cycles=Figure(1_051, _WINDOW), hbm_reach=_REACH,
        link_bytes_per_s=_fit(86.350e9, *_V5P_LINKS), launch_s=_fit(4.3446e-6, *_V5P_LINKS), hop_s=_HOP,
        chip_bytes_per_s=_ONE_DEVICE,
        dcn_bytes_per_s=Figure(6.25e9, "[cloud] tpu7x: v5p has 50 Gbit/s a chip"), dcn_launch_s=_DCN_LAUNCH,
    ),
    Constants(
        name="v6e", cycle_factor=_fit(0.78088, "v6e-matmul-8192"),
        copy_bytes_per_cycle=Figure(378.4, _COPY), window_cycles=Figure(2_114, _WINDOW),
        hbm_reach=_fit(0.83004, "v6e-hbm-copy-32MiB"),
        link_bytes_per_s=_fit(87.066e9, *_V6E_LINKS), launch_s=_fit(5.0962e-6, *_V6E_LINKS),
        hop_s=_fit(4.6567e-7, *_V6E_LINKS), chip_bytes_per_s=_ONE_DEVICE,
        dcn_bytes_per_s=Figure(12.5e9, "[cloud] tpu7x: v6e has 100 Gbit/s a chip"), dcn_launch_s=_DCN_LAUNCH,
    ),
    Constants(
        name="tpu7x", clock_hz=Figure(1.9e9, "[jax] the clock at which `optimal_seconds` of a product come out"),
        cycle_factor=_fit(0.74177, "tpu7x-matmul-8192"),
        copy_bytes_per_cycle=Figure(633.0, _COPY), window_cycles=Figure(2_281, _WINDOW), hbm_reach=_REACH,
        link_bytes_per_s=_fit(89.911e9, *_TPU7X_LINKS), launch_s=_fit(1.2237e-5, *_TPU7X_LINKS), hop_s=_HOP,
        chip_bytes_per_s=Figure(540e9, "[cloud] tpu7x: die to die, six times a link; of 90 GB/s"),
        dcn_bytes_per_s=Figure(12.5e9, "[cloud] tpu7x: 100 Gbit/s a chip"), dcn_launch_s=_DCN_LAUNCH,
    ),
)  # fmt: skip
CONSTANTS = MappingProxyType({row.name: row for row in _TABLE})


def constants(generation: str) -> Constants:
    """The constants of a generation.  Raises `TimingError` for an unknown one."""
    if generation not in CONSTANTS:
        raise TimingError(f"no timing constants for {generation!r}; known are {', '.join(CONSTANTS)}")
    return CONSTANTS[generation]
