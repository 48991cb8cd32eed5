"""Match a program's collectives with what is known of such ones; advice.toml has the table."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from compare.hlo.collective import Collective
from compare.hlo.text.module import Module
from compare.hlo.text.shapes import Array

TABLE = Path(__file__).with_name("advice.toml")
MATRIX, HEADS = 2, 4
"""Fewest dims of a tensor of tokens and features, and of one that has heads: batch, heads, positions, their numbers."""
_OF: Mapping[str, Callable[[Collective, Module], bool]] = {
    "whole argument": lambda row, module: _is_whole_argument(row, module),
    "matrix": lambda row, module: any(len(operand.shape) >= MATRIX for operand in row.operands),
    "heads": lambda row, module: any(len(operand.shape) >= HEADS for operand in row.operands),
}


def _is_whole_argument(row: Collective, module: Module) -> bool:
    """Of a gather: whether its result is as large as what all its members together hold of one parameter."""
    members = max(map(len, row.groups), default=1)
    shapes = [module.entry.parameters[number].shape for operand in row.operands for number in operand.parameters]
    return any(isinstance(shape, Array) and shape.num_bytes * members == row.payload_bytes for shape in shapes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One entry of the table."""

    example: str
    kinds: frozenset[str]
    op_name: re.Pattern[str]
    words: str
    remedy: str
    """Of `compare.compile.rewrite`: what writes it into a program; empty where it takes a hand."""
    in_loop: bool
    of: str
    over: str

    def fits(self, row: Collective, module: Module) -> bool:
        return (
            row.kind in self.kinds
            and "op_name" not in row.inferred
            and any(map(self.op_name.search, row.op_name.split(";")))
            and (bool(row.loops) or not self.in_loop)
            and (not self.of or _OF[self.of](row, module))
            and (not self.over or (self.over == "part") == row.axes.endswith(":sub"))
        )


@cache
def read_table() -> tuple[Advice, ...]:
    entries = tomllib.loads(TABLE.read_text(encoding="utf-8"))["advice"]
    return tuple(
        Advice(
            example=entry["example"],
            kinds=frozenset(entry["kinds"]),
            op_name=re.compile(entry["op_name"]),
            words=entry["words"],
            remedy=entry.get("remedy", ""),
            in_loop=entry.get("in_loop", False),
            of=entry.get("of", ""),
            over=entry.get("over", ""),
        )
        for entry in entries
    )


def match(rows: Sequence[Collective], module: Module) -> dict[Advice, list[Collective]]:
    """The entries that fit any of a program's collectives, each with those that no earlier one fits."""
    found: dict[Advice, list[Collective]] = {}
    for row in rows:
        if advice := next((each for each in read_table() if each.fits(row, module)), None):
            found.setdefault(advice, []).append(row)
    return found


def advise(
    rows: Sequence[Collective], module: Module, outcomes: Mapping[Advice, str] = MappingProxyType({})
) -> Iterator[str]:
    """One sentence for each entry that fits any row, with the first of them and the number of the others.

    outcomes: what came of those that were tried on this program.
    """
    for advice, fitting in match(rows, module).items():
        first, more = fitting[0], len(fitting) - 1
        place = f" ({first.source_line.rpartition('/')[2]})" if first.source_line else ""
        others = f" and {more} more" * (more > 0)
        outcome = f"; {outcomes[advice]}" if advice in outcomes else ""
        yield f"{first.kind} over {first.axes}{place}{others}: {advice.words} ({advice.example}){outcome}"
