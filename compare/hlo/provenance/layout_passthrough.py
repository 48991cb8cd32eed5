"""Trace a value through instructions that only change its layout.

Layout-only: bitcast, copy, convert, reshape, transpose, slice, dynamic-slice, concatenate and pad of such, tuples,
their asynchronous and custom-call copies, fusions of only these, loop and branch carries; not `gather`.  The TPU
compiler writes a concatenation as the maximum of operands that are padded with −∞ into parts that do not overlap.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import combinations

from compare.hlo.counts.partition_index import depends_on_partition, first_call_context
from compare.hlo.dataflow.dataflow import (
    SLICE_STARTS,
    CallContext,
    Value,
    body_of,
    condition_of,
    find_computed,
    inputs_of,
    is_carry,
    step_through,
    walk,
)
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.shapes import Array

_DATA_IS_FIRST_OPERAND = {
    "bitcast",
    "bitcast-convert",
    "convert",
    "reshape",
    "transpose",
    "slice",
    "dynamic-slice",
    "pad",
}
"""Opcodes whose first operand is the data that is laid out anew."""

# A prefetched weight comes in pieces, which libtpu joins with a custom call:
#   custom-call(%slice-done.4, %slice-done.5, %slice-done.6, %slice-done.7), custom_call_target="ConcatBitcast"
_COPIES = {
    "ConcatBitcast",
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "LayoutConstraint",
    "MoveToHost",
    "MoveToDevice",
    "annotate_device_placement",
    "ZeroCrop",
    "xla.sdy.FuncResultSharding",
}
"""Custom calls that copy, to whole tiles, too, or only annotate placement."""

_DATA_MOVING_COLLECTIVES = {"all-gather", "all-to-all", "collective-permute", "ragged-all-to-all"}
_ASYNCHRONOUS = {"AsyncCollectiveStart", "AsyncCollectiveDone"}
_PADDING = re.compile(r"(-?\d+)_(-?\d+)(?:_(\d+))?")
_ZERO = re.compile(r"[{ ]*-?0(?:\.0*)?[} ]*(?:,[{ ]*-?0(?:\.0*)?[} ]*)*")
"""A literal of zeros: `0`, `-0.0`, `{ {0, 0}, {0, 0} }`."""
_WAS_BROADCAST = 1
_WAS_UPDATED = 2


@dataclass(frozen=True, slots=True)
class LayoutSources:
    """The sources of a value, behind its layout-only instructions."""

    parameters: frozenset[int]
    """Numbers of the ENTRY parameters reached unchanged, and of caches that were at most updated."""
    made_by: frozenset[Instruction]
    """The instructions that compute it, constants excluded."""
    constant: bool
    marked: Set[tuple[Value, int]]
    """Every value passed on the way, with how it was passed."""

    @property
    def passed(self) -> Iterator[Value]:
        """Every value passed on the way; one passed in two ways, twice."""
        return (value for value, _ in self.marked)


def trace_sources(
    starts: Iterable[Value], *, caches: frozenset[int] = frozenset(), updates: bool = True, moves: bool = False
) -> LayoutSources:
    """Walk back from `starts`; with `moves` also through collectives that only move data to other devices.

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
        if before is None and moves:
            before = _moved(value)
        # A weight that is repeated is computed with, `d = f32[2,8]{1,0} broadcast(w), dimensions={1}`; zeros that are
        # repeated are still zeros, `b = f32[8]{0} broadcast(z), dimensions={}`.
        if before is None and item.opcode == "broadcast":
            before, marks = [(frame, item.operand(0), ())], marks | _WAS_BROADCAST
        elif before is None and updates and item.opcode in ("dynamic-update-slice", "scatter"):
            before, marks = [(frame, item.operand(path[0] if path else 0), ())], marks | _WAS_UPDATED
        # Where the positions of a cache are split, only one device writes: `d = f32[8]{0} select(p, u, w)`, w the old
        # cache.
        elif before is None and updates and item.opcode == "select" and _is_float(item):
            before, marks = [(frame, operand, ()) for operand in item.operands[1:]], marks | _WAS_UPDATED
        if before is not None:
            fresh = [(source, marks) for source in before if (source, marks) not in seen]
            seen.update(fresh)
            todo += fresh
        elif item.opcode == "constant" and not marks & _WAS_UPDATED:
            constants = True
        elif _is_parameter(item, marks, caches):
            parameters.add(item.integer(""))
        else:
            made_by.add(item)
    return LayoutSources(frozenset(parameters), frozenset(made_by), constants and not parameters and not made_by, seen)


def _is_float(item: Instruction) -> bool:
    return isinstance(item.shape, Array) and item.shape.dtype.startswith(("f", "bf"))


