"""The options of `compare.energy`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from meshes.process.command_line import command_parser


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyRequest:
    """Which run, and with which coefficients."""

    run: Path
    power: Path | None
    """A user's coefficients; `None`: those of the run folder, or of the table."""
    json: bool

    @classmethod
    def parse(cls, argv: Sequence[str] | None) -> Self:
        parser = command_parser(
            "compare.energy",
            "Print what a step of each compiled program of a run takes in joules: modelled, by component and verdict.",
            example="runs/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4 --power our-pod.toml",
        )
        parser.add_argument("run", metavar="RUN", type=Path, help="a run folder; it stays as it is")
        parser.add_argument(
            "--power", metavar="FILE", type=Path, help="energy coefficients of your own chips, as TOML (docs/energy.md)"
        )
        parser.add_argument("--json", action="store_true", help="print the energies as JSON")
        options = parser.parse_args(argv)
        return cls(run=options.run, power=options.power, json=options.json)
