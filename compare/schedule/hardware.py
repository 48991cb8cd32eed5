"""The rates of the model: of a chip, its memory and its links; tests can give others."""

from dataclasses import dataclass
from typing import Self

from compare.timeline.errors import TimingError
from meshes.devices.chip import Chip

_OF_NO_STEP = {"dispatch_s", "matrix_flops_per_s", "vector_ops_per_s"}
"""Constants by which no step is calibrated: the host's, and rates of work that lasts by the compiler's estimates; only
kernels whose author states their FLOPs last by the rate of products."""


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

    @property
    def on_chip_weight(self) -> float:
        """Time of a byte between two devices of a chip ÷ time on a link."""
        return self.link_bytes_per_ns / self.chip_bytes_per_ns

    @classmethod
    def of(cls, chip: Chip) -> Self:
        """The rates of a chip, from its data sheet and its constants."""
        rates = {key: figure.value for key, figure in chip.time.items()}
        clock = rates.get("clock_hz") or chip.clock_hz
        if clock is None:
            raise TimingError(f"the clock of {chip.name} is not known; give it as time.clock_hz")
        return cls(
            cycle_ns=1e9 / clock * rates["cycle_factor"],
            cycle_factor=rates["cycle_factor"],
            flops_per_ns=rates.get("matrix_flops_per_s", chip.bf16_flops / chip.devices) / 1e9,
            copy_cycles_per_byte=1 / rates["copy_bytes_per_cycle"],
            window_cycles=rates["window_cycles"],
            hbm_bytes_per_ns=_memory_bytes_per_ns(chip),
            link_bytes_per_ns=rates["link_bytes_per_s"] / 1e9,
            chip_bytes_per_ns=rates["chip_bytes_per_s"] / 1e9,
            launch_ns=rates["launch_s"] * 1e9,
            hop_ns=rates["hop_s"] * 1e9,
            dcn_launch_ns=rates["dcn_launch_s"] * 1e9,
            dcn_bytes_per_ns=dcn_bytes_per_s(chip) / chip.devices / 1e9,
        )


def _memory_bytes_per_ns(chip: Chip) -> float:
    """Of a device: as measured, or what an operation reaches of the data sheet's."""
    if "memory_bytes_per_s" in chip.time:
        return chip.time["memory_bytes_per_s"].value / 1e9
    return chip.hbm_bytes_per_s / chip.devices / 1e9 * chip.time["hbm_reach"].value


def dcn_bytes_per_s(chip: Chip) -> float:
    """A chip's share of its host's network cards, one direction."""
    figure = chip.time["dcn_bytes_per_s"]
    return figure.value * (1 if figure.unit == "byte/s a chip" else chip.devices)


def times_calibrated_on(chip: Chip) -> str:
    """Where the constants of a step were measured; empty where the file does not say, or has none."""
    return chip.calibrated_on if chip.own_of("time") - _OF_NO_STEP else ""


def describe_times(chip: Chip) -> str:
    """Whose its rates are: `calibrated on our pod, June`; empty where they are the generation's."""
    own = chip.own_of("time")
    if not own and chip.own_of("sheet"):
        return "with its own data sheet"
    if own and own <= _OF_NO_STEP:
        return "with its own rate of kernels"
    return f"calibrated on {chip.calibrated_on}" if own and chip.calibrated_on else "calibrated" if own else ""


def name_slice(name: str, chip: Chip) -> str:
    """`v5e:2x4 (calibrated on our pod, June)`, or its name alone."""
    words = describe_times(chip)
    return f"{name} ({words})" if words else name
