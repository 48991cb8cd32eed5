"""Values and trip counts that the program's text alone determines, for each device and loop iteration.

Followed: partition-id, loop counters, iotas and constants through integer, compare, logic, select, clamp, convert,
bitcast, copy, slice and dynamic-slice instructions, in fusions too, and through tuple elements that a loop carries.
A value has dims (devices, one per enclosing loop, the array's own); along a dim of 1 nothing varies.
"""

import re
from collections.abc import Mapping

import numpy as np

from compare.hlo.counts import integer_ops
from compare.hlo.counts.integer_ops import BINARY, DTYPES, UNARY, NotUnderstood, Value
from compare.hlo.dataflow import dataflow
from compare.hlo.dataflow.dataflow import (
    SLICE_STARTS,
    CallContext,
    body_of,
    branches_of,
    condition_of,
    find_computed,
    is_carry,
    step_through,
)
from compare.hlo.devices.groups import DeviceNumbering
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.shapes import Array, element

# XLA's CPU compiler writes the count that it found; in none of the corpus' texts did libtpu:
#   while(%tuple.24), …, backend_config={…,"known_trip_count":{"n":"6"}}
_KNOWN = re.compile(r'"?known_trip_count"?\s*:\s*\{\s*"?n"?\s*:\s*"?(\d+)"?')
_TURNED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
MOST_STEPS = 1 << 14
MOST_CARRIED = 8
MOST_DIGITS = 16
"""Limits for a loop that is run step by step; beyond them its count is unknown."""

_DEEPEST = 150
"""Longest chain of instructions that is followed."""


class NeedsCarried(Exception):  # noqa: N818  (it asks for a start value; it never leaves this file's users)
    """Evaluation needs the loop-carried element at `path`."""

    def __init__(self, path: tuple[int, ...]):
        super().__init__(path)
        self.path = path


def _has_its_shape(value: Value, item: Instruction, path: tuple[int, ...], frame: CallContext) -> bool:
    """Whether a value has the dtype and dims that its instruction says: a damaged text may say another operation."""
    shape = element(item.shape, path)
    return isinstance(shape, Array) and (DTYPES.get(shape.dtype), shape.dims) == (
        value.dtype.type,
        value.shape[1 + frame.depth :],
    )


