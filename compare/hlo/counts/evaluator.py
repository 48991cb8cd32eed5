"""Evaluate values that the program's text alone determines, for each device and loop iteration.

Followed: partition-id, loop counters, iotas and constants through integer, compare, logic, select, clamp, convert,
bitcast, copy, slice and dynamic-slice instructions, in fusions too, and through tuple elements that a loop carries.
A value has dims (devices, one per enclosing loop, the array's own); along a dim of 1 nothing varies.
"""

from collections.abc import Mapping

import numpy as np

from compare.hlo.counts import integer_ops
from compare.hlo.counts.integer_ops import BINARY, DTYPES, UNARY, NotUnderstood, Value
from compare.hlo.counts.trip_counts import NeedsCarried, TripCounts
from compare.hlo.dataflow.call_context import CallContext, body_of, branches_of
from compare.hlo.dataflow.dataflow import SLICE_STARTS, find_computed, is_carry, step_through
from compare.hlo.devices.numbering import DeviceNumbering
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.shapes import Array, element

_DEEPEST = 150
"""Longest chain of instructions that is followed."""


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
        opcode = item.opcode.removesuffix("-start")
        if opcode == "convert":
            return integer_ops.convert(item, given[0])
        if opcode == "bitcast":
            return integer_ops.bitcast(item, given[0], lead)
        if opcode == "bitcast-convert":
            return integer_ops.bitcast_convert(item, given[0])
        if opcode == "reshape":
            return given[0].reshape(given[0].shape[:lead] + integer_ops.array_of(item).dims)
        if opcode == "broadcast":
            return integer_ops.broadcast(item, given[0], lead)
        if opcode == "transpose":
            return integer_ops.transpose(item, given[0], lead)
        if opcode == "slice":
            return integer_ops.slice_(item, given[0], lead)
        if opcode == "concatenate":
            return integer_ops.concatenate(item, given, lead)
        if opcode == "dynamic-slice":
            return integer_ops.dynamic_slice(item, given[0], given[1:], lead)
        raise NotUnderstood

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