def _is_parameter(item: Instruction, marks: int, caches: frozenset[int]) -> bool:
    """True for an ENTRY parameter that was not broadcast, and not updated unless it is a cache."""
    if item.opcode != "parameter" or not item.computation.is_entry or marks & _WAS_BROADCAST:
        return False
    return not marks & _WAS_UPDATED or item.integer("") in caches


def _before(value: Value) -> list[Value] | None:
    frame, item, _ = value
    # `custom-call(w), custom_call_target="TopK", called_computations={greater}`: that is a comparator, not the result.
    forwarded = step_through(value) if item.opcode != "custom-call" else None
    if forwarded is not None:
        return forwarded
    if item.opcode in _DATA_IS_FIRST_OPERAND or item.opcode in SLICE_STARTS:
        return [(frame, item.operand(0), ())]
    if item.opcode == "concatenate":
        return [(frame, operand, ()) for operand in item.operands]
    if item.target in _COPIES:
        return [(frame, operand, ()) for operand in item.operands]
    # `maximum(%convert.63, %convert.64), metadata={op_name="…/layer.attention.qkv/concatenate" …}`: the name tells what
    # the two pads behind it are for, the maximum does not.
    return [(frame, pad, ()) for pad in _joined(item)] or None if item.opcode == "maximum" else None


def _moved(value: Value) -> list[Value] | None:
    """The operand of a data-moving collective; of a combined one, the operand of this element."""
    frame, item, path = value
    if item.target in _ASYNCHRONOUS:
        return [(frame, operand, ()) for operand in item.operands]
    if item.opcode.removesuffix("-start") not in _DATA_MOVING_COLLECTIVES:
        return None
    at = path[1:] if item.opcode.endswith("-start") else path
    return [(frame, item.operand(at[0]), ())] if at else [(frame, operand, ()) for operand in item.operands]


def moves_data(item: Instruction) -> bool:
    """True for a collective (or a part of an asynchronous one) that only moves data."""
    return item.opcode.removesuffix("-start") in _DATA_MOVING_COLLECTIVES or item.target in _ASYNCHRONOUS


def count_hops(value: Value, *, hop: Instruction) -> int | None:
    """How many permutes an array has come through, by layout-only instructions; None where a loop carries it around.

    hop: the permute that moves it next.
    """
    starts, seen, hops = [value], {hop}, 0
    while True:
        made_by = trace_sources(starts, updates=False).made_by
        permutes = {item for item in made_by if item.opcode.removesuffix("-start") == "collective-permute"}
        if not permutes:
            return hops
        # A ring in a loop permutes what it permuted in the trip before: its body has one permute for any number of
        # hops.
        if permutes & seen:
            return None
        seen |= permutes
        hops += 1
        starts = [(first_call_context(item.computation), item.operand(0), ()) for item in permutes]


def zero_elsewhere(value: Value) -> bool:
    """True if an array is zero except for a part at the device's own index: its all-reduce is then a gather."""
    made_by = trace_sources([value], updates=False).made_by
    return bool(made_by) and all(map(_is_part, made_by))


def _is_part(item: Instruction) -> bool:
    """True for a select of data or zeros, an update of zeros, a product with a mask, at the device's own index."""
    # The three ways in which the texts here zero what is another device's, all decided by the device's place:
    #   multiply(p, mask)    select(all, p, zeros)    dynamic-update-slice(zeros, a, n, at)
    # A lookup in a split table is none of them: its mask comes from the token ids, and its sum adds real parts.
    if item.opcode == "multiply":
        return any(map(depends_on_partition, item.operands))
    if item.opcode == "select":
        return depends_on_partition(item.operand(0)) and any(map(_is_zero, item.operands[1:]))
    return (
        item.opcode == "dynamic-update-slice"
        and _is_zero(item.operand(0))
        and any(map(depends_on_partition, item.operands[2:]))
    )


def _is_zero(item: Instruction) -> bool:
    """True for zeros, through broadcasts and layout-only instructions."""

    def before(value: Value) -> list[Value] | None:
        frame, now, _ = value
        return [(frame, now.operand(0), ())] if now.opcode == "broadcast" else _before(value)

    values = walk([(first_call_context(item.computation), item, ())], before)
    made = (now for frame, now, path in values if before((frame, now, path)) is None)
    return all(now.opcode == "constant" and _ZERO.fullmatch(now.arguments.strip()) for now in made)


