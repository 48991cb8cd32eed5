"""The options of `compare.simulate RUN`: on which machine, with which changes, swept over what."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from math import log2
from pathlib import Path

from compare.cli.options.chip_option import add_chip
from compare.cli.options.machine_options import add_machine
from compare.cli.options.numbers import digits, number
from compare.network.machines.changes import SCALES
from compare.network.machines.machine import KINDS
from compare.network.machines.machine_file import MACHINE_KEYS
from compare.simulate.what_if.request import COMPUTE, MACHINE, Sweep, WhatIf, split_change
from compare.timeline.errors import TimingError
from meshes.process.command_line import Parser, command_parser, whole_number
from meshes.process.one_line import quote

_SWEEP = re.compile(r"([a-z][\w.-]*)=([^:=]+):([^:=]+)(?::(log|linear))?", re.ASCII)
_POINTS = 13
_MOST_POINTS = 200
_points = number(digits, lambda points: 2 <= points <= _MOST_POINTS, f"2 to {_MOST_POINTS}, not {{}}")


def what_if_parser() -> Parser:
    """Of `compare.simulate RUN`."""
    parser = command_parser(
        "compare.simulate",
        "Simulate the compiled programs of a run on any machine, real or not: step times, exposed communication by "
        "verdict.  One collective: cost; a Chakra trace: replay.",
        example="docs/example-run --machine v5e:2x4 --sweep ici=0.25:8:log --out what-if",
    )
    add = parser.add_argument
    add("run", metavar="RUN", type=Path, help="a run folder: case.json, and <arm>/<phase>/<cell>/")
    add_machine(parser, " (default: what the programs were compiled for)")
    add_chip(parser, " (default: what the run keeps)")
    add(
        "--scale",
        metavar="WORD=X,…",
        action="append",
        default=[],
        help=f"times X: {'; '.join(f'{word}: {what}' for word, what in SCALES.items())}; compute: the speed of ranks",
    )
    of_set = "a key of the machine's file, like dims.1.bandwidth=180"
    add("--set", metavar="KEY=VALUE", action="append", default=[], help=of_set)
    add(
        "--algorithm",
        metavar="KIND=WORD",
        action="append",
        default=[],
        help="of one kind of collective, like all-reduce=halving-doubling; of each dim, joined by +",
    )
    add(
        "--repeat",
        metavar="N",
        type=whole_number,
        default=1,
        help="copies of the programs side by side, as over an outer data-parallel axis (default: 1)",
    )
    add(
        "--sweep",
        metavar="WORD=FROM:TO[:log]|WORD=A,B,…",
        help="over a word of --scale or a key of --set, like ici=0.25:8:log or dims.0.kind=ring,switch; over machines, "
        "machine=v5e:2x4,v6e:2x4; over algorithms, all-reduce=ring,direct",
    )
    add("--points", metavar="N", type=_points, help=f"of a sweep (default: {_POINTS}; of log two an octave)")
    add("--best", action="store_true", help="the fastest algorithm of each collective alone, and the compiler's")
    add(
        "--out",
        metavar="DIR",
        type=Path,
        help="write the run as it would be on this machine: report, tables, figures, trace; with --sweep its figure",
    )
    add(
        "--into",
        action="store_true",
        help="write numbers and figure into RUN, and a copy of --chip's file; compare.report puts them on its page",
    )
    add("--json", action="store_true", help="print one JSON object")
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
        split_change(change, f"--{kind}")
    if options.points is not None and not options.sweep:
        raise TimingError("--points belongs to --sweep")
    sweep = _parse_sweep(options.sweep, options.points) if options.sweep else None
    words = {field.name: getattr(options, field.name, None) for field in fields(WhatIf)}
    return WhatIf(**words | {"changes": tuple(changes), "sweep": sweep})


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

    import numpy as np

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
