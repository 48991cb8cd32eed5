"""What a run does on other machines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from compare.network.machines.changes import scale_machine
from compare.network.machines.kinds import BANDWIDTH
from compare.network.machines.tpu import tpu_machine
from compare.network.programs.best import BestAlgorithm, list_best
from compare.network.programs.simulation import Simulation
from compare.simulate.what_if.changed_machine import build_point, build_simulation
from compare.simulate.what_if.framework import FrameworkInduced, compare_frameworks
from compare.simulate.what_if.request import WhatIf
from compare.simulate.what_if.subjects import Outcome, Subject, simulate_subject
from compare.timeline.errors import TimingError

NO_LONGER_MATTERS = 1.0
"""Twice the bandwidth shortens the step by less than this percentage."""
_MOST_FACTOR = 2.0**12
_CLOSE = 1.005


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectResult:
    """One program."""

    subject: Subject
    machine: str
    on_own: Outcome | None
    """On the slice that it was compiled for, where that is another machine."""
    outcome: Outcome
    twice: Outcome
    """With twice the bandwidth of every dim."""
    unlimited: Outcome
    """With the most bandwidth that was tried: what is left is latency."""
    enough: float | None
    """The least factor of bandwidth from which twice as much shortens the step by less than `NO_LONGER_MATTERS` %."""
    bytes_per_ns: tuple[float, ...]
    """Of a link of each dim, distinct ones."""
    induced: FrameworkInduced | None
    """`None` where no other framework's program can be compared."""
    sweep: tuple[tuple[float | str, Outcome], ...] = ()
    best: tuple[BestAlgorithm, ...] = ()

    @property
    def scale_up_bw_utility(self) -> float:
        """100·(T − T₂ₓ)/T."""
        return _shortened(self.outcome, self.twice)

    @property
    def hidden_by_twice_ns(self) -> float:
        """Of the avoidable exposed time, what twice the bandwidth removes."""
        return self.outcome.total_avoidable_ns - self.twice.total_avoidable_ns


def simulate_run(request: WhatIf, subjects: Sequence[Subject]) -> list[SubjectResult]:
    """Every program on the requested machine.  Raises `TimingError` where one does not fit."""
    faster: dict[tuple[int, float], Outcome] = {}

    def speed_up(subject: Subject, factor: float) -> Outcome:
        key = id(subject), factor
        if key not in faster:
            simulation = build_simulation(request, subject.topology, subject.chip)
            if factor != 1:
                machine = scale_machine(simulation.machine, BANDWIDTH, factor)
                simulation = replace(simulation, machine=machine)
            try:
                faster[key] = simulate_subject(subject, simulation)
            except TimingError as error:
                file = f"{request.machine}: " if (request.machine or "").endswith(".toml") else ""
                raise TimingError(f"{file}{error}") from None
        return faster[key]

    for subject in subjects:
        speed_up(subject, 1.0)  # what does not fit is named by its default program
    for subject in subjects:
        for _, simulation in _points(subject, request):
            subject.program.layout(simulation)  # and what a sweep cannot ask for is said before the long search below
    induced = compare_frameworks(subjects, speed_up, _find_enough, _MOST_FACTOR)
    results = []
    for subject in subjects:
        simulation = build_simulation(request, subject.topology, subject.chip)
        own = Simulation(machine=tpu_machine(subject.topology, chip=subject.chip))

        def matters(factor: float, subject: Subject = subject) -> bool:
            return _shortened(speed_up(subject, factor), speed_up(subject, 2 * factor)) >= NO_LONGER_MATTERS

        results.append(
            SubjectResult(
                subject=subject,
                machine=simulation.label.removeprefix("simulated on "),
                on_own=None if simulation == own else simulate_subject(subject, own),
                outcome=speed_up(subject, 1.0),
                twice=speed_up(subject, 2.0),
                unlimited=speed_up(subject, _MOST_FACTOR),
                enough=_find_enough(matters),
                bytes_per_ns=tuple(dict.fromkeys(dim.bytes_per_ns for dim in simulation.machine.dims)),
                induced=induced.get((subject.arm, subject.phase)),
                sweep=_sweep(subject, request),
                best=tuple(list_best(subject.program, simulation)) if request.best else (),
            )
        )
    return results


def _sweep(subject: Subject, request: WhatIf) -> tuple[tuple[float | str, Outcome], ...]:
    return tuple((value, simulate_subject(subject, point)) for value, point in _points(subject, request))


def _points(subject: Subject, request: WhatIf) -> Iterator[tuple[float | str, Simulation]]:
    for value in request.sweep.values if request.sweep else ():
        yield value, build_point(request, subject.topology, value, subject.chip)


def _find_enough(matters: Callable[[float], bool]) -> float | None:
    """The least factor of bandwidth at which something no longer matters, by bisection: more bandwidth is worth ever
    less.  `None` where it matters at every factor that is tried."""
    low, high = 1 / 64, _MOST_FACTOR
    if matters(high):
        return None
    if not matters(low):
        return low
    while high / low > _CLOSE:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if matters(middle) else (low, middle)
    return high


def _shortened(outcome: Outcome, faster: Outcome) -> float:
    return 100 * (outcome.step_ns - faster.step_ns) / outcome.step_ns if outcome.step_ns else 0.0


def to_json(request: WhatIf, results: Sequence[SubjectResult]) -> dict[str, object]:
    """The results; a program by `<arm>/<phase>/<cell>`."""
    return {
        "run": str(request.run),
        "sweep": request.sweep and request.sweep.word,
        "programs": {
            f"{each.subject.arm}/{each.subject.phase}/{each.subject.cell}": _result_json(each) for each in results
        },
    }


def _result_json(each: SubjectResult) -> dict[str, object]:
    return {
        "title": each.subject.title,
        "phase": each.subject.phase,
        "machine": each.machine,
        **_outcome_json(each.outcome),
        "on_own": each.on_own and _outcome_json(each.on_own),
        "scale_up_bw_utility": round(each.scale_up_bw_utility, 4),
        "twice_the_bandwidth": _outcome_json(each.twice),
        "unlimited_bandwidth": _outcome_json(each.unlimited),
        "enough_bandwidth": each.enough and round(each.enough, 3),
        "link_bytes_per_ns": list(each.bytes_per_ns),
        "framework_induced": each.induced
        and {
            "cell": each.induced.cell,
            "exposed_ns": round(each.induced.now_ns, 3),
            "twice_the_bandwidth_ns": round(each.induced.twice_ns, 3),
            "unlimited_bandwidth_ns": round(each.induced.unlimited_ns, 3),
            "enough_bandwidth": each.induced.enough and round(each.induced.enough, 3),
        },
        "best": [asdict(row) for row in each.best],
        "sweep": [{"value": value, **_outcome_json(outcome)} for value, outcome in each.sweep],
    }


def _outcome_json(outcome: Outcome) -> Mapping[str, object]:
    return {
        "step_ns": round(outcome.step_ns, 3),
        "compute_ns": round(outcome.compute_ns, 3),
        "exposed_ns": round(outcome.total_exposed_ns, 3),
        "exposed_by_verdict_ns": {verdict: round(ns, 3) for verdict, ns in outcome.exposed_ns.items()},
    }