def _joined(item: Instruction) -> list[Instruction]:
    """The pads of which a maximum is the concatenation: their data does not overlap; none if it is anything else."""
    pads, todo = [], list(item.operands)
    while todo:
        source = todo.pop()
        if source.opcode == "maximum":
            todo += source.operands
        elif source.opcode in ("convert", "copy") or (
            source.opcode == "bitcast" and _dims(source) == _dims(source.operand(0))
        ):
            todo.append(source.operand(0))
        elif source.opcode == "pad" and _dims(source) == _dims(item) and _is_lowest(source.operand(1)):
            pads.append(source)
        else:
            return []
    filled = [_filled(pad) for pad in pads]
    apart = all(_apart(*pair) for pair in combinations(filled, 2))
    return pads if apart else []


def _dims(item: Instruction) -> tuple[int, ...]:
    return item.shape.dims if isinstance(item.shape, Array) else ()


def _is_lowest(value: Instruction) -> bool:
    """True for the identity of maximum: the lowest value of its dtype."""
    return value.opcode == "constant" and value.arguments.strip() == "-inf"


def _filled(pad: Instruction) -> list[range]:
    """For each dim of a padded array the range of its data, interior padding included."""
    sides = _PADDING.findall(pad.attribute("padding"))
    return [range(int(low), size - int(high)) for (low, high, _), size in zip(sides, _dims(pad), strict=False)]


def _apart(left: list[range], right: list[range]) -> bool:
    return any(a.stop <= b.start or b.stop <= a.start for a, b in zip(left, right, strict=False))


_Loop = tuple[CallContext, Instruction]
"""A `while` and its call context."""


class LoopControl:
    """Remembers for each loop what its condition reads, and who makes that.

    row_of: the row that an instruction belongs to.  has_loops: whether the program has a `while` at all.
    """

    def __init__(self, row_of: Callable[[Instruction], Instruction], *, has_loops: bool):
        self._row_of, self._has_loops = row_of, has_loops
        self._paths: dict[_Loop, frozenset[tuple[int, ...]]] = {}
        self._makers: dict[_Loop, frozenset[Instruction]] = {}

    def steers(self, item: Instruction, frames: Iterable[CallContext], passed: Iterable[Value]) -> bool:
        """True if a collective carries, or computes, an element that the condition of a loop around it reads.

        passed: every value that its operand is, through layout-only instructions.
        """
        if not self._has_loops:
            return False
        for frame, at, path in passed:
            if at.opcode == "parameter" and (loop := _loop_of(frame)) and path in self._read(loop):
                return True
        loops = [loop for context in frames for frame in context.chain if frame.in_body and (loop := _loop_of(frame))]
        return any(item in self._making(loop) for loop in loops)

    def _making(self, loop: _Loop) -> frozenset[Instruction]:
        """The rows that compute the next value of the elements that the condition reads."""
        if loop not in self._makers:
            body = _body(loop)
            starts: list[Value] = [(body, body.computation.root, path) for path in self._read(loop)]
            made_by = trace_sources(starts, updates=False).made_by
            self._makers[loop] = frozenset(self._row_of(item) for item in made_by)
        return self._makers[loop]

    def _read(self, loop: _Loop) -> frozenset[tuple[int, ...]]:
        """The integers and predicates that the condition reads and the body changes."""
        if loop not in self._paths:
            frame, item = loop
            condition = frame.inside(item, condition_of(item))
            root: Value = (condition, condition.computation.root, ())
            reached = walk([root], lambda value: () if _is_parameter_of(condition, value) else inputs_of(value))
            paths = {value[2] for value in reached if _is_parameter_of(condition, value)}
            body = _body(loop)
            self._paths[loop] = frozenset(path for path in paths if _is_scalar(body, path) and _changes(body, path))
        return self._paths[loop]


def _is_parameter_of(condition: CallContext, value: Value) -> bool:
    return value[0] is condition and value[1].opcode == "parameter"


def _loop_of(frame: CallContext) -> _Loop | None:
    call, outer = frame.call, frame.outer
    return (outer, call) if call is not None and outer is not None and call.opcode == "while" else None


def _body(loop: _Loop) -> CallContext:
    frame, item = loop
    return frame.inside(item, body_of(item))


def _is_scalar(body: CallContext, path: tuple[int, ...]) -> bool:
    """True if a loop-carried element is a scalar integer or pred."""
    shape = body.computation.root.shape
    if len(path) != 1 or isinstance(shape, Array) or not body.computation.root.has(path):
        return False
    part = shape[path[0]]
    # A loop carries its activations and weights in the same tuple as its counter:
    #   %while.11 = (s32[], f32[128,256]{1,0}, s32[6]{0}, s32[], f32[256,256]{1,0}, …) while(%tuple.24)
    return isinstance(part, Array) and not part.dims and part.dtype[0] in "sup"


def _changes(body: CallContext, path: tuple[int, ...]) -> bool:
    return not is_carry(find_computed((body, body.computation.root, path)), body, path)
