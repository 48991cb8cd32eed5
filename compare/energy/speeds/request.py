"""The options of `compare.energy`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from compare.energy.speeds.frequencies import join_frequencies, parse_frequencies
from compare.run.chip_option import add_chip
from compare.timeline.errors import TimingError
from meshes.process.command_line import command_parser
from meshes.process.one_line import quote


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyRequest:
    """Which run, and with which coefficients."""

    run: Path
    chip: Path | None
    """A user's file; `None`: that of the run folder, or the generation's."""
    frequencies: tuple[float, ...]
    """÷ nominal, in rising order; empty: not asked."""
    marginal: bool
    figure: Path | None
    json: bool

    @classmethod
    def parse(cls, argv: Sequence[str] | None) -> Self:
        parser = command_parser(
            "compare.energy",
            "Print the joules of a step of each compiled program of a run: modelled, by component and verdict.",
            example="runs/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4 --chip our-pod.toml",
        )
        parser.add_argument("run", metavar="RUN", type=Path, help="a run folder; it stays as it is")
        add_chip(parser)
        parser.add_argument(
            "--frequency", metavar="A:B:STEP", default="",
            help="time, energy and energy × delay at A to B × the nominal frequency of the core",
        )  # fmt: skip
        parser.add_argument(
            "--marginal", action="store_true",
            help="how much energy a faster part saves: -d ln E / d ln s of compute, memory, ICI and DCN",
        )  # fmt: skip
        parser.add_argument("--figure", metavar="FILE", type=Path, help="the curves of --frequency, as .svg or .png")
        parser.add_argument("--json", action="store_true", help="print the answer as JSON")
        options = parser.parse_args(join_frequencies(sys.argv[1:] if argv is None else argv))
        if options.figure and not options.frequency:
            parser.error("--figure belongs to --frequency")
        if options.figure and options.figure.suffix not in (".png", ".svg"):
            parser.error(f"--figure is {quote(str(options.figure))}; it names a .svg or .png file")
        try:
            frequencies = parse_frequencies(options.frequency) if options.frequency else ()
        except TimingError as error:
            parser.error(str(error))
        return cls(
            run=options.run, chip=options.chip, frequencies=frequencies, marginal=options.marginal,
            figure=options.figure, json=options.json,
        )  # fmt: skip
