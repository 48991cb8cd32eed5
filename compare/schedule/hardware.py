"""The rates of the model: of a chip, its memory and its links; tests can give others."""

from dataclasses import dataclass
from typing import Self

from compare.schedule.constants import constants
from compare.timeline.errors import TimingError
from meshes.devices.generations import Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One device (what XLA sees as one) and the links of its chip."""

    cycle_ns: float
    """Duration of one estimated cycle: 1 / clock × cycle_factor."""
    cycle_factor: float = 1.0
    """The measured correction of the estimates in `cycle_ns`."""
    core_speed: float = 1.0
    """The clock of the core ÷ the one of `cycle_ns`; the rates below are those at these speeds."""
    memory_speed: float = 1.0
    """`hbm_bytes_per_ns` ÷ its nominal value."""
    flops_per_ns: float
    """Peak of one device, for kernels that state their flops."""
    copy_cycles_per_byte: float
    """Cycles per byte of memory traffic in the compiler's estimate."""
    window_cycles: float
    """Cycles that the estimate adds for every window of a loop."""
    hbm_bytes_per_ns: float
    """One device, reads and writes together."""
    link_bytes_per_ns: float
    """One link, one direction, as reached by a collective."""
    chip_bytes_per_ns: float
    """Between the devices of one chip, one direction."""
    launch_ns: float
    """Fixed latency of a collective: barrier, descriptors."""
    hop_ns: float
    """Latency of a step to the next chip, without its bytes."""
    dcn_launch_ns: float
    dcn_bytes_per_ns: float
    """One device's share of its host's network, one direction."""

    @classmethod
    def of(cls, row: Generation) -> Self:
        """The rates of a generation, from its data sheet and the fitted constants."""
        fitted = constants(row.name)
        clock = row.clock_hz or (fitted.clock_hz.value if fitted.clock_hz else None)
        if clock is None:
            raise TimingError(f"the clock of {row.name} is not known; give it in the table of constants")
        return cls(
            cycle_ns=1e9 / clock * fitted.cycle_factor.value,
            cycle_factor=fitted.cycle_factor.value,
            flops_per_ns=row.bf16_flops / row.devices / 1e9,
            copy_cycles_per_byte=1 / fitted.copy_bytes_per_cycle.value,
            window_cycles=fitted.window_cycles.value,
            hbm_bytes_per_ns=row.hbm_bytes_per_s / row.devices / 1e9 * fitted.hbm_reach.value,
            link_bytes_per_ns=fitted.link_bytes_per_s.value / 1e9,
            chip_bytes_per_ns=fitted.chip_bytes_per_s.value / 1e9,
            launch_ns=fitted.launch_s.value * 1e9,
            hop_ns=fitted.hop_s.value * 1e9,
            dcn_launch_ns=fitted.dcn_launch_s.value * 1e9,
            dcn_bytes_per_ns=fitted.dcn_bytes_per_s.value / row.devices / 1e9,
        )
