"""What is asked of a run, as the options have it: changes of its machine, and the range of a sweep."""

import argparse
import re
from dataclasses import fields
from itertools import pairwise
from math import log2

from compare.cli.options.what_if_options import MOST_POINTS, POINTS
from compare.network.machines.kinds import KINDS, SCALES
from compare.network.machines.machine_file import MACHINE_KEYS
from compare.simulate.what_if.request import COMPUTE, MACHINE, Sweep, WhatIf, split_change
from compare.timeline.errors import TimingError
from meshes.process.command_line import Parser
from meshes.process.one_line import quote

_SWEEP = re.compile(r"([a-z][\w.-]*)=([^:=]+):([^:=]+)(?::(log|linear))?", re.ASCII)


def read_what_if(options: argparse.Namespace, parser: Parser) -> WhatIf:
    """Ends the process in one line where the request is wrong."""
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
        points = min(round(2 * log2(high / low)) + 1, MOST_POINTS) if is_log else POINTS
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
    if not 2 <= len(values) <= MOST_POINTS or not all(values) or len(set(values)) < len(values):
        raise TimingError(f"--sweep: a list has 2 to {MOST_POINTS} values, each once, not {quote(text)}")
    if word in (MACHINE, *KINDS):
        return tuple(values)
    try:
        numbers = [float(each) for each in values]
    except ValueError:
        return tuple(values)
    if not all(0 < low < high <= 1e15 for low, high in pairwise(numbers)):
        raise TimingError(f"--sweep: ascending numbers more than 0, not {quote(text)}")
    return tuple(numbers)
