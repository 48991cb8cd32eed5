"""The options of `compare.energy`."""

import argparse
import re
import sys
from collections.abc import Sequence

from compare.cli.options.chip_option import add_chip
from compare.timeline.errors import TimingError
from meshes.process.command_line import command_parser, new_file, path
from meshes.process.one_line import quote

_MOST_POINTS = 200
_SLOWEST, _FASTEST = 0.05, 5.0


def parse_energy(argv: Sequence[str] | None) -> argparse.Namespace:
    """Ends the process in one line where the request is wrong; `frequency`: ÷ nominal, in rising order."""
    parser = command_parser(
        "compare.energy",
        "Print the joules of a step of each compiled program of a run: modelled, by component and verdict.",
        example="runs/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4 --chip our-pod.toml",
    )
    add = parser.add_argument
    add("run", metavar="RUN", type=path, help="a run folder; it stays as it is")
    add_chip(parser)
    frequency = "time, energy and energy × delay at A to B × the nominal frequency of the core"
    add("--frequency", metavar="A:B:STEP", default="", help=frequency)
    marginal = "how much energy a faster part saves: -d ln E / d ln s of compute, memory, ICI and DCN"
    add("--marginal", action="store_true", help=marginal)
    add("--figure", metavar="FILE", type=new_file, help="the curves of --frequency, as .svg or .png")
    add("--json", action="store_true", help="print the answer as JSON")
    options: argparse.Namespace = parser.parse_args(_join_frequencies(sys.argv[1:] if argv is None else argv))
    if options.figure and not options.frequency:
        parser.error("--figure belongs to --frequency")
    if options.figure and options.figure.suffix not in (".png", ".svg"):
        parser.error(f"--figure is {quote(str(options.figure))}; it names a .svg or .png file")
    try:
        options.frequency = parse_frequencies(options.frequency) if options.frequency else ()
    except TimingError as error:
        parser.error(str(error))
    return options


def parse_frequencies(words: str) -> tuple[float, ...]:
    """`0.5:1.1:0.05`: from 0.5 to 1.1, both included.  `TimingError`, one line, for anything else."""
    number = r"(-?\d{1,6}(?:\.\d{1,6})?)"
    match = re.fullmatch(f"{number}:{number}:{number}", words.strip(), re.ASCII)
    if not match:
        raise TimingError(f"--frequency: {quote(words)} is no range; write A:B:STEP of the nominal, like 0.5:1.1:0.05")
    first, last, step = map(float, match.groups())
    if not _SLOWEST <= first < last <= _FASTEST:
        raise TimingError(
            f"--frequency: from {first:g} to {last:g}; A is less than B, and both are from {_SLOWEST:g} to {_FASTEST:g}"
        )
    if step <= 0:
        raise TimingError(f"--frequency: STEP is {step:g}; it is above 0, like 0.05")
    count = int((last - first) / step + 1e-9) + 1
    if not 2 <= count <= _MOST_POINTS:
        raise TimingError(f"--frequency: {count} points; 2 to {_MOST_POINTS} are modelled")
    return tuple(round(first + index * step, 9) for index in range(count))


def _join_frequencies(words: Sequence[str]) -> list[str]:
    """A command line whose `--frequency -0.5:1:0.1` is one word: argparse takes the second for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--frequency" and re.match(r"-[\d.]", word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined
