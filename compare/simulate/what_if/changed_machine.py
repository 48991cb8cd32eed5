"""The machine that a request is of, with its changes, and at each point of its sweep."""

from collections.abc import Callable
from dataclasses import replace

from compare.network.machines.changes import scale_machine, set_algorithms, set_value
from compare.network.machines.kinds import KINDS, SCALES
from compare.network.machines.machine_file import find_machine
from compare.network.machines.words import choose_algorithm
from compare.network.programs.simulation import Simulation
from compare.simulate.what_if.request import COMPUTE, MACHINE, Sweep, WhatIf, split_change
from compare.timeline.errors import TimingError
from meshes.devices.chip import Chip
from meshes.process.one_line import quote


def build_simulation(request: WhatIf, topology: str, chip: Chip | None = None) -> Simulation:
    """For programs compiled for a topology.  Raises `TimingError`.

    chip: of that topology; other chips have their generation's rates.
    """
    simulation = Simulation(machine=find_machine(request.machine or topology, chip=chip), repeat=request.repeat)
    for kind, change in request.changes:
        simulation = CHANGES[kind](simulation, *split_change(change, f"--{kind}"))
    if request.changes:
        words = ", ".join(change for _, change in request.changes)
        simulation = replace(
            simulation, machine=replace(simulation.machine, name=f"{simulation.machine.name} with {words}")
        )
    return simulation


def build_point(request: WhatIf, topology: str, value: float | str, chip: Chip | None = None) -> Simulation:
    """At one value of the sweep.  Raises `TimingError`."""
    assert request.sweep is not None
    if request.sweep.word == MACHINE:
        return build_simulation(replace(request, machine=str(value)), topology, chip)
    point = change_point(build_simulation(request, topology, chip), request.sweep, value)
    words = f"{request.sweep.word}={value if isinstance(value, str) else f'{value:g}'}"
    name = f"{point.machine.name}{', ' if request.changes else ' with '}{words}"
    return replace(point, machine=replace(point.machine, name=name))


def scale_by(simulation: Simulation, word: str, value: str) -> Simulation:
    """`ici`, `2`: also of compute."""
    try:
        factor = float(value)
    except ValueError:
        raise TimingError(f"scale: {quote(value)} is no number; write one like {word}=2") from None
    if word == COMPUTE:
        if not 0 < factor <= 1e9:
            raise TimingError(f"scale: compute times a number more than 0 and at most 1e9, not {factor:g}")
        return replace(simulation, compute=simulation.compute * factor)
    if word not in SCALES:
        raise TimingError(f"scale: unknown {quote(word)}; known are {', '.join((*SCALES, COMPUTE))}")
    return replace(simulation, machine=scale_machine(simulation.machine, word, factor))


def _set(simulation: Simulation, word: str, value: str) -> Simulation:
    return replace(simulation, machine=set_value(simulation.machine, word, value))


def _algorithm(simulation: Simulation, word: str, value: str) -> Simulation:
    algorithms = tuple(choose_algorithm(each, simulation.machine) for each in value.split("+"))
    return replace(simulation, machine=set_algorithms(simulation.machine, word, algorithms))


CHANGES: dict[str, Callable[[Simulation, str, str], Simulation]] = {
    "scale": scale_by,
    "set": _set,
    "algorithm": _algorithm,
}


def change_point(simulation: Simulation, sweep: Sweep, value: float | str) -> Simulation:
    """The machine at one point of a sweep over one of its own numbers or words."""
    if sweep.word in KINDS:
        return _algorithm(simulation, sweep.word, str(value))
    change = scale_by if sweep.is_factor else _set
    return change(simulation, sweep.word, value if isinstance(value, str) else f"{value:.15g}")
