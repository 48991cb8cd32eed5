"""Measured power and heat of one timeline, or of samples alone.  docs/power.md defines each; nothing is modelled."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from compare.report.model.codec import one_of

Number = int | float | None
"""`None` where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """One kind of meter, over all devices that have it, from each one's first sample to its last."""

    name: str
    quantity: str
    """`power`, `temperature`, `throttle`, `use`, `clock`, `rate` or `count`."""
    component: str
    """`chip`, `core`, `memory` or `host`."""
    unit: str
    devices: int
    samples: int
    failed: int
    mean: Number
    """Time-weighted, then the mean over devices; `None` of a counter, as all numbers but its total."""
    peak: Number
    """The largest sample of any device."""
    peak_device: int
    """The device of that sample; of a counter the one that counted most."""
    lowest_device_mean: Number
    highest_device_mean: Number
    within_hosts_std: Number
    """Standard deviation of the devices' means within a host, mean over hosts; `None` for hosts of one device."""
    between_hosts_std: Number
    """Standard deviation of the hosts' means; `None` for one host."""
    total: Number
    """Sum over devices: of power the joules, by trapezoids; of a counter its growth; else `None`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEnergy:
    """One operation: its joules on all measured devices, its time on one of them, both of one step."""

    operation: str
    kind: str
    """Of a collective; empty for compute."""
    axes: str
    scope: str
    time_ns: Number
    energy_j: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEnergy:
    """The measured energy of a step: sum over the measured devices, mean over steps."""

    source: Annotated[str, one_of("meters", "operations")]
    """`meters`: power over time; `operations`: the energy that the profile states for each operation."""
    covers: str
    """What of a chip is measured: its meters' names, or its power rail."""
    devices: int
    energy_j: Number
    mean_w: Number
    """Of a device."""
    peak_w: Number
    """Of a device, the most in 1 ms."""
    by_part_j: Mapping[str, Number]
    """`compute`, `communication` (exposed, where meters are the source), `copies` (waits for local copies, where any is
    shown) and `idle`; their sum is `energy_j`."""
    by_axes_j: Mapping[str, Number]
    """The communication's, by mesh axes."""
    by_verdict_j: Mapping[str, Number]
    """The communication's, by verdict; empty where no program was judged."""
    operations: tuple[OperationEnergy, ...]
    """The largest first; the rest is one row, `others`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerWindow:
    """Windows of one name that Zeus measured."""

    name: str
    windows: int
    devices: int
    mean_s: Number
    """Of one window."""
    energy_j: Number
    """Of one window, sum over devices, mean over windows."""
    host_energy_j: Number
    """Of its processors and their memory; `None` where not measured."""
    mean_w: Number
    """Of a device."""
    device_std_w: Number
    """Standard deviation between devices of their mean power; `None` for one device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPower:
    """What was measured of power and heat."""

    heat_measured: bool
    """Whether there is any temperature; heat is never modelled."""
    meters: tuple[Meter, ...]
    steps: tuple[MeasuredEnergy, ...]
    """By each source; empty where nothing could be joined to steps."""
    windows: tuple[PowerWindow, ...]
    notes: tuple[str, ...]
