"""What a run does on other machines, in a terminal."""

from collections.abc import Iterator, Sequence

from compare.render.units import time_text
from compare.simulate.what_if.framework import SMALL, FrameworkInduced
from compare.simulate.what_if.request import MACHINE, Sweep, WhatIf
from compare.simulate.what_if.subjects import Outcome
from compare.simulate.what_if.what_if_result import NO_LONGER_MATTERS, SubjectResult
from meshes.devices.topology import Topology

MOST_BEST = 8
"""Rows of `--best`."""


def list_lines(request: WhatIf, results: Sequence[SubjectResult]) -> Iterator[str]:
    """Programs by phase, then what bandwidth would change."""
    machines = dict.fromkeys(each.machine for each in results)
    slices = dict.fromkeys(each.subject.modelled_for for each in results)
    yield f"Simulated on {'; '.join(machines)}, not measured; compute lasts as modelled for {', '.join(slices)}"
    rows = [row for each in results for row in _rows(each, request.sweep)]
    width = max(20, *(len(name) + 1 for name, _ in rows))
    yield f"{'':<{width}}{'step':>10}{'compute':>10}{'exposed':>10}   {'inherent':>10}{'inflated':>10}{'induced':>10}"
    yield from (f"{name:<{width}}{_numbers(outcome)}" for name, outcome in rows)
    yield ""
    for each in results:
        yield from _sentences(each)
    for each in results:
        if each.best:
            yield from _best_rows(each)


def _rows(each: SubjectResult, sweep: Sweep | None) -> Iterator[tuple[str, Outcome]]:
    yield each.subject.name, each.outcome
    if each.on_own is not None:
        yield f"  on {each.subject.topology}", each.on_own
    for value, outcome in each.sweep:
        if isinstance(value, str):
            yield f"  {value}{_whose_compute(each, value) if sweep and sweep.word == MACHINE else ''}", outcome
        elif sweep is not None:
            yield f"  {sweep.word.rpartition('.')[2]} {'×' if sweep.is_factor else '='} {value:.4g}", outcome


def _whose_compute(each: SubjectResult, machine: str) -> str:
    """Of a machine of other chips, where compute lasts as on those that the program was compiled for."""
    topology = each.subject.topology
    if not machine.endswith(".toml") and Topology.parse(machine).generation == Topology.parse(topology).generation:
        return ""
    return f", compute of {topology}"


def _numbers(outcome: Outcome) -> str:
    numbers = [outcome.step_ns, outcome.compute_ns, outcome.total_exposed_ns]
    verdicts = [outcome.exposed_ns[verdict] for verdict in ("inherent", "inflated", "induced")]
    unknown = outcome.exposed_ns["unknown"]
    return (
        "".join(f"{time_text(ns):>10}" for ns in numbers)
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
    if outcome.total_avoidable_ns > 0:
        words += (
            f" and hides {_percent(each.hidden_by_twice_ns, outcome.total_avoidable_ns)} of the avoidable exposed time "
            f"({time_text(outcome.total_avoidable_ns)}), unlimited bandwidth "
            f"{_percent(outcome.total_avoidable_ns - each.unlimited.total_avoidable_ns, outcome.total_avoidable_ns)}"
        )
    yield words
    if each.enough is None:
        yield "  more bandwidth helps at every factor that was tried"
    else:
        yield f"  from {_factor(each, each.enough)} on, twice as much gains less than {NO_LONGER_MATTERS:g} %"
    if each.induced is not None:
        yield from _framework_sentence(each, each.induced)


def _framework_sentence(each: SubjectResult, induced: FrameworkInduced) -> Iterator[str]:
    of = f" ({induced.cell})" if induced.cell != each.subject.cell else ""
    words = f"  framework-induced{of}: {time_text(induced.now_ns)} of exposed time"
    if induced.now_ns < SMALL / 100 * each.outcome.step_ns:
        yield f"{words}, less than {SMALL:g} % of the step"
        return
    yield (
        f"{words}; twice the bandwidth hides {_percent(induced.now_ns - induced.twice_ns, induced.now_ns)}, unlimited "
        f"bandwidth {_percent(induced.now_ns - induced.unlimited_ns, induced.now_ns)}"
    )
    if induced.enough is None:
        yield f"    at no bandwidth that was tried is it less than {SMALL:g} % of the step"
    else:
        yield f"    from {_factor(each, induced.enough)} on it is less than {SMALL:g} % of the step"


def _factor(each: SubjectResult, factor: float) -> str:
    """`12.3 times the bandwidth (459 GB/s a link)`."""
    rates = " and ".join(
        f"{rate * factor:,.0f}" if rate * factor >= 100 else f"{rate * factor:.3g}" for rate in each.bytes_per_ns
    )
    return f"{factor:.3g} times the bandwidth ({rates} GB/s a link)"


def _percent(part: float, whole: float) -> str:
    return f"{max(100 * part / whole, 0.0):.0f} %"


def _best_rows(each: SubjectResult) -> Iterator[str]:
    """Each collective by the chosen algorithm and by the fastest of our own model, most to gain first."""
    rows = [row for row in each.best if row.best]
    lost = sum(max(row.lost_ns, 0.0) for row in rows)
    yield ""
    yield f"{each.subject.name}: each collective alone, by the chosen algorithm and the fastest of our own model"
    heads = f"{'bytes':>14}{'times':>7}  {'by':<12}{'chosen':>10}{'fastest':>10}{'longer by':>11}"
    yield f"  {'collective':<28}{heads}  algorithm"
    for row in rows[:MOST_BEST]:
        longer = f"{round(row.distance, 1) + 0.0:.1f} %"
        yield (
            f"  {row.collective:<28}{row.num_bytes:>14,}{row.executions:>7}  "
            f"{'the compiler' if row.by_compiler else 'the machine':<12}{time_text(row.chosen_ns):>10}"
            f"{time_text(row.best_ns):>10}{longer:>11}  {row.best}"
        )
    if others := len(rows) - len(rows[:MOST_BEST]):
        yield f"  {others} more, with less to gain"
    if lost > 0.5:
        step = time_text(each.outcome.step_ns)
        yield f"  with the fastest of each, collectives take {time_text(lost)} less of a {step} step"
    else:
        yield "  no other algorithm is faster"
