"""One folder a program: a trace of each rank, and what ASTRA-sim reads beside them.

docs/network.md, section "Chakra", is the contract of every byte.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping

from compare.chakra import settings
from compare.chakra.writer import Attributes, number_groups, write_files
from compare.export.folder.errors import ExportError
from compare.export.folder.exported_programs import SelectedProgram
from compare.export.folder.write_folder import ExportFolder
from compare.network.graph.expand import expand_program
from compare.network.graph.graph import Graph
from compare.network.machines.machine import Machine
from compare.run.folder.chip import find_chip
from compare.schedule.hardware import Hardware
from compare.timeline.errors import TimingError
from compare.verdict.verdict import Verdict
from meshes.process.log import log_note

GROUPS, NETWORK, SYSTEM, MEMORY, RUN = "groups.json", "network.yml", "system.json", "memory.json", "run.txt"


def write(selected: SelectedProgram, folder: ExportFolder) -> str:
    """Write one program's folder; its name.  Raises `ExportError` for what no trace can say."""
    return _write(selected, folder, {})


def write_with_facts(selected: SelectedProgram, folder: ExportFolder) -> str:
    """The same with the verdict on every collective, as attributes of its nodes."""
    judgement = selected.program.judgement
    verdicts = judgement.verdicts if judgement else ()
    return _write(selected, folder, {verdict.collective.name: list_facts(verdict) for verdict in verdicts})


def _write(selected: SelectedProgram, folder: ExportFolder, facts: Mapping[str, Attributes]) -> str:
    program, name = selected.program, selected.name
    if program.module is None:
        raise ExportError(f"{selected.words} was not compiled")
    place = folder.path / name
    place.mkdir()
    try:
        topology = program.case.topology
        chip = find_chip(selected.run.folder, topology.generation)
        graph = expand_program(
            program.module,
            program.rows,
            program.case.plan,
            name=selected.words,
            hardware=Hardware.of(chip),
        )
        machine = settings.count_in_ps(settings.export_machine(topology, chip=chip))
        for rank, data in enumerate(
            write_files(graph, metadata=list_metadata(selected), chunks=machine.chunks, facts=facts)
        ):
            file = place / f"{name}.{rank}.et"
            file.write_bytes(data)
            file.chmod(0o644)  # ASTRA-sim opens it for writing, too
        groups = {str(number): list(ranks) for ranks, number in number_groups(graph).items()}
        (place / GROUPS).write_text(json.dumps(groups) + "\n")
        (place / NETWORK).write_text(settings.write_network(machine))
        (place / SYSTEM).write_text(settings.write_system(machine))
        (place / MEMORY).write_text(settings.MEMORY)
        (place / RUN).write_text(write_command(name, machine))
    except TimingError as error:
        raise ExportError(f"{selected.words} of {selected.run.folder}: {error}") from None
    for note in list_notes(graph, machine):
        log_note(f"{selected.words}: {note}")
    return name


def list_metadata(selected: SelectedProgram) -> Attributes:
    """What a trace says of itself, in this order."""
    arm, phase, cell = selected.program.result.key
    text = (selected.program.result.hlo or "").encode()
    return [
        ("wirediff.units", "tick=ps"),
        ("wirediff.program", hashlib.sha256(text).hexdigest()),
        ("wirediff.arm", arm),
        ("wirediff.phase", phase),
        ("wirediff.cell", cell),
    ]


def list_facts(verdict: Verdict) -> Attributes:
    """Of a collective: its scope, axes and verdict, and the bytes of a step."""
    row = verdict.collective
    bytes_of = {
        "inherent": verdict.inherent_bytes,
        "inflated": verdict.inflated_bytes,
        "induced": verdict.induced_bytes,
    }
    words = "+".join(word for word, many in bytes_of.items() if many) or (
        "none" if any(many is not None for many in bytes_of.values()) else "unknown"
    )
    facts: list[tuple[str, str | int]] = [
        ("wirediff.scope", row.scope),
        ("wirediff.verdict", words),
        ("wirediff.axes", row.axes),
    ]
    if row.executions is not None:
        facts.append(("wirediff.executions", row.executions))
    return facts + [(f"wirediff.{word}_bytes", many) for word, many in bytes_of.items() if many is not None]


def write_command(name: str, machine: Machine) -> str:
    """The command line, to be run in the folder."""
    return (
        f"AstraSim_Analytical_Congestion_Unaware --workload-configuration={name} "
        f"--comm-group-configuration={GROUPS} --system-configuration={SYSTEM} "
        f"--remote-memory-configuration={MEMORY} --network-configuration={NETWORK} "
        f"--num-queues-per-dim={machine.queues}\n"
    )


def list_notes(graph: Graph, machine: Machine) -> list[str]:
    """What ASTRA-sim will do otherwise than the program."""
    crossing: Counter[str] = Counter()
    for transfer in graph.transfers:
        if transfer.are_pairs:
            for pair in transfer.groups:
                source, target = map(machine.coordinates, pair)
                crossing[transfer.collective] += sum(a != b for a, b in zip(source, target, strict=True)) > 1
    notes = [
        f"ASTRA-sim charges the first dim alone of {many} messages of {name}, whose ranks differ in several"
        for name, many in crossing.items()
        if many
    ]
    ragged = sorted({each.collective for each in graph.transfers if each.kind == "ragged-all-to-all"})
    return [*notes, *(f"{name} is written as a full all-to-all, its upper bound" for name in ragged)]
