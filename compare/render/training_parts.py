"""A training step's collectives by forward, backward and recomputed: what its paths say, of JAX's transformations."""

from collections import Counter
from collections.abc import Sequence

from compare.hlo.collective import Collective
from compare.render.units import count_text, exact_text

FORWARD, RECOMPUTED, BACKWARD, REST = "forward", "recomputed", "backward", "the rest (optimizer, metrics)"
_ORDER = (FORWARD, RECOMPUTED, BACKWARD, REST)
_MARKS = (("rematted_computation", RECOMPUTED), ("transpose(", BACKWARD), ("jvp(", FORWARD))
"""In `op_name`, the first that is found.  `jax.checkpoint` runs a layer again within the backward pass, whose path has
`transpose(jvp(…))` too."""


def part_of_step(op_name: str) -> str:
    """Which part of a training step an operation is of; `REST` where its path has none of JAX's marks."""
    return next((part for mark, part in _MARKS if mark in op_name), REST)


def training_lines(rows: Sequence[Collective]) -> list[str]:
    """Bytes a step of each part, and which arguments are gathered in several; empty where nothing is differentiated."""
    parts = {row.name: part_of_step(row.op_name or "") for row in rows}
    if BACKWARD not in parts.values():
        return []
    lines = []
    for part in _ORDER:
        of_part = [row for row in rows if parts[row.name] == part]
        if of_part:
            amount = exact_text(sum(row.step_wire_bytes or 0 for row in of_part))
            lines.append((part, str(len(of_part)), amount))
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    shown = [f"{part:{widths[0]}}  {count:>{widths[1]}}  {amount:>{widths[2]}}" for part, count, amount in lines]
    return [*shown, *_gathered_again(rows, parts)]


def _gathered_again(rows: Sequence[Collective], parts: dict[str, str]) -> list[str]:
    """`2 arguments are gathered in forward and in recomputed`: those that one gather could have brought."""
    gathered: dict[int, set[str]] = {}
    for row in rows:
        for operand in row.operands if row.kind == "all-gather" else ():
            for argument in operand.parameters:
                gathered.setdefault(argument, set()).add(parts[row.name])
    ways = Counter(tuple(part for part in _ORDER if part in of) for of in gathered.values() if len(of) > 1)
    return [
        f"{count_text(count, 'argument')} {'is' if count == 1 else 'are'} gathered in {' and in '.join(way)}"
        for way, count in sorted(ways.items())
    ]
