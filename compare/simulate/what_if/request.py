"""The options of `compare.simulate RUN`: on which machine, with which changes, swept over what."""

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2
from pathlib import Path

import numpy as np

from compare.network.machines.changes import (
    BANDWIDTH,
    DCN,
    ICI,
    LATENCY,
    LAUNCH,
    MEMORY,
    SCALES,
    scale_machine,
    set_algorithms,
    set_value,
)
from compare.network.machines.machine import KINDS, Machine
from compare.network.machines.machine_file import MACHINE_KEYS, read_machine
from compare.network.machines.tpu import tpu_machine
from compare.network.machines.words import choose_algorithm
from compare.network.programs.simulation import Simulation
from compare.run.chip_option import add_chip
from compare.timeline.errors import TimingError
from meshes.devices.chip import Chip
from meshes.process.command_line import Parser, command_parser, whole_number
from meshes.process.one_line import quote

COMPUTE, MACHINE = "compute", "machine"
_TITLES = {
    BANDWIDTH: "bandwidth", ICI: "ICI bandwidth", DCN: "DCN bandwidth", LATENCY: "latency", LAUNCH: "launch latency",
    MEMORY: "memory bandwidth of reductions", COMPUTE: "speed of compute", MACHINE: "machines",
}  # fmt: skip
_SWEEP = re.compile(r"([a-z][\w.-]*)=([^:=]+):([^:=]+)(?::(log|linear))?", re.ASCII)
_POINTS = 13
_MOST_POINTS = 200


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

    def simulation(self, topology: str, chip: Chip | None = None) -> Simulation:
        """For programs compiled for a topology.  Raises `TimingError`.

        chip: of that topology; other chips have their generation's rates.
        """
        word = self.machine or topology
        machine = read_machine(Path(word), chip) if word.endswith(".toml") else tpu_machine(word, chip=chip)
        simulation = Simulation(machine=machine, repeat=self.repeat)
        for kind, change in self.changes:
            simulation = CHANGES[kind](simulation, *_split(change, f"--{kind}"))
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
    return _with(simulation, scale_machine(simulation.machine, word, factor))


def _set(simulation: Simulation, word: str, value: str) -> Simulation:
    return _with(simulation, set_value(simulation.machine, word, value))


def _algorithm(simulation: Simulation, word: str, value: str) -> Simulation:
    algorithms = tuple(choose_algorithm(each, simulation.machine) for each in value.split("+"))
    return _with(simulation, set_algorithms(simulation.machine, word, algorithms))


def _with(simulation: Simulation, machine: Machine) -> Simulation:
    return replace(simulation, machine=machine)


CHANGES: dict[str, Callable[[Simulation, str, str], Simulation]] = {
    "scale": scale_by, "set": _set, "algorithm": _algorithm,
}  # fmt: skip


def change_point(simulation: Simulation, sweep: Sweep, value: float | str) -> Simulation:
    """The machine at one point of a sweep over one of its own numbers or words."""
    if sweep.word in KINDS:
        return _algorithm(simulation, sweep.word, str(value))
    change = scale_by if sweep.is_factor else _set
    return change(simulation, sweep.word, value if isinstance(value, str) else f"{value:.15g}")


def _split(change: str, option: str) -> tuple[str, str]:
    word, equals, value = change.partition("=")
    if not equals or not word.strip() or not value.strip():
        raise TimingError(f"{option}: {quote(change)} is no change; write one like ici=2")
    return word.strip(), value.strip()


