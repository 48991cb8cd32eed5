"""What a run does on other machines, in a terminal."""

from collections.abc import Iterator, Sequence

from compare.render.units import time_text
from compare.simulate.what_if.request import Sweep, WhatIf
from compare.simulate.what_if.result import NO_LONGER_MATTERS, SubjectResult
from compare.simulate.what_if.subjects import Outcome

MOST_BEST = 8
"""Rows of `--best`."""


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
    for each in results:
        if each.best:
            yield from _best_rows(each)


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


def _best_rows(each: SubjectResult) -> Iterator[str]:
    """Collectives for which another algorithm is faster alone, most to gain first."""
    rows = [row for row in each.best if row.lost_ns > 0]
    yield ""
    if not rows:
        yield f"{each.subject.name}: for none of {len(each.best)} collectives is another algorithm faster, alone"
        return
    yield f"{each.subject.name}: the fastest algorithm of each collective, alone"
    yield f"  {'collective':<28}{'bytes':>14}{'times':>7}{'chosen':>10}{'best':>10}  algorithm"
    for row in rows[:MOST_BEST]:
        yield (
            f"  {row.collective:<28}{row.num_bytes:>14,}{row.executions:>7}{time_text(row.chosen_ns):>10}"
            f"{time_text(row.best_ns):>10}  {row.best}"
        )
    others = len(each.best) - len(rows[:MOST_BEST])
    if others:
        yield f"  {others} others: " + ("with less to gain" if len(rows) > MOST_BEST else "nothing is faster")
