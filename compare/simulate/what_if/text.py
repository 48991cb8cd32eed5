"""What a run does on other machines, in a terminal."""

from collections.abc import Iterator, Sequence

from compare.render.units import time_text
from compare.simulate.what_if.request import Sweep, WhatIf
from compare.simulate.what_if.result import NO_LONGER_MATTERS, SubjectResult
from compare.simulate.what_if.subjects import Outcome


def list_lines(request: WhatIf, results: Sequence[SubjectResult]) -> Iterator[str]:
    """Programs by phase, then what bandwidth would change."""
    machines = dict.fromkeys(each.machine for each in results)
    slices = dict.fromkeys(each.subject.topology for each in results)
    yield f"Simulated on {'; '.join(machines)}, not measured; compute lasts as modelled for {', '.join(slices)}"
    yield f"{'':<20}{'step':>10}{'compute':>10}{'exposed':>10}   {'inherent':>10}{'inflated':>10}{'induced':>10}"
    for each in results:
        yield from _rows(each, request.sweep)
    yield ""
    for each in results:
        yield from _sentences(each)


def _rows(each: SubjectResult, sweep: Sweep | None) -> Iterator[str]:
    yield _row(each.subject.name, each.outcome)
    if each.on_own is not None:
        yield _row(f"  on {each.subject.topology}", each.on_own)
    for value, outcome in each.sweep:
        word = sweep.word.rpartition(".")[2] if sweep else ""
        yield _row(f"  {word} {'×' if sweep and sweep.is_factor else '='} {value:.4g}", outcome)


def _row(name: str, outcome: Outcome) -> str:
    numbers = [outcome.step_ns, outcome.compute_ns, outcome.total_exposed_ns]
    verdicts = [outcome.exposed_ns[verdict] for verdict in ("inherent", "inflated", "induced")]
    unknown = outcome.exposed_ns["unknown"]
    return (
        f"{name:<20}"
        + "".join(f"{time_text(ns):>10}" for ns in numbers)
        + "   "
        + "".join(f"{time_text(ns):>10}" for ns in verdicts)
        + (f"  ({time_text(unknown)} of unknown verdict)" if unknown > 0.5 else "")
    )


def _sentences(each: SubjectResult) -> Iterator[str]:
    name, outcome = each.subject.name, each.outcome
    words = (
        f"{name}: twice the bandwidth shortens the step by {each.scale_up_bw_utility:.1f} % "
        f"({time_text(outcome.step_ns - each.twice.step_ns)})"
    )
    if outcome.induced_ns > 0:
        part = 100 * each.hidden_by_twice_ns / outcome.induced_ns
        left = 100 * each.unlimited.induced_ns / outcome.induced_ns
        words += (
            f"; it hides {part:.0f} % of the avoidable exposed time ({time_text(outcome.induced_ns)}), and no "
            f"bandwidth hides the last {left:.0f} %"
        )
    yield words
    if each.enough is None:
        yield "  more bandwidth helps at every factor that was tried"
    else:
        yield f"  from {each.enough:.3g} times the bandwidth on, twice as much gains less than {NO_LONGER_MATTERS:g} %"
