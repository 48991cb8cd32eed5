"""Answer `compare.simulate FOLDER`: read or expand the graphs, and play them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from compare.chakra.reader import Trace, build_trace, read_folder
from compare.chakra.settings import Settings, count_in_ns, count_in_ps, export_machine, read_settings
from compare.metrics.verdicts import VERDICTS
from compare.network.astra_sim.options import Options
from compare.network.astra_sim.program import play_graph
from compare.network.engine.faults import name_node
from compare.network.engine.game import Played
from compare.network.engine.graph_layout import Plan
from compare.network.engine.play import play
from compare.network.graph.expand import expand_program
from compare.network.graph.graph import COMPUTE, Graph
from compare.network.machines.machine import Machine
from compare.network.machines.machine_file import find_machine
from compare.network.programs.simulation import list_exposed
from compare.network.programs.timeline import show_timeline
from compare.render.units import time_text
from compare.report.programs import JudgedProgram, judge_programs, list_failures
from compare.run.folder.chip import find_chip
from compare.run.folder.load_run import read_run
from compare.schedule.hardware import Hardware, describe_times
from compare.simulate.graphs.graph_request import GraphRequest
from compare.simulate.print_answer import describe_machine
from compare.timeline.errors import TimingError
from meshes.process import atomic_files
from meshes.process.one_line import log_note


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A graph, and the machine it runs on."""

    name: str
    graph: Graph
    machine: Machine
    """In ticks of ASTRA-sim, or in ns of our own engine."""
    tick_ps: int
    unnamed: frozenset[int] = frozenset()
    eager: bool = False
    """Whether messages leave before their receivers have come: in traces of other tools."""
    compute: str = ""
    """Whose rates its computation has, where they are a user's: `calibrated on our pod`."""
    options: Options = field(default_factory=Options)
    """Of ASTRA-sim."""


def find_subjects(request: GraphRequest) -> tuple[Iterable[Subject], tuple[str, ...]]:
    """The graphs, each read or expanded as it comes, and a line for each program of a run that could not be read."""
    if not request.is_run:
        return [_read_subject(request)], ()
    run = read_run(request.path)
    programs = judge_programs(run.case, run.select(request.words))
    return _list_run(request, programs), list_failures(program.result for program in programs)


def name_machine(request: GraphRequest) -> str:
    """A file, or a slice; of a trace, whose own settings say what it is, empty."""
    return request.machine or (read_run(request.path).case.topology.name if request.is_run else "")


def answer_subject(subject: Subject, request: GraphRequest) -> tuple[dict[str, object], str]:
    """What it takes, as JSON and in words.  Raises `TimingError` with the trace's folder; writes `--out`."""
    return _by_astra_sim(subject) if request.as_astra_sim else _by_engine(subject, request)


def describe_subject(subject: Subject) -> str:
    machine = describe_machine(count_in_ns(subject.machine, subject.tick_ps))
    return f"machine: {machine}{subject.compute and f'; compute {subject.compute}'}"


def _read_subject(request: GraphRequest) -> Subject:
    """The trace of a folder.  `TimingError` for what is no trace, and as astra-sim for what it cannot play."""
    folder = read_folder(request.path)
    settings = _read_settings(request, len(folder.files))
    options = replace(settings.options, aware=settings.options.aware or request.aware)
    sizes = tuple(dim.size for dim in settings.machine.dims)
    trace = build_trace(folder, sizes=sizes, replays=options.replays)
    _check_trace(request, trace, settings)
    machine, tick_ps = settings.machine, trace.tick_ps
    if request.machine is not None and request.as_astra_sim and tick_ps == 1:
        machine = count_in_ps(machine)
    if request.machine is None and not request.as_astra_sim:
        machine = count_in_ns(machine, tick_ps)
    return Subject(
        name=trace.graph.name,
        graph=trace.graph,
        machine=machine,
        tick_ps=tick_ps if request.as_astra_sim else 1000,
        unnamed=trace.unnamed,
        eager=trace.tick_ps != 1 and not options.rendezvous,
        options=options,
    )


def _read_settings(request: GraphRequest, num_ranks: int) -> Settings:
    """Those beside the trace, in its ticks; of `--machine` a machine alone, in ns."""
    if request.machine is None:
        return read_settings(request.path, num_ranks=num_ranks)
    machine = find_machine(request.machine, as_astra_sim=request.as_astra_sim)
    if machine.num_ranks != num_ranks:
        raise TimingError(
            f"{request.machine}: its dims multiply to {machine.num_ranks:,} ranks, and {request.path} has {num_ranks:,}"
        )
    return Settings(machine=machine, options=Options())


def _check_trace(request: GraphRequest, trace: Trace, settings: Settings) -> None:
    """Notes what our own engine passes over; `TimingError` for what ASTRA-sim does not play to its end."""
    if not request.as_astra_sim:
        for note in trace.notes:
            log_note(note)
        for kind in dict.fromkeys(transfer.kind for transfer in trace.graph.transfers):
            if kind in (*settings.options.custom, *settings.unnamed_kinds):
                log_note(f"system.json has no algorithm of {kind} that our own engine plays: rings here")
        return
    for fault in trace.faults:
        raise TimingError(f"{request.path}, {fault}")
    for transfer in trace.graph.transfers:
        if transfer.kind in settings.unnamed_kinds:
            raise TimingError(
                f"{request.path / 'system.json'}: {transfer.kind}-implementation is not there, and the trace has one"
            )
    if settings.machine.peak_flops_per_ns is not None and request.machine is None and not settings.options.replays:
        for table in trace.graph.tables:
            for node in np.flatnonzero((table.ops == COMPUTE) & (np.isnan(table.flops) | np.isnan(table.memory_bytes))):
                raise TimingError(
                    f"{request.path}, {name_node(table, int(node))}: without num_ops and tensor_size, which the "
                    "roofline of ASTRA-sim needs"
                )


