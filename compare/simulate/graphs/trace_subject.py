"""The graph of a Chakra trace, and the machine beside it or that was asked for."""

from dataclasses import replace

import numpy as np

from compare.chakra.reader import Trace, build_trace, read_folder
from compare.chakra.settings import Settings, count_in_ns, count_in_ps, read_settings
from compare.network.astra_sim.options import Options
from compare.network.engine.faults import name_node
from compare.network.graph.graph import COMPUTE
from compare.network.machines.machine_file import find_machine
from compare.simulate.graphs.graph_request import GraphRequest
from compare.simulate.graphs.subject import Subject
from compare.timeline.errors import TimingError
from meshes.process.log import log_note


def read_subject(request: GraphRequest) -> Subject:
    """The trace of a folder.  `TimingError` for what is no trace, and as astra-sim for what it cannot simulate."""
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
    """Notes what our own engine passes over; `TimingError` for what ASTRA-sim does not simulate to its end."""
    if not request.as_astra_sim:
        for note in trace.notes:
            log_note(note)
        for kind in dict.fromkeys(transfer.kind for transfer in trace.graph.transfers):
            if kind in (*settings.options.custom, *settings.unnamed_kinds):
                log_note(f"system.json has no algorithm of {kind} that our own engine simulates: rings here")
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
