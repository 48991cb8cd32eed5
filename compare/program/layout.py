"""What a value is, once everything that only changes its layout is taken off.

Layout-only: bitcast, copy, convert, reshape, transpose, slice, dynamic-slice, concatenate and pad of such, tuples,
their asynchronous and custom-call copies, fusions of only these, loop and branch carries; not `gather`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compare.program.instruction import Instruction
from compare.program.shapes import Array
from compare.program.steps import SLICE_STARTS, Value, handed

_FIRST = {"bitcast", "bitcast-convert", "convert", "reshape", "transpose", "slice", "dynamic-slice", "pad"}
"""Of these the first operand is what is laid out anew."""

_COPIES = {
    "ConcatBitcast", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint", "MoveToHost",
    "MoveToDevice", "annotate_device_placement",
}  # fmt: skip
"""Custom calls that copy, or only say where."""

_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_SPREAD = 1
_UPDATED = 2


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a walk back through layout-only instructions ends."""

    parameters: frozenset[int]
    """ENTRY parameters reached untouched, and caches that were at most updated."""
    made_by: frozenset[Instruction]
    """The instructions that make something, without those that make constants."""
    constant: bool
    passed: frozenset[Value]
    """Every value on the way."""


def sources(starts: Iterable[Value], *, caches: frozenset[int] = frozenset(), updates: bool = True) -> Sources:
    """Walk back from `starts`.

    A broadcast is passed for constants only; a dynamic-update-slice and a scatter, by their first operand, and a select
    of floats, by both, for `caches` only: so a cache is written whose positions are split.
    """
    todo = [(value, 0) for value in starts]
    seen = set(todo)
    parameters: set[int] = set()
    made_by: set[Instruction] = set()
    constants = False
    while todo:
        value, marks = todo.pop()
        frame, item, path = value
        before = _before(value)
        if before is None and item.opcode == "broadcast":
            before, marks = [(frame, item.operand(0), ())], marks | _SPREAD
        elif before is None and updates and item.opcode in ("dynamic-update-slice", "scatter"):
            before, marks = [(frame, item.operand(path[0] if path else 0), ())], marks | _UPDATED
        elif before is None and updates and item.opcode == "select" and _is_float(item):
            before, marks = [(frame, one, ()) for one in item.operands[1:]], marks | _UPDATED
        if before is not None:
            fresh = [(one, marks) for one in before if (one, marks) not in seen]
            seen.update(fresh)
            todo += fresh
        elif item.opcode == "constant" and not marks & _UPDATED:
            constants = True
        elif _is_parameter(item, marks, caches):
            parameters.add(item.integer(""))
        else:
            made_by.add(item)
    passed = frozenset(value for value, _ in seen)
    return Sources(frozenset(parameters), frozenset(made_by), constants and not parameters and not made_by, passed)


def _is_float(item: Instruction) -> bool:
    return isinstance(item.shape, Array) and item.shape.dtype.startswith(("f", "bf"))


def _is_parameter(item: Instruction, marks: int, caches: frozenset[int]) -> bool:
    """An ENTRY parameter that was not broadcast, nor updated unless it is a cache."""
    if item.opcode != "parameter" or not item.computation.is_entry or marks & _SPREAD:
        return False
    return not marks & _UPDATED or item.integer("") in caches


def _before(value: Value) -> list[Value] | None:
    frame, item, _ = value
    found = handed(value) if _only_hands_on(item) else None
    if found is not None:
        return found
    if item.opcode in _FIRST or item.opcode in SLICE_STARTS:
        return [(frame, item.operand(0), ())]
    if item.opcode == "concatenate":
        return [(frame, one, ()) for one in item.operands]
    if item.opcode == "custom-call" and (target := _TARGET.search(item.text)) and target[1] in _COPIES:
        return [(frame, one, ()) for one in item.operands]
    return None


def _only_hands_on(item: Instruction) -> bool:
    """Whether it may be stepped through: not a custom call with a computation of its own."""
    return item.opcode != "custom-call"
