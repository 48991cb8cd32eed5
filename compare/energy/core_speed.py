"""A step's time and energy at other speeds of its components, voltage and frequency together.

The step is modelled again at each speed: what the component does not bound stays as long as it was, and communication
that was hidden behind compute may show, or hide.  Dynamic energy of a component grows with its voltage squared; of
static power the core's share grows with the core's voltage, and the rest is constant.  One rule, `_scale_amounts`,
serves frequencies and marginal efficiencies.  docs/calibration.md has the formulas.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType

import numpy as np

from compare.energy.amounts import AMOUNTS, CHIP_S, Span, event_amounts, joules, span, span_of_ratio
from compare.energy.coefficients import COMPONENTS, DCN, ICI, MATRIX, MEMORY, VECTOR, joule_rates
from compare.energy.voltage import GAMMAS, STEP, Voltage
from compare.hlo.collective import Collective
from compare.hlo.text.module import Module
from compare.schedule.hardware import Hardware
from compare.schedule.schedule import model_step, simulate_program
from compare.timeline.arrays import Floats, Mask
from compare.timeline.timeline import Timeline
from meshes.devices.chip import Chip
from meshes.mesh_argument import Plan

COMPUTE = "compute"
PARTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {COMPUTE: (MATRIX, VECTOR), MEMORY: (MEMORY,), ICI: (ICI,), DCN: (DCN,)}
)
"""What has a speed of its own -> the components of the energy that it spends."""
_STATIC = AMOUNTS.index(CHIP_S)


@dataclass(frozen=True, slots=True)
class Workload:
    """A step of a program whose speeds can be changed."""

    step_ns: Callable[[str, float], float]
    """(part, speed ÷ nominal) -> ns of the step."""
    amounts: Floats
    """(6,): its work on the full mesh, in the order of AMOUNTS; the last, seconds × chips, is not used."""
    chips: float

    @classmethod
    def of(cls, module: Module, rows: Sequence[Collective], plan: Plan, *, hardware: Hardware) -> "Workload":
        """Of a compiled program, by the schedule model."""
        nominal = model_step(module, rows, plan, hardware=hardware)

        def step_ns(part: str, speed: float) -> float:
            if speed == 1:
                return float(nominal.steps["duration_ns"].max())
            # What its timeline would say, without the events of one.
            return float(simulate_program(module, rows, plan, hardware=scale_hardware(hardware, part, speed)).end_ns)

        chips = plan.mesh.num_devices / plan.topology.generation.devices
        return cls(step_ns, count_amounts(nominal), chips)


def count_amounts(timeline: Timeline) -> Floats:
    """(6,): the work of a modelled step on the full mesh, without static power."""
    events = timeline.events[timeline.events["step"].to_numpy() >= 0]
    devices = {device: float(len(members)) for device, members in timeline.stands_for.items()}
    weights = events["device"].map(devices).to_numpy(np.float64)
    total: Floats = weights @ event_amounts(events)
    return total


def scale_hardware(hardware: Hardware, part: str, speed: float) -> Hardware:
    """The rates where one part runs at another speed.  Latencies of launches and steps stay: they are no bandwidth."""
    if part == COMPUTE:
        return replace(hardware, core_speed=speed, flops_per_ns=hardware.flops_per_ns * speed)
    if part == MEMORY:
        return replace(hardware, memory_speed=speed, hbm_bytes_per_ns=hardware.hbm_bytes_per_ns * speed)
    if part == ICI:
        return replace(
            hardware,
            link_bytes_per_ns=hardware.link_bytes_per_ns * speed,
            chip_bytes_per_ns=hardware.chip_bytes_per_ns * speed,
        )
    return replace(hardware, dcn_bytes_per_ns=hardware.dcn_bytes_per_ns * speed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A step at one frequency of the core."""

    frequency: float
    """÷ nominal."""
    voltage: float
    step_ns: float
    step_j: float
    low_j: float
    high_j: float

    @property
    def delay_j_s(self) -> float:
        """Energy × delay."""
        return self.step_j * self.step_ns / 1e9


def place_on_voltage(workload: Workload, times: Mapping[float, float], chip: Chip, voltage: Voltage) -> list[Point]:
    """The step at each frequency of the core: its dynamic energy grows with V², its share of static power with V.

    times: frequency -> ns.  `TimingError` where there is no voltage for a frequency.
    """
    points, shares = [], core_shares(chip, voltage)
    for frequency, step_ns in times.items():
        volts = voltage.at(frequency)
        amounts = [_scale_amounts(workload, step_ns, COMPUTE, volts, share) for share in shares]
        spans = [span(row, chip) for row in amounts]
        points.append(
            Point(
                frequency=frequency,
                voltage=volts,
                step_ns=step_ns,
                step_j=float(joules(amounts[0], joule_rates(chip)).sum()),
                low_j=min(each.low for each in spans),
                high_j=max(each.high for each in spans),
            )
        )
    return points


