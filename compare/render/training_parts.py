"""A training step's collectives by forward, backward and recomputed: what its paths say, of JAX's transformations."""

from collections.abc import Sequence

from compare.hlo.collective import Collective
from compare.render.units import count_text, exact_text

FORWARD, RECOMPUTED, BACKWARD, REST = "forward", "recomputed", "backward", "the rest (optimizer, metrics)"
_ORDER = (FORWARD, RECOMPUTED, BACKWARD, REST)
MOST_NAMES = 3
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
    return [*align_amounts(lines), *_gathered_again(rows, parts)]


def align_amounts(lines: Sequence[tuple[str, str, str]]) -> list[str]:
    """Words, a count and an amount, each below its like."""
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return [f"{words:{widths[0]}}  {count:>{widths[1]}}  {amount:>{widths[2]}}" for words, count, amount in lines]


def _gathered_again(rows: Sequence[Collective], parts: dict[str, str]) -> list[str]:
    """`2 arguments are gathered in forward and in recomputed (w['up'], w['down'])`: those that one gather could have
    brought, with up to `MOST_NAMES` of their names."""
    gathered: dict[int, set[str]] = {}
    names: dict[int, str] = {}
    for operand, part in (
        (operand, parts[row.name]) for row in rows if row.kind == "all-gather" for operand in row.operands
    ):
        for argument in operand.parameters:
            gathered.setdefault(argument, set()).add(part)
        if len(operand.parameters) == len(operand.arguments):
            names |= zip(sorted(operand.parameters), operand.arguments, strict=True)
    ways: dict[tuple[str, ...], list[int]] = {}
    for argument, of in sorted(gathered.items()):
        if len(of) > 1:
            ways.setdefault(tuple(part for part in _ORDER if part in of), []).append(argument)
    return [
        f"{count_text(len(found), 'argument')} {'is' if len(found) == 1 else 'are'} gathered in {' and in '.join(way)}"
        f"{_named([names[argument] for argument in found if argument in names], of=len(found))}"
        for way, found in sorted(ways.items())
    ]


def _named(names: Sequence[str], *, of: int) -> str:
    shown = ", ".join(names[:MOST_NAMES])
    more = f" and {of - MOST_NAMES} more" if names and of > MOST_NAMES else ""
    return f" ({shown}{more})" if names else ""
