"""Trip counts: the condition compares a counter with a constant; start and step are constants.

A condition of another form is run, step by step, on the numbers that it depends on, where the text alone decides
them: the TPU compiler splits a 64-bit counter, as PyTorch/XLA's scan has it, into two halves with a carry.
"""

import re
from collections.abc import Mapping
from typing import Protocol

import numpy as np

from compare.hlo.counts.integer_ops import DTYPES
from compare.hlo.dataflow.call_context import CallContext, body_of, condition_of
from compare.hlo.dataflow.dataflow import Value, find_computed, is_carry
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.shapes import Array, element

_KNOWN = re.compile(r'"?known_trip_count"?\s*:\s*\{\s*"?n"?\s*:\s*"?(\d+)"?')
_TURNED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


MOST_STEPS = 1 << 14
MOST_CARRIED = 8
MOST_DIGITS = 16
"""Limits for a loop that is run step by step; beyond them its count is unknown."""


class NeedsCarried(Exception):  # noqa: N818  (it asks for a start value; it never leaves this file's users)
    """Evaluation needs the loop-carried element at `path`."""

    def __init__(self, path: tuple[int, ...]):
        super().__init__(path)
        self.path = path


class Values(Protocol):
    """The values that trip counts need, as `evaluator.Evaluator` gives them."""

    def number(self, frame: CallContext, item: Instruction, path: tuple[int, ...] = (), /) -> int | None: ...
    def at_step(self, loop: Instruction, carried: Mapping[tuple[int, ...], int], /) -> "Values": ...


class TripCounts:
    """Trip counts, each computed once for each call context of a loop."""

    def __init__(self, values: Values):
        self._values = values
        self.notes: dict[tuple[CallContext, Instruction], str] = {}
        """Why a count was rejected."""
        self.stated: set[tuple[CallContext, Instruction]] = set()
        """Loops whose count is the compiler's word alone: condition and body do not tell it."""
        self._counts: dict[tuple[CallContext, Instruction], int | None] = {}

    def count(self, frame: CallContext, loop: Instruction) -> int | None:
        """The trip count of a `while` in `frame`; None where the text does not determine it."""
        key = (frame, loop)
        if key not in self._counts:
            self._counts[key] = None  # A loop whose count needs itself has none.
            self._counts[key] = self._read(frame, loop)
        return self._counts[key]

    def _read(self, frame: CallContext, loop: Instruction) -> int | None:
        """The count of condition and body, else what the compiler states; None where the two contradict each other."""
        count = self._count(frame, loop)
        known = _KNOWN.search(loop.attributes.get("backend_config", ""))
        if known is None:
            return count
        if count is None:
            self.stated.add((frame, loop))
            return int(known[1]) if len(known[1]) < MOST_DIGITS else None
        if (known[1].lstrip("0") or "0") != str(count):
            self.notes[frame, loop] = f"backend_config says {known[1]} trips, condition and body say {count}"
            return None
        return count

    def _count(self, frame: CallContext, loop: Instruction) -> int | None:
        condition = frame.inside(loop, condition_of(loop))
        inner, test, _ = find_computed((condition, condition.computation.root, ()))
        if test.opcode != "compare":
            return self._by_steps(frame, loop)
        left, right = ((inner, test.operand(at), ()) for at in (0, 1))
        direction = test.attribute("direction")
        counter, bound = self._counter(left, condition), self._values.number(*right)
        if counter is None or bound is None:
            counter, bound = self._counter(right, condition), self._values.number(*left)
            direction = _TURNED.get(direction, direction)
        if counter is None or bound is None:
            return None
        start = self._values.number(frame, loop.operand(0), counter)
        step = self.step(frame.inside(loop, body_of(loop)), counter)
        if start is None or step is None:
            return None
        count = iterations(start=start, step=step, bound=bound, direction=direction)
        if count is None or not self._fits(loop, counter, start + step * count):
            # The counter wraps in its integer width, if the loop ends at all; a wide one does not within these steps.
            near = not self._fits(loop, counter, start + step * MOST_STEPS)
            count = self._by_steps(frame, loop) if near else None
        return count

    def _fits(self, loop: Instruction, counter: tuple[int, ...], number: int) -> bool:
        """True if the counter's integer type can hold this number."""
        shape = element(loop.shape, counter)
        if not isinstance(shape, Array) or shape.dtype not in DTYPES or shape.dtype == "pred":
            return False
        limits = np.iinfo(DTYPES[shape.dtype])
        return int(limits.min) <= number <= int(limits.max)

    def _by_steps(self, frame: CallContext, loop: Instruction) -> int | None:
        """Count by running the loop on integers; carried elements are added as its condition needs them."""
        starts: dict[tuple[int, ...], int] = {}
        while len(starts) <= MOST_CARRIED:
            try:
                return self._run(frame, loop, starts)
            except NeedsCarried as need:
                start = self._values.number(frame, loop.operand(0), need.path)
                if start is None:
                    return None
                starts[need.path] = start
        return None

    def _run(self, frame: CallContext, loop: Instruction, starts: dict[tuple[int, ...], int]) -> int | None:
        condition, body = frame.inside(loop, condition_of(loop)), frame.inside(loop, body_of(loop))
        carried = starts
        seen: set[tuple[int, ...]] = set()
        for count in range(MOST_STEPS):
            values = self._values.at_step(loop, carried)
            goes_on = values.number(condition, condition.computation.root)
            if not goes_on:
                return None if goes_on is None else count
            after = {path: values.number(body, body.computation.root, path) for path in carried}
            numbers = {path: number for path, number in after.items() if number is not None}
            state = tuple(numbers.values())
            if len(numbers) < len(after) or state in seen:  # data, or a loop that never ends
                return None
            seen.add(state)
            carried = numbers
        return None

    def _counter(self, value: Value, condition: CallContext) -> tuple[int, ...] | None:
        """The path of the loop-carried element behind a value of the condition, if the body changes it."""
        frame, item, path = find_computed(value)
        return path if path and is_carry((frame, item, path), condition, path) else None

    def step(self, body: CallContext, path: tuple[int, ...]) -> int | None:
        """The constant that an iteration adds to the element at `path`; None for any other update."""
        frame, after, _ = find_computed((body, body.computation.root, path))
        if after.opcode not in ("add", "subtract"):
            return None
        left, right = ((frame, after.operand(at), ()) for at in (0, 1))
        if is_carry(find_computed(left), body, path):
            by = self._values.number(*right)
            return by if by is None or after.opcode == "add" else -by
        if after.opcode == "add" and is_carry(find_computed(right), body, path):
            return self._values.number(*left)
        return None


def iterations(*, start: int, step: int, bound: int, direction: str) -> int | None:
    """How often `counter DIRECTION bound` holds before it first fails; None where it never fails."""
    holds = {
        "LT": start < bound,
        "LE": start <= bound,
        "GT": start > bound,
        "GE": start >= bound,
        "EQ": start == bound,
        "NE": start != bound,
    }
    if not holds.get(direction, False):
        return 0 if direction in holds else None
    if step == 0:
        return None
    if direction == "EQ":
        return 1
    distance = bound - start
    if direction == "NE":
        return distance // step if distance % step == 0 and distance // step > 0 else None
    towards = step > 0 if direction in ("LT", "LE") else step < 0
    if not towards:
        return None
    return -(-distance // step) if direction in ("LT", "GT") else distance // step + 1
