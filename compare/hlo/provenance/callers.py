"""Rows of one source line, told apart: the call that only some of them have.

A line that all layers of a model run through, as `DenseGeneral.__call__`, says little; the frame around it that differs
says which of them it is.
"""

from collections.abc import Sequence

from compare.hlo.text.metadata import Frame

Stack = tuple[Frame, ...]


def tell_apart(stacks: Sequence[Stack]) -> list[str | None]:
    """For each stack (innermost frame first) the innermost call that tells it from the others of the same source line,
    as `model.py:31, Attention.out_projection`; None where all others of its line have the same stack."""
    callers: list[str | None] = [None] * len(stacks)
    lines: dict[Frame, list[int]] = {}
    for at, stack in enumerate(stacks):
        if stack:
            lines.setdefault(stack[0], []).append(at)
    for members in lines.values():
        _part(stacks, members, depth=1, callers=callers)
    return callers


def _part(stacks: Sequence[Stack], members: list[int], *, depth: int, callers: list[str | None]) -> None:
    """The members, whose stacks are the same below `depth`, by the first frame that differs; each part further."""
    if len({stacks[at] for at in members}) == 1:
        return
    parts: dict[Frame | None, list[int]] = {}
    for at in members:
        frame = stacks[at][depth] if depth < len(stacks[at]) else None
        parts.setdefault(frame, []).append(at)
    for frame, part in parts.items():
        if frame is not None and len(parts) > 1:
            for at in part:
                callers[at] = ", ".join(filter(None, (frame.place, frame.function)))
        _part(stacks, part, depth=depth + 1, callers=callers)