def core_shares(chip: Chip, voltage: Voltage) -> tuple[float, ...]:
    """Of static power, what follows the core's voltage: the value first, then the ends of its range, if it has one."""
    if voltage.core_share is not None:
        return (voltage.core_share,)
    row = chip.energy["core_share"]
    return tuple(dict.fromkeys((row.value, row.low, row.high)))


def best_energy(points: Sequence[Point]) -> Point:
    """Of least energy; of equal ones the fastest."""
    return min(points, key=lambda point: (point.step_j, point.step_ns))


def best_delay(points: Sequence[Point]) -> Point:
    """Of least energy × delay; of equal ones the fastest."""
    return min(points, key=lambda point: (point.delay_j_s, point.step_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginal:
    """What a faster component does to the energy of a step, at its nominal speed."""

    part: str
    efficiency: float
    """−d ln E / d ln s: above 0 where faster saves energy; per cent of energy per per cent of speed."""
    range: Span
    """Over the ranges of the coefficients, of γ and of the core's share of static power."""
    bound_ns: float
    """−d step / d ln s: what of the step this component alone bounds."""
    dynamic_j: float
    """What the component itself spends."""


def measure_marginal(workload: Workload, chip: Chip, voltage: Voltage) -> list[Marginal]:
    """For each of PARTS that the step uses, by a central difference of ±1 %."""
    rates, marginals, shares = joule_rates(chip), [], core_shares(chip, voltage)
    nominal = workload.step_ns(COMPUTE, 1.0)
    for part in PARTS:
        used = _used(part)
        if not workload.amounts[used].any():
            continue
        speeds = (1 - STEP, 1 + STEP)
        times = [workload.step_ns(part, speed) for speed in speeds]
        energies = [
            float(joules(_scale_amounts(workload, ns, part, voltage.at(speed), shares[0]), rates).sum())
            for speed, ns in zip(speeds, times, strict=True)
        ]
        across = float(np.log(speeds[1] / speeds[0]))
        bound_ns = (times[0] - times[1]) / across
        marginals.append(
            Marginal(
                part=part,
                efficiency=-float(np.log(energies[1] / energies[0])) / across,
                range=_range(workload, chip, voltage, part, nominal_ns=nominal, bound_ns=bound_ns),
                bound_ns=bound_ns,
                dynamic_j=float(joules(workload.amounts, rates)[used].sum()),
            )
        )
    return marginals


def _range(workload: Workload, chip: Chip, voltage: Voltage, part: str, *, nominal_ns: float, bound_ns: float) -> Span:
    """(P_static · (t_bound − γ · κ · step) − 2γ · E_dyn) ÷ E at the corners of the coefficients' box, of γ where it is
    assumed, and of κ, the share of static power that follows the part's voltage."""
    below = _with_static(workload, nominal_ns)
    shares = core_shares(chip, voltage) if part == COMPUTE else (0.0,)
    ends = []
    for slope, share in product(GAMMAS if voltage.is_assumed else (voltage.slope,), shares):
        above = np.where(_used(part), -2 * slope * workload.amounts, 0.0)
        above[_STATIC] = workload.chips * (bound_ns - slope * share * nominal_ns) / 1e9
        ends.append(span_of_ratio(above, below, chip))
    return Span(min(end.low for end in ends), max(end.high for end in ends))


def _used(part: str) -> Mask:
    return np.array([name in PARTS[part] for name in COMPONENTS])


def _with_static(workload: Workload, step_ns: float) -> Floats:
    amounts = workload.amounts.astype(np.float64)
    amounts[_STATIC] = workload.chips * step_ns / 1e9
    return amounts


def _scale_amounts(workload: Workload, step_ns: float, part: str, volts: float, core_share: float) -> Floats:
    """The work of a step of that length in which one part runs at V/V0 = volts, as if each unit cost what it did.

    Its dynamic energy is × volts².  Static power: the core's share is × volts where the part is the core; what memory,
    links and the rest take is on other supplies, and stays.
    """
    factors = np.where(_used(part), volts**2, 1.0)
    factors[_STATIC] = 1 - core_share + core_share * volts if part == COMPUTE else 1.0
    scaled: Floats = _with_static(workload, step_ns) * factors
    return scaled