def _list_run(request: GraphRequest, programs: Sequence[JudgedProgram]) -> Iterator[Subject]:
    """Those of a run's programs that were compiled for TPUs, as they are exported."""
    played = 0
    for program in programs:
        name = "/".join(program.result.key)
        if program.module is None:
            continue
        if (program.about.executed or {}).get("platform") == "cpu":
            log_note(f"{name} is left out: it was compiled for CPU devices")
            continue
        topology = program.case.topology
        chip = find_chip(request.path, topology.generation, request.chip)
        if request.machine is None:
            machine = export_machine(topology, chip=chip)
        else:
            machine = find_machine(request.machine, chip=chip, as_astra_sim=True)
        hardware = Hardware.of(chip)
        graph = expand_program(program.module, program.rows, program.case.plan, name=name, hardware=hardware)
        played += 1
        options = Options(aware=request.aware)
        yield Subject(
            name=name,
            graph=graph,
            machine=count_in_ps(machine),
            tick_ps=1,
            compute=describe_times(chip),
            options=options,
        )
    if not played:
        words = "/".join(word or "*" for word in request.words)
        failures = list_failures(program.result for program in programs)
        raise TimingError("; ".join([f"{request.path} has no program {words} that was compiled for TPUs", *failures]))


def _by_astra_sim(subject: Subject) -> tuple[dict[str, object], str]:
    played = play_graph(
        subject.graph, subject.machine, tick_ps=subject.tick_ps, unnamed=subject.unnamed, options=subject.options
    )
    last = max(range(len(played.cycles)), key=played.cycles.__getitem__)
    cycles, exposed = played.cycles[last], played.exposed[last]
    backend = "congestion-aware" if subject.options.aware else "congestion-unaware"
    us = [ticks * subject.tick_ps / 1e6 for ticks in (cycles, exposed)]
    answer: dict[str, object] = {
        "cycles": cycles,
        "exposed": exposed,
        "tick_ps": subject.tick_ps,
        "ranks": [list(pair) for pair in zip(played.cycles, played.exposed, strict=True)],
    }
    tick = "1 ps" if subject.tick_ps == 1 else "1 ns"
    line = (
        f"{cycles:,} cycles of {tick}, {exposed:,} of them exposed ({us[0]:,.1f} µs, {us[1]:,.1f} µs): "
        f"{subject.name}, {subject.graph.num_ranks} ranks by ASTRA-sim's rules ({backend})"
    )
    return answer, line


def _by_engine(subject: Subject, request: GraphRequest) -> tuple[dict[str, object], str]:
    try:
        played = play(Plan.of(subject.graph, subject.machine), subject.machine, eager=subject.eager)
    except TimingError as error:
        raise TimingError(f"{request.path}: {error}") from None
    num_ranks = subject.graph.num_ranks
    exposed = list_exposed(played, num_ranks, lambda transfer: transfer.kind)
    if request.out is not None:
        _write_timeline(request.out, subject, played)
    ends = [round(ns, 3) for ns in played.rank_ends().tolist()]
    answer: dict[str, object] = {
        "ns": round(played.total_ns, 3),
        "model": "native",
        "ranks": ends,
        "exposed_ns": round(sum(exposed.values()), 3),
        "exposed_by_kind_ns": {kind: round(ns, 3) for kind, ns in sorted(exposed.items())},
    }
    kinds = ", ".join(f"{kind} {time_text(ns)}" for kind, ns in sorted(exposed.items(), key=lambda row: -row[1]))
    lines = [
        f"{played.total_ns:,.1f} ns: {subject.name}, {num_ranks:,} ranks, our own model",
        f"exposed communication, mean over ranks: {time_text(sum(exposed.values()))}" + f" ({kinds})" * bool(kinds),
    ]
    return answer, "\n".join(lines)


def _write_timeline(path: Path, subject: Subject, played: Played) -> None:
    """Every rank as a device, in Chrome's trace format."""
    from compare.render.time.perfetto import write_trace
    from compare.render.time.timeline_view import ProgramTimeline

    machine = subject.machine
    on = machine.name if machine.name != "machine" else describe_machine(machine)
    timeline = show_timeline(played, range(subject.graph.num_ranks), {}, label=f"simulated on {on}")
    shares = pd.DataFrame({"collective": [], "verdict": [], **{verdict: [] for verdict in VERDICTS}})
    program = ProgramTimeline(
        phase="trace",
        arm="",
        title=subject.name,
        cell=f"{subject.graph.num_ranks} ranks",
        default=True,
        timeline=timeline,
        shares=shares,
    )
    with atomic_files.temporary() as folder:
        write_trace(folder / "trace", timelines=[program])
        atomic_files.write_bytes(path, (folder / "trace").read_bytes())
