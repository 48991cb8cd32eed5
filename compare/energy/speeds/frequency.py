"""A run's steps at other frequencies of the core: time, energy, energy × delay, and where each is least."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compare.energy.core_speed import COMPUTE, Point, best_delay, best_energy, place_on_voltage
from compare.energy.speeds.subjects import SpeedSubject, Subjects, list_voltages
from compare.render.units import joules_text, percent_text, span_text, time_text
from compare.report.model.codec import encode

NOMINAL = 1.0
ENERGY, DELAY = "least energy", "least energy × delay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One program at every frequency."""

    subject: SpeedSubject
    points: tuple[Point, ...]
    nominal: Point
    best_range: tuple[float, float] | None
    """Of the frequency of least energy, over every assumed line of the voltage and the range of the core's share of
    static power; `None` where both are given."""

    @property
    def best_energy(self) -> Point:
        return best_energy(self.points)

    @property
    def best_delay(self) -> Point:
        return best_delay(self.points)


def scale_run(subjects: Subjects, frequencies: Sequence[float]) -> list[Curve]:
    """The curves of every program.  `TimingError` where there is no voltage for a frequency."""
    return [_curve(subject, subjects, frequencies) for subject in subjects.programs]


def _curve(subject: SpeedSubject, subjects: Subjects, frequencies: Sequence[float]) -> Curve:
    workload, chip = subject.workload, subjects.chip
    times = {frequency: workload.step_ns(COMPUTE, frequency) for frequency in frequencies}
    points = place_on_voltage(workload, times, chip, subjects.voltage)
    (nominal,) = place_on_voltage(workload, {NOMINAL: workload.step_ns(COMPUTE, NOMINAL)}, chip, subjects.voltage)
    bests = [best_energy(place_on_voltage(workload, times, chip, each)).frequency for each in list_voltages(subjects)]
    ends = (min(bests), max(bests)) if len(bests) > 1 else None
    return Curve(subject=subject, points=tuple(points), nominal=nominal, best_range=ends)


def list_frequency_lines(subjects: Subjects, curves: Sequence[Curve]) -> Iterator[str]:
    """A table for each program, and what is best."""
    yield f"{subjects.basis}; {subjects.voltage_words}"
    for curve in curves:
        yield f"{curve.subject.title} {curve.subject.phase}"
        yield f"{'f/f0':>6}{'V/V0':>8}{'step':>10}{'energy':>20}{'energy × delay':>17}"
        for point in curve.points:
            energy = span_text(point.step_j, point.low_j, point.high_j, unit="J")
            bests = [word for word, best in ((ENERGY, curve.best_energy), (DELAY, curve.best_delay)) if point == best]
            yield (
                f"{point.frequency:>6.4g}{point.voltage:>8.4g}{time_text(point.step_ns):>10}{energy:>20}"
                f"{f'{point.delay_j_s:.3g} J·s':>17}{''.join(f'  ← {word}' for word in bests)}"
            )
    yield from (describe_best(curve) for curve in curves)


def describe_best(curve: Curve) -> str:
    """One sentence: the best frequency of a program, and what it saves."""
    best, delay, ends = curve.best_energy, curve.best_delay, curve.best_range
    range_words = f" ({ends[0]:.4g} to {ends[1]:.4g} over γ and the split)" if ends and ends[0] != ends[1] else ""
    frequencies = [point.frequency for point in curve.points]
    edge = {frequencies[0]: ", the lowest asked", frequencies[-1]: ", the highest asked"}
    saved, longer = _change(best.step_j, curve.nominal.step_j), _change(best.step_ns, curve.nominal.step_ns)
    changes = "" if best.frequency == NOMINAL else f", {saved} energy and {longer} time than at 1"
    return (
        f"{curve.subject.title} {curve.subject.phase}: {ENERGY} at {best.frequency:.4g} × the nominal frequency"
        f"{edge.get(best.frequency, '')}{range_words}: {joules_text(best.step_j)} a step{changes}; "
        f"{DELAY} at {delay.frequency:.4g}{edge.get(delay.frequency, '')}"
    )


def _change(value: float, nominal: float) -> str:
    share = value / nominal - 1
    return f"{percent_text(abs(share))} {'less' if share < 0 else 'more'}"


def frequency_json(curves: Sequence[Curve]) -> list[dict[str, object]]:
    """The same as data."""
    return [
        {
            "arm": curve.subject.arm,
            "phase": curve.subject.phase,
            "cell": curve.subject.cell,
            "points": [encode(point) | {"energy_delay_j_s": point.delay_j_s} for point in curve.points],
            "best_energy": curve.best_energy.frequency,
            "best_energy_delay": curve.best_delay.frequency,
            "best_energy_range": list(curve.best_range) if curve.best_range else None,
        }
        for curve in curves
    ]
