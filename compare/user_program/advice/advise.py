"""Match a program's collectives with what is known of such ones; advice.toml has the table."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compare.hlo.collective import Collective

TABLE = Path(__file__).with_name("advice.toml")
HEADS = 4
"""Fewest dims of a tensor that has heads: batch, heads, positions, the numbers of a head."""
_OF: Mapping[str, Callable[[Collective], bool]] = {
    "argument": lambda row: any(operand.parameters for operand in row.operands),
    "heads": lambda row: any(len(operand.shape) >= HEADS for operand in row.operands),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One entry of the table."""

    example: str
    kinds: frozenset[str]
    op_name: re.Pattern[str]
    words: str
    in_loop: bool
    of: str
    over: str

    def fits(self, row: Collective) -> bool:
        return (
            row.kind in self.kinds
            and "op_name" not in row.inferred
            and any(map(self.op_name.search, row.op_name.split(";")))
            and (bool(row.loops) or not self.in_loop)
            and (not self.of or _OF[self.of](row))
            and (not self.over or (self.over == "part") == row.axes.endswith(":sub"))
        )


@cache
def read_table() -> tuple[Advice, ...]:
    entries = tomllib.loads(TABLE.read_text(encoding="utf-8"))["advice"]
    return tuple(
        Advice(
            example=entry["example"], kinds=frozenset(entry["kinds"]), op_name=re.compile(entry["op_name"]),
            words=entry["words"], in_loop=entry.get("in_loop", False), of=entry.get("of", ""),
            over=entry.get("over", ""),
        )
        for entry in entries
    )  # fmt: skip


def advise(rows: Sequence[Collective]) -> Iterator[str]:
    """One sentence for each entry that fits any row, with the first of them and the number of the others."""
    for advice in read_table():
        fitting = [row for row in rows if advice.fits(row)]
        if fitting:
            first, more = fitting[0], len(fitting) - 1
            place = f" ({first.source_line.rpartition('/')[2]})" if first.source_line else ""
            others = f" and {more} more" * (more > 0)
            yield f"{first.kind} over {first.axes}{place}{others}: {advice.words} ({advice.example})"
