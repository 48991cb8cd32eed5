"""What a run does on other machines."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from compare.simulate.what_if.request import Sweep, WhatIf, change_point
from compare.simulate.what_if.subjects import Outcome, Subject, simulate_subject
from compare.timing.network.machines.changes import BANDWIDTH, scale_machine
from compare.timing.network.machines.tpu import tpu_machine
from compare.timing.network.programs.best import BestAlgorithm, list_best
from compare.timing.network.programs.simulation import Simulation

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
    sweep: tuple[tuple[float, Outcome], ...] = ()
    best: tuple[BestAlgorithm, ...] = ()

    @property
    def scale_up_bw_utility(self) -> float:
        """100·(T − T₂ₓ)/T."""
        return _shortened(self.outcome, self.twice)

    @property
    def hidden_by_twice_ns(self) -> float:
        """Of the exposed time that frameworks induce, what twice the bandwidth removes."""
        return self.outcome.induced_ns - self.twice.induced_ns


def simulate_run(request: WhatIf, subjects: Sequence[Subject]) -> list[SubjectResult]:
    """Every program on the requested machine.  Raises `TimingError` where one does not fit."""
    results = []
    for subject in subjects:
        simulation = request.simulation(subject.topology)
        own = Simulation(machine=tpu_machine(subject.topology))
        outcome = simulate_subject(subject, simulation)
        enough, unlimited = _find_enough(subject, simulation)
        results.append(
            SubjectResult(
                subject=subject,
                machine=simulation.label.removeprefix("simulated on "),
                on_own=None if simulation == own else simulate_subject(subject, own),
                outcome=outcome,
                twice=_faster(subject, simulation, 2.0),
                unlimited=unlimited,
                enough=enough,
                sweep=_sweep(subject, simulation, request.sweep) if request.sweep else (),
                best=tuple(list_best(subject.program, simulation)) if request.best else (),
            )
        )
    return results


def _sweep(subject: Subject, simulation: Simulation, sweep: Sweep) -> tuple[tuple[float, Outcome], ...]:
    return tuple((value, simulate_subject(subject, change_point(simulation, sweep, value))) for value in sweep.values)


def _faster(subject: Subject, simulation: Simulation, factor: float) -> Outcome:
    machine = scale_machine(simulation.machine, BANDWIDTH, factor)
    return simulate_subject(subject, replace(simulation, machine=machine))


def _find_enough(subject: Subject, simulation: Simulation) -> tuple[float | None, Outcome]:
    """(the factor, the outcome with the most bandwidth), by bisection: more bandwidth is worth ever less."""
    unlimited = _faster(subject, simulation, _MOST_FACTOR)

    def matters(factor: float) -> bool:
        now, twice = (_faster(subject, simulation, factor * each) for each in (1.0, 2.0))
        return _shortened(now, twice) >= NO_LONGER_MATTERS

    if matters(_MOST_FACTOR):
        return None, unlimited
    low, high = 1 / 64, _MOST_FACTOR
    if not matters(low):
        return low, unlimited
    while high / low > _CLOSE:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if matters(middle) else (low, middle)
    return high, unlimited


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
