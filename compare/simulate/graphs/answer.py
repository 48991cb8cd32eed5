"""Answer `compare.simulate FOLDER`: the graphs of a trace or a run, simulated."""

from collections.abc import Iterable

from compare.chakra.settings import count_in_ns
from compare.network.astra_sim.program import replay_graph
from compare.network.engine.graph_layout import Plan
from compare.network.engine.simulate import simulate_graph
from compare.network.programs.exposed import list_exposed
from compare.render.units import time_text
from compare.simulate.graphs.graph_request import GraphRequest
from compare.simulate.graphs.subject import Subject
from compare.simulate.print_answer import describe_machine
from compare.timeline.errors import TimingError


def find_subjects(request: GraphRequest) -> tuple[Iterable[Subject], tuple[str, ...]]:
    """The graphs, each read or expanded as it comes, and a line for each program of a run that could not be read."""
    if not request.is_run:
        from compare.simulate.graphs.trace_subject import read_subject

        return [read_subject(request)], ()
    from compare.simulate.graphs.run_subjects import expand_run

    return expand_run(request)


def name_machine(request: GraphRequest) -> str:
    """A file, or a slice; of a trace, whose own settings say what it is, empty."""
    if request.machine or not request.is_run:
        return request.machine or ""
    from compare.run.folder.load_run import read_run

    return read_run(request.path).case.topology.name


def answer_subject(subject: Subject, request: GraphRequest) -> tuple[dict[str, object], str]:
    """What it takes, as JSON and in words.  Raises `TimingError` with the trace's folder; writes `--out`."""
    return _by_astra_sim(subject) if request.as_astra_sim else _by_engine(subject, request)


def describe_subject(subject: Subject) -> str:
    machine = describe_machine(count_in_ns(subject.machine, subject.tick_ps))
    return f"machine: {machine}{subject.compute and f'; compute {subject.compute}'}"


def _by_astra_sim(subject: Subject) -> tuple[dict[str, object], str]:
    simulated = replay_graph(
        subject.graph, subject.machine, tick_ps=subject.tick_ps, unnamed=subject.unnamed, options=subject.options
    )
    last = max(range(len(simulated.cycles)), key=simulated.cycles.__getitem__)
    cycles, exposed = simulated.cycles[last], simulated.exposed[last]
    backend = "congestion-aware" if subject.options.aware else "congestion-unaware"
    us = [ticks * subject.tick_ps / 1e6 for ticks in (cycles, exposed)]
    answer: dict[str, object] = {
        "cycles": cycles,
        "exposed": exposed,
        "tick_ps": subject.tick_ps,
        "ranks": [list(pair) for pair in zip(simulated.cycles, simulated.exposed, strict=True)],
    }
    tick = "1 ps" if subject.tick_ps == 1 else "1 ns"
    line = (
        f"{cycles:,} cycles of {tick}, {exposed:,} of them exposed ({us[0]:,.1f} µs, {us[1]:,.1f} µs): "
        f"{subject.name}, {subject.graph.num_ranks} ranks by ASTRA-sim's rules ({backend})"
    )
    return answer, line


def _by_engine(subject: Subject, request: GraphRequest) -> tuple[dict[str, object], str]:
    assert subject.tick_ps == 1000, "our own engine simulates in ns"
    try:
        simulated = simulate_graph(Plan.of(subject.graph, subject.machine), subject.machine, eager=subject.eager)
    except TimingError as error:
        raise TimingError(f"{request.path}: {error}") from None
    num_ranks = subject.graph.num_ranks
    exposed = list_exposed(simulated, num_ranks, lambda transfer: transfer.kind)
    if request.out is not None:
        from compare.simulate.graphs.timeline_file import write_timeline

        write_timeline(request.out, subject, simulated)
    ends = [round(ns, 3) for ns in simulated.rank_ends().tolist()]
    answer: dict[str, object] = {
        "ns": round(simulated.total_ns, 3),
        "model": "native",
        "ranks": ends,
        "exposed_ns": round(sum(exposed.values()), 3),
        "exposed_by_kind_ns": {kind: round(ns, 3) for kind, ns in sorted(exposed.items())},
    }
    kinds = ", ".join(f"{kind} {time_text(ns)}" for kind, ns in sorted(exposed.items(), key=lambda row: -row[1]))
    lines = [
        f"{simulated.total_ns:,.1f} ns: {subject.name}, {num_ranks:,} ranks, our own model",
        f"exposed communication, mean over ranks: {time_text(sum(exposed.values()))}" + f" ({kinds})" * bool(kinds),
    ]
    return answer, "\n".join(lines)