def what_if_parser() -> Parser:
    """Of `compare.simulate RUN`."""
    parser = command_parser(
        "compare.simulate",
        "Play the compiled programs of a run on any machine, real or not: step times, exposed communication by "
        "verdict.  Other forms: python -m compare.simulate --help.",
        example="docs/example-run --machine v5e:2x4 --sweep ici=0.25:8:log --out what-if",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="a run folder: case.json, and <arm>/<phase>/<cell>/")
    parser.add_argument(
        "--machine", metavar="FILE|NAME",
        help="a TOML file, or a TPU slice like v6e:2x4 (default: what the programs were compiled for)",
    )  # fmt: skip
    add_chip(parser, " (default: what the run keeps)")
    parser.add_argument(
        "--scale", metavar="WORD=X,…", action="append", default=[],
        help=f"times X: {'; '.join(f'{word}: {what}' for word, what in SCALES.items())}; compute: the speed of ranks",
    )  # fmt: skip
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a key of the machine's file, like dims.1.bandwidth=180",
    )
    parser.add_argument(
        "--algorithm", metavar="KIND=WORD", action="append", default=[],
        help="of one kind of collective, like all-reduce=halving-doubling; of each dim, joined by +",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", metavar="N", type=whole_number, default=1,
        help="copies of the programs side by side, as over an outer data-parallel axis (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--sweep",
        metavar="WORD=FROM:TO[:log]|WORD=A,B,…",
        help="over a word of --scale or a key of --set, like ici=0.25:8:log or dims.0.kind=ring,switch; over machines, "
        "machine=v5e:2x4,v6e:2x4; over algorithms, all-reduce=ring,direct",
    )
    parser.add_argument(
        "--points", metavar="N", type=_points, help=f"of a sweep (default: {_POINTS}; of log two an octave)"
    )
    parser.add_argument(
        "--best", action="store_true", help="the fastest algorithm of each collective alone, and the compiler's"
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path,
        help="write the run as it would be on this machine: report, tables, figures, trace; with --sweep its figure",
    )  # fmt: skip
    parser.add_argument(
        "--into", action="store_true",
        help="write numbers and figure into RUN, and a copy of --chip's file; compare.report puts them on its page",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def parse_what_if(argv: Sequence[str]) -> WhatIf:
    """Ends the process in one line where the request is wrong."""
    parser = what_if_parser()
    options = parser.parse_args(argv)
    try:
        return _read(options)
    except TimingError as error:
        parser.error(str(error))


def _read(options: argparse.Namespace) -> WhatIf:
    changes = [("scale", word) for words in options.scale for word in words.split(",")]
    changes += [("set", word) for word in options.set] + [("algorithm", word) for word in options.algorithm]
    for kind, change in changes:
        _split(change, f"--{kind}")
    if options.points is not None and not options.sweep:
        raise TimingError("--points belongs to --sweep")
    return WhatIf(
        run=options.run,
        chip=options.chip,
        machine=options.machine,
        changes=tuple(changes),
        repeat=options.repeat,
        sweep=_parse_sweep(options.sweep, options.points) if options.sweep else None,
        best=options.best,
        out=options.out,
        into=options.into,
        json=options.json,
    )


def _parse_sweep(words: str, points: int | None) -> Sweep:
    word, equals, rest = words.partition("=")
    if equals and not word.strip():
        raise TimingError(f"--sweep: {quote(words)} names nothing; write one like ici=0.25:8:log")
    if equals and ("," in rest or word in (MACHINE, *KINDS)):
        if points is not None:
            raise TimingError(f"--points belongs to a range, not to the list {quote(rest)}")
        _check_word(word)
        return Sweep(word, _parse_list(word, rest))
    match = _SWEEP.fullmatch(words)
    if not match:
        raise TimingError(
            f"--sweep: {quote(words)} is no range; write one like ici=0.25:8:log, or a list like "
            "machine=v5e:2x4,v6e:2x4"
        )
    try:
        low, high = float(match[2]), float(match[3])
    except ValueError:
        raise TimingError(f"--sweep: {quote(words)} is no range of numbers; write one like ici=0.25:8:log") from None
    _check_word(match[1])
    if not 0 < low < high <= 1e15:
        raise TimingError(f"--sweep: from a number more than 0 to a larger one, not {low:g} to {high:g}")
    is_log = match[4] == "log"
    if points is None:
        points = min(round(2 * log2(high / low)) + 1, _MOST_POINTS) if is_log else _POINTS
        points = max(points, 2)
    values = np.geomspace(low, high, points) if is_log else np.linspace(low, high, points)
    return Sweep(match[1], tuple(float(f"{value:.6g}") for value in values), is_log)


def _check_word(word: str) -> None:
    """What a sweep is over: a word of `--scale`, a kind of collective, machines, or a key of the machine's file."""
    words = (*SCALES, COMPUTE, MACHINE, *KINDS)
    if word not in words and word.partition(".")[0] not in MACHINE_KEYS:
        raise TimingError(
            f"--sweep: unknown {quote(word)}; known are {', '.join(words)}, and the keys of a machine's file: "
            f"{', '.join(key for key in MACHINE_KEYS if key not in words)}, as dims.0.bandwidth"
        )


def _points(word: str) -> int:
    if not re.fullmatch(r"\d{1,9}", word, re.ASCII) or not 2 <= int(word) <= _MOST_POINTS:
        raise argparse.ArgumentTypeError(f"2 to {_MOST_POINTS}, not {quote(word)}")
    return int(word)


def _parse_list(word: str, text: str) -> tuple[float | str, ...]:
    """Ascending numbers, or words in their order."""
    values = [each.strip() for each in text.split(",")]
    if not 2 <= len(values) <= _MOST_POINTS or not all(values) or len(set(values)) < len(values):
        raise TimingError(f"--sweep: a list has 2 to {_MOST_POINTS} values, each once, not {quote(text)}")
    if word in (MACHINE, *KINDS):
        return tuple(values)
    try:
        numbers = [float(each) for each in values]
    except ValueError:
        return tuple(values)
    if not all(0 < low < high <= 1e15 for low, high in pairwise(numbers)):
        raise TimingError(f"--sweep: ascending numbers more than 0, not {quote(text)}")
    return tuple(numbers)