class Evaluator:
    """Evaluates values, each once."""

    def __init__(self, program: DeviceNumbering):
        self.program = program
        self.trips = TripCounts(self)
        self._known: dict[tuple[CallContext, Instruction, tuple[int, ...]], Value | None] = {}
        self._depth = 0
        self._step: tuple[Instruction, Mapping[tuple[int, ...], int]] | None = None

    def at_step(self, loop: Instruction, carried: Mapping[tuple[int, ...], int]) -> "Evaluator":
        """An evaluator for one iteration of `loop` with these carried numbers; others raise `NeedsCarried`."""
        evaluator = Evaluator(self.program)
        evaluator._step = (loop, carried)
        return evaluator

    @property
    def num_devices(self) -> int:
        return self.program.num_devices

    def value(self, frame: CallContext, item: Instruction, path: tuple[int, ...] = ()) -> Value:
        """The element at `path` of the result of `item` in `frame`.  Raises `NotUnderstood`."""
        key = (frame, item, path)
        if key not in self._known:
            self._known[key] = None  # A value that needs itself is not understood.
            if self._depth >= _DEEPEST:
                raise NotUnderstood
            self._depth += 1
            try:
                with np.errstate(all="ignore"):
                    value = self._evaluate(frame, item, path)
                self._known[key] = value if _has_its_shape(value, item, path, frame) else None
            except NotUnderstood:
                pass
            except (IndexError, KeyError, OverflowError) as error:
                raise item.error("its operands and attributes do not fit each other") from error
            except ValueError as error:  # numpy's, of arrays whose dims do not fit
                raise error if isinstance(error, HloError) else item.error("its operands do not fit it") from error
            finally:
                self._depth -= 1
        known = self._known[key]
        if known is None:
            raise NotUnderstood
        return known

    def number(self, frame: CallContext, item: Instruction, path: tuple[int, ...] = ()) -> int | None:
        """The value, if it is one integer on all devices and iterations; else None."""
        try:
            value = self.value(frame, item, path)
        except NotUnderstood:
            return None
        flat = value.reshape(-1)
        return int(flat[0]) if flat.size and (flat == flat[0]).all() else None

    def _evaluate(self, frame: CallContext, item: Instruction, path: tuple[int, ...]) -> Value:
        opcode = item.opcode
        if opcode == "parameter" and frame.call is not None and frame.call.opcode == "while":
            return self._loop_carry(frame, item, path)
        if opcode == "while":
            return self._after_loop(frame, item, path)
        if opcode == "conditional":
            return self._conditional_result(frame, item, path)
        before = step_through((frame, item, path))
        if before is not None and len(before) == 1 and (path or opcode != "tuple"):
            return self.value(*before[0])
        if opcode in SLICE_STARTS and path == (1,):
            return self._rearrange(item, [self.value(frame, operand) for operand in item.operands], 1 + frame.depth)
        if before is not None or path or opcode == "parameter":
            raise NotUnderstood
        return self._array(frame, item)

    def _array(self, frame: CallContext, item: Instruction) -> Value:
        """Evaluate an instruction with one array as its result."""
        opcode, lead = item.opcode, 1 + frame.depth
        integer_ops.array_of(item)
        if opcode == "constant":
            return integer_ops.constant(item, lead)
        if opcode == "iota":
            return integer_ops.iota(item, lead)
        # libtpu compiles one program for all slices, which asks for the number of its slice by a custom call:
        #   u32[]{:T(128)} custom-call(), custom_call_target="SliceId"
        if opcode in ("partition-id", "replica-id") or item.target == "SliceId":
            place: Value = self._device_index(opcode).astype(integer_ops.DTYPES[integer_ops.array_of(item).dtype])
            return place.reshape((-1,) + (1,) * (lead - 1))
        count = integer_ops.OPERANDS.get(opcode, len(item.operands))
        if len(item.operands) != count:
            raise item.error(f"{opcode} takes {count} operand{'s' * (count > 1)}")
        given = [self.value(frame, operand) for operand in item.operands]
        if opcode in BINARY:
            return BINARY[opcode](given[0], given[1])
        if opcode in UNARY:
            return UNARY[opcode](given[0])
        if opcode == "compare":
            return integer_ops.compare(item, given[0], given[1])
        if opcode == "select":
            chosen = given[0] if given[0].ndim == given[1].ndim else _stretch(given[0], given[1].ndim)
            return np.where(chosen, given[1], given[2])
        if opcode == "clamp":
            low, high = (_stretch(bound, given[1].ndim) for bound in (given[0], given[2]))
            return np.minimum(np.maximum(given[1], low), high)
        return self._rearrange(item, given, lead)

    def _rearrange(self, item: Instruction, given: list[Value], lead: int) -> Value:
        """Evaluate an instruction that only moves elements: broadcast, transpose, slice and the like."""
        # `cut-start = ((s32[4]), s32[1], u32[]) slice-start(table), slice={[2:3]}` slices as `slice` does.
        opcode = item.opcode.removesuffix("-start")
        if opcode == "concatenate":
            return integer_ops.concatenate(item, given, lead)
        if opcode == "dynamic-slice":
            return integer_ops.dynamic_slice(item, given[0], given[1:], lead)
        if opcode not in integer_ops.MOVES:
            raise NotUnderstood
        return integer_ops.MOVES[opcode](item, given[0], lead)

    def _device_index(self, opcode: str) -> Value:
        """The partition, replica or slice id of each device: [devices]."""
        slices, places = (np.array(column) for column in zip(*self.program.places, strict=True))
        partitions = self.program.partitions
        indices: Value = {"partition-id": places % partitions, "replica-id": places // partitions}.get(opcode, slices)
        return indices

    def _loop_carry(self, frame: CallContext, item: Instruction, path: tuple[int, ...]) -> Value:
        """A loop-carried element in every iteration: invariant, a counter, or computed from the previous one."""
        call, outer = frame.call, frame.outer
        assert call is not None
        assert outer is not None
        if not path:
            raise NotUnderstood
        if self._step and self._step[0] is call:
            return self._carry_at_step(frame, item, path, self._step[1])
        first = self.value(outer, call.operand(0), path)
        body = outer.inside(call, body_of(call))
        after = find_computed((body, body.computation.root, path))
        if is_carry(after, body, path):
            return _deepen(first, outer.depth, frame.depth)
        if frame is not body:
            raise NotUnderstood
        trips = self.trips.count(outer, call)
        if trips is None or trips * self.num_devices > integer_ops.MOST_ELEMENTS:
            raise NotUnderstood
        first = _deepen(first, outer.depth, frame.depth)
        step = self.trips.step(body, path)
        if step is not None:
            turned = np.arange(trips).reshape([trips if at == frame.depth else 1 for at in range(first.ndim)])
            return (first + turned * step).astype(first.dtype)
        later = self.value(body, body.computation.root, path)
        return _after(first, later, frame.depth, trips)

    def _carry_at_step(
        self, frame: CallContext, item: Instruction, path: tuple[int, ...], carried: Mapping[tuple[int, ...], int]
    ) -> Value:
        """A loop-carried element in the single iteration that `at_step` gave."""
        shape = element(item.shape, path)
        if not isinstance(shape, Array) or shape.dims or shape.dtype not in integer_ops.DTYPES:
            raise NotUnderstood
        if path not in carried:
            raise NeedsCarried(path)
        return np.full((1,) * (1 + frame.depth), carried[path], integer_ops.DTYPES[shape.dtype])

    def _after_loop(self, frame: CallContext, item: Instruction, path: tuple[int, ...]) -> Value:
        """A loop's result: an invariant element, or the final value of its counter."""
        if not path:
            raise NotUnderstood
        body = frame.inside(item, body_of(item))
        first = self.value(frame, item.operand(0), path)
        if is_carry(find_computed((body, body.computation.root, path)), body, path):
            return first
        trips, step = self.trips.count(frame, item), self.trips.step(body, path)
        if trips is None or step is None:
            raise NotUnderstood
        return (first + trips * step).astype(first.dtype)

    def _conditional_result(self, frame: CallContext, item: Instruction, path: tuple[int, ...]) -> Value:
        """A conditional's result, where its predicate and every branch can be evaluated."""
        index = self.branch(frame, item)
        branches = branches_of(item)
        values = [self.value(frame.inside(item, branch), branch.root, path) for branch in branches]
        result = values[-1]
        for number, value in enumerate(values[:-1]):
            result = np.where(_stretch(index == number, value.ndim), value, result)
        return result

    def branch(self, frame: CallContext, item: Instruction) -> Value:
        """The index of the branch that a conditional takes, for each device and iteration."""
        chosen = self.value(frame, item.operand(0))
        if chosen.ndim > 1 + frame.depth:
            raise item.error("it is chosen by an array, where one number was expected")
        last = len(branches_of(item)) - 1
        if chosen.dtype == np.bool_:
            return chosen.astype(np.int64)
        wide = chosen.astype(np.int64)
        return np.where((wide < 0) | (wide > last), last, wide)


def _stretch(value: Value, ndim: int) -> Value:
    """Add trailing dims to a scalar per device and iteration, so that it broadcasts to `ndim` dims."""
    return value.reshape(value.shape + (1,) * (ndim - value.ndim))


def _deepen(value: Value, outer: int, inner: int) -> Value:
    """Add iteration dims to a value of an outer call context, for one with more loops around it."""
    return value.reshape(value.shape[: 1 + outer] + (1,) * (inner - outer) + value.shape[1 + outer :])


def _after(first: Value, later: Value, axis: int, trips: int) -> Value:
    """The start value in the first iteration, then the value that each iteration passes to the next."""
    heads = tuple(max(a, b) for at, (a, b) in enumerate(zip(first.shape, later.shape, strict=True)))
    shape = [size if at != axis else trips for at, size in enumerate(heads)]
    rolled = np.empty(shape, first.dtype)
    cut: list[slice[int | None, int | None, int | None]] = [slice(None)] * len(shape)
    cut[axis] = slice(0, 1)
    rolled[tuple(cut)] = first
    cut[axis] = slice(1, None)
    if trips > 1:
        before = [slice(None)] * len(shape)
        before[axis] = slice(0, trips - 1) if later.shape[axis] > 1 else slice(0, 1)
        rolled[tuple(cut)] = later[tuple(before)]
    return rolled


class TripCounts:
    """Trip counts, each computed once for each call context of a loop.

    The condition compares a counter with a constant; start and step are constants.  A condition of another form is run,
    step by step, on the numbers that it depends on, where the text alone decides them: the TPU compiler splits a 64-bit
    counter, as PyTorch/XLA's scan has it, into two halves with a carry.
    """

    def __init__(self, values: Evaluator):
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
        # `"known_trip_count":{"n":"5"}` beside a counter that needs 6 steps: the text was edited, or one of the two is
        # not understood.  No count is better than the wrong one.
        if (known[1].lstrip("0") or "0") != str(count):
            self.notes[frame, loop] = f"backend_config says {known[1]} trips, condition and body say {count}"
            return None
        return count

    def _count(self, frame: CallContext, loop: Instruction) -> int | None:
        condition = frame.inside(loop, condition_of(loop))
        inner, test, _ = find_computed((condition, condition.computation.root, ()))
        # PyTorch/XLA's scan counts in 64 bits, which libtpu splits into two halves: high < 0, or high = 0 and low < 16.
        #   ROOT %or.77 = pred[]{:T(512)} or(%compare.198, %and.85), metadata={op_name="compare.681"}
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

    def _counter(self, value: dataflow.Value, condition: CallContext) -> tuple[int, ...] | None:
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
