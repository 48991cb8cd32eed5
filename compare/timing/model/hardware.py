"""The rates that the model works with: one value for a chip, its memory and its links, which tests can also give."""

from dataclasses import dataclass
from typing import Self

from compare.timing.errors import TimingError
from compare.timing.model.constants import constants
from meshes.devices.generations import Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One device (what XLA sees as one) and the links of its chip."""

    cycle_ns: float
    """What one cycle of the compiler's estimate takes: 1 / clock, times what a measurement says of the estimates."""
    flops_per_ns: float
    """Of one device, the most: for kernels that say how many operations they are."""
    copy_cycles_per_byte: float
    """What the compiler's estimate takes a byte of memory for."""
    window_cycles: float
    """What it counts for every window of a loop beside the work in it."""
    hbm_bytes_per_ns: float
    """Of one device, reads and writes together."""
    link_bytes_per_ns: float
    """One link, one way, as a collective reaches it."""
    chip_bytes_per_ns: float
    """Between the devices of one chip, one way."""
    launch_ns: float
    """What any collective takes beside its steps and its bytes: barrier, descriptors."""
    hop_ns: float
    """What a step to the next chip takes beside its bytes."""
    dcn_launch_ns: float
    dcn_bytes_per_ns: float
    """One device's share of its host's network, one way."""

    @classmethod
    def of(cls, row: Generation) -> Self:
        """The rates of a generation, by its data sheet and by the constants that were fitted."""
        fitted = constants(row.name)
        clock = row.clock_hz or (fitted.clock_hz.value if fitted.clock_hz else None)
        if clock is None:
            raise TimingError(f"the clock of {row.name} is not known; give it in the table of constants")
        return cls(
            cycle_ns=1e9 / clock * fitted.cycle_factor.value,
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
