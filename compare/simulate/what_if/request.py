"""What is asked of a run: on which machine, with which changes, swept over what."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from compare.network.machines.changes import SCALES, TITLES, scale_machine, set_algorithms, set_value
from compare.network.machines.machine import KINDS
from compare.network.machines.machine_file import find_machine
from compare.network.machines.words import choose_algorithm
from compare.network.programs.simulation import Simulation
from compare.run.errors import WorkError
from compare.run.folder.replace_folder import CASE
from compare.run.folder.timelines import SIMULATION
from compare.timeline.errors import TimingError
from meshes.devices.chip import Chip
from meshes.process.one_line import quote

COMPUTE, MACHINE = "compute", "machine"
_TITLES = {**TITLES, COMPUTE: "speed of compute", MACHINE: "machines"}


@dataclass(frozen=True, slots=True)
class Sweep:
    """One number of the machine over a range."""

    word: str
    """Of `scale_machine`, `compute`, `machine`, a kind of collective, or a key of the machine's file."""
    values: tuple[float | str, ...]
    """Words of a list: machines, algorithms, values of a key."""
    is_log: bool = False

    @property
    def is_factor(self) -> bool:
        return self.word in SCALES or self.word == COMPUTE

    @property
    def is_list(self) -> bool:
        return any(isinstance(value, str) for value in self.values)

    @property
    def what(self) -> str:
        """In words, as a title has it: `ICI bandwidth`."""
        if self.word in KINDS:
            return f"algorithms of {self.word}"
        return _TITLES.get(self.word, self.word)


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """Programs on a machine."""

    run: Path
    chip: Path | None
    """A user's file of the run's chips; `None`: that of the run folder, or the generation's."""
    machine: str | None
    """A file or a name; `None`: what the programs were compiled for."""
    changes: tuple[tuple[str, str], ...]
    """(`scale` | `set` | `algorithm`, `key=value`), in this order."""
    repeat: int
    sweep: Sweep | None
    best: bool
    out: Path | None
    into: bool
    json: bool

    def check_out(self) -> None:
        """`WorkError` where `--out` would replace a run whose times are not simulated, or the one that is read."""
        out = self.out
        if out is None:
            return
        if out.resolve() == self.run.resolve():
            raise WorkError(
                f"--out {out} is the run itself, which stays as it is; name another folder, or write numbers and "
                "figure into it with --into"
            )
        if (out / CASE).is_file() and not (out / SIMULATION).is_file():
            raise WorkError(
                f"--out {out} holds a run that is not simulated (no {SIMULATION} in it); name another folder; --into "
                "writes numbers and figure into the run that is simulated"
            )

    def simulation(self, topology: str, chip: Chip | None = None) -> Simulation:
        """For programs compiled for a topology.  Raises `TimingError`.

        chip: of that topology; other chips have their generation's rates.
        """
        simulation = Simulation(machine=find_machine(self.machine or topology, chip=chip), repeat=self.repeat)
        for kind, change in self.changes:
            simulation = CHANGES[kind](simulation, *split_change(change, f"--{kind}"))
        if self.changes:
            words = ", ".join(change for _, change in self.changes)
            simulation = replace(
                simulation, machine=replace(simulation.machine, name=f"{simulation.machine.name} with {words}")
            )
        return simulation

    def point(self, topology: str, value: float | str, chip: Chip | None = None) -> Simulation:
        """At one value of the sweep.  Raises `TimingError`."""
        assert self.sweep is not None
        if self.sweep.word == MACHINE:
            return replace(self, machine=str(value)).simulation(topology, chip)
        point = change_point(self.simulation(topology, chip), self.sweep, value)
        words = f"{self.sweep.word}={value if isinstance(value, str) else f'{value:g}'}"
        name = f"{point.machine.name}{', ' if self.changes else ' with '}{words}"
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


def split_change(change: str, option: str) -> tuple[str, str]:
    """`ici=2` of an option.  Raises `TimingError` for anything else."""
    word, equals, value = change.partition("=")
    if not equals or not word.strip() or not value.strip():
        raise TimingError(f"{option}: {quote(change)} is no change; write one like ici=2")
    return word.strip(), value.strip()
