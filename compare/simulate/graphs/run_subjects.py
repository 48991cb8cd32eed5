"""The graphs of a run's programs, as they are exported."""

from collections.abc import Iterable, Iterator, Sequence

from compare.chakra.settings import count_in_ps, export_machine
from compare.network.astra_sim.options import Options
from compare.network.graph.expand import expand_program
from compare.network.machines.machine_file import find_machine
from compare.report.programs import JudgedProgram, judge_programs, list_failures
from compare.run.folder.chip import find_chip
from compare.run.folder.load_run import read_run
from compare.schedule.hardware import Hardware, describe_times
from compare.simulate.graphs.graph_request import GraphRequest
from compare.simulate.graphs.subject import Subject
from compare.timeline.errors import TimingError
from meshes.process.log import log_note


def expand_run(request: GraphRequest) -> tuple[Iterable[Subject], tuple[str, ...]]:
    """The graphs, each expanded as it comes, and a line for each program that could not be read."""
    run = read_run(request.path)
    programs = judge_programs(run.case, run.select(request.words))
    return _list_run(request, programs), list_failures(program.result for program in programs)


def _list_run(request: GraphRequest, programs: Sequence[JudgedProgram]) -> Iterator[Subject]:
    """Those of a run's programs that were compiled for TPUs, as they are exported."""
    simulated = 0
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
        simulated += 1
        options = Options(aware=request.aware)
        yield Subject(
            name=name,
            graph=graph,
            machine=count_in_ps(machine),
            tick_ps=1,
            compute=describe_times(chip),
            options=options,
        )
    if not simulated:
        words = "/".join(word or "*" for word in request.words)
        failures = list_failures(program.result for program in programs)
        raise TimingError("; ".join([f"{request.path} has no program {words} that was compiled for TPUs", *failures]))
