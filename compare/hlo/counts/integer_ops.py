"""Integer and predicate operations of HLO on numpy arrays, with XLA's rules for wrap, shift and division.

An array has the lead dims of its call context (devices, then one per loop), then the dims of the value.
"""

import math
import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from compare.hlo.text.attributes import split_top
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.shapes import Array

Value = NDArray[np.int64 | np.bool_]

MOST_ELEMENTS = 1 << 22
"""Largest number of elements of a value that is evaluated."""


class NotUnderstood(Exception):  # noqa: N818  (it never leaves the evaluator: an unknown is a value, not an error)
    """The value depends on data, or on an operation that is not evaluated."""


DTYPES = {
    "pred": np.bool_,
    "s8": np.int8,
    "s16": np.int16,
    "s32": np.int32,
    "s64": np.int64,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
}

_COMMENT = re.compile(r"/\*.*?(?:\*/|$)")
_SLICE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")
_COMPARE: dict[str, Callable[[Value, Value], Value]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def array_of(item: Instruction) -> Array:
    """The shape of an instruction's result.  Raises `NotUnderstood` unless it is one small integer or pred array."""
    shape = item.shape
    if not isinstance(shape, Array) or shape.dtype not in DTYPES or shape.elements > MOST_ELEMENTS:
        raise NotUnderstood
    return shape


def constant(item: Instruction, lead: int) -> Value:
    """A literal.  Raises `NotUnderstood` for one that the text elides (`{...}`)."""
    shape, text = array_of(item), _COMMENT.sub("", item.arguments)
    if "..." in text:
        raise NotUnderstood
    words = re.findall(r"true|false|-?\d+", text)
    if len(words) != shape.elements:
        raise NotUnderstood
    numbers = [word == "true" if word in ("true", "false") else int(word) for word in words]
    return np.array(numbers, DTYPES[shape.dtype]).reshape((1,) * lead + shape.dims)


def iota(item: Instruction, lead: int) -> Value:
    shape = array_of(item)
    along = item.integer("iota_dimension") if shape.dims else 0
    turn = [shape.dims[at] if at == along else 1 for at in range(len(shape.dims))]
    line: Value = np.arange(math.prod(turn), dtype=DTYPES[shape.dtype]).reshape(turn)
    return np.broadcast_to(line, shape.dims).reshape((1,) * lead + shape.dims)


def _shift(left: bool) -> Callable[[Value, Value], Value]:
    def shift(value: Value, by: Value) -> Value:
        bits = value.dtype.itemsize * 8
        wide = by.astype(np.uint64)
        unsigned = f"u{value.dtype.itemsize}"
        move = np.left_shift if left else np.right_shift
        moved = move(value.view(unsigned), np.minimum(wide, bits - 1).astype(unsigned)).view(value.dtype)
        return np.where(wide < bits, moved, np.zeros((), value.dtype))

    return shift


def _shift_arithmetic(value: Value, by: Value) -> Value:
    bits = value.dtype.itemsize * 8
    signed = value.view(f"i{value.dtype.itemsize}")
    moved: Value = np.right_shift(signed, np.minimum(by.astype(np.uint64), bits - 1).astype(signed.dtype))
    return moved.view(value.dtype)


def _divide(value: Value, by: Value) -> Value:
    """XLA's integer division: rounds towards zero; by zero, all bits set."""
    safe = np.where(by == 0, np.ones((), by.dtype), by)
    quotient = np.floor_divide(value, safe)
    if np.issubdtype(value.dtype, np.signedinteger):
        inexact = np.remainder(value, safe) != 0
        quotient = quotient + (inexact & ((value < 0) != (safe < 0))).astype(value.dtype)
    return np.where(by == 0, np.invert(np.zeros((), value.dtype)), quotient).astype(value.dtype)


def _remainder(value: Value, by: Value) -> Value:
    """XLA's remainder: the sign of the dividend; by zero, the dividend."""
    safe = np.where(by == 0, np.ones((), by.dtype), by)
    return np.where(by == 0, value, np.fmod(value, safe)).astype(value.dtype)


BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: np.logical_or(a, b) if a.dtype == np.bool_ else np.add(a, b),
    "subtract": np.subtract,
    "multiply": lambda a, b: np.logical_and(a, b) if a.dtype == np.bool_ else np.multiply(a, b),
    "divide": _divide,
    "remainder": _remainder,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shift-left": _shift(True),
    "shift-right-logical": _shift(False),
    "shift-right-arithmetic": _shift_arithmetic,
}

UNARY: dict[str, Callable[[Value], Value]] = {
    "not": lambda a: np.logical_not(a) if a.dtype == np.bool_ else np.invert(a),
    "negate": np.negative,
    "abs": np.abs,
    "sign": np.sign,
}


OPERANDS = {**dict.fromkeys(BINARY, 2), **dict.fromkeys(UNARY, 1), "compare": 2, "select": 3, "clamp": 3}
"""Opcode -> how many operands XLA's verifier demands."""


def compare(item: Instruction, left: Value, right: Value) -> Value:
    operation = _COMPARE.get(item.attribute("direction"))
    if operation is None:
        raise item.error("unknown direction of a compare")
    return operation(left, right)


def _convert(item: Instruction, value: Value, lead: int) -> Value:
    dtype = DTYPES[array_of(item).dtype]
    converted: Value = value != 0 if dtype is np.bool_ else value.astype(dtype)
    return converted


def _bitcast_convert(item: Instruction, value: Value, lead: int) -> Value:
    """The same bits read as another type of the same width."""
    dtype = np.dtype(DTYPES[array_of(item).dtype])
    if dtype.itemsize != value.dtype.itemsize or np.bool_ in (dtype, value.dtype):
        raise NotUnderstood
    return np.ascontiguousarray(value).view(dtype)


def _bitcast(item: Instruction, value: Value, lead: int) -> Value:
    """The same elements in memory order, read under the new shape and layout."""
    source, target = item.operand(0).shape, array_of(item)
    if not isinstance(source, Array) or source.elements != target.elements:
        raise NotUnderstood
    if DTYPES.get(source.dtype) is not DTYPES[target.dtype]:
        raise NotUnderstood
    heads = tuple(range(lead))
    outer_first = _major_to_minor(source)
    flat = value.transpose(heads + tuple(lead + dim for dim in outer_first))
    placed = _major_to_minor(target)
    stored = flat.reshape(value.shape[:lead] + tuple(target.dims[dim] for dim in placed))
    back = tuple(placed.index(dim) for dim in range(len(placed)))
    return stored.transpose(heads + tuple(lead + dim for dim in back))


def _major_to_minor(shape: Array) -> tuple[int, ...]:
    return tuple(range(len(shape.dims))) if shape.minor_to_major is None else tuple(reversed(shape.minor_to_major))


def _broadcast(item: Instruction, value: Value, lead: int) -> Value:
    shape = array_of(item)
    dims = _ints(item.attribute("dimensions"))
    turned = [1] * len(shape.dims)
    for at, dim in enumerate(dims):
        turned[dim] = value.shape[lead + at]
    return np.broadcast_to(value.reshape(value.shape[:lead] + tuple(turned)), value.shape[:lead] + shape.dims)


def _transpose(item: Instruction, value: Value, lead: int) -> Value:
    dims = _ints(item.attribute("dimensions"))
    return value.transpose(tuple(range(lead)) + tuple(lead + dim for dim in dims))


def _slice(item: Instruction, value: Value, lead: int) -> Value:
    ranges = [_SLICE.fullmatch(part) for part in split_top(item.attribute("slice").strip("{}"))]
    if not all(ranges):
        raise item.error("cannot read the slice")
    cuts = tuple(slice(int(bounds[1]), int(bounds[2]), int(bounds[3] or 1)) for bounds in ranges if bounds)
    return value[(slice(None),) * lead + cuts]


def _reshape(item: Instruction, value: Value, lead: int) -> Value:
    return value.reshape(value.shape[:lead] + array_of(item).dims)


MOVES: dict[str, Callable[[Instruction, Value, int], Value]] = {
    "convert": _convert,
    "bitcast": _bitcast,
    "bitcast-convert": _bitcast_convert,
    "reshape": _reshape,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "slice": _slice,
}
"""Operations of one operand that keep its elements."""


def concatenate(item: Instruction, values: Sequence[Value], lead: int) -> Value:
    (dim,) = _ints(item.attribute("dimensions"))
    heads = np.broadcast_shapes(*(value.shape[:lead] for value in values))
    wide = [np.broadcast_to(value, heads + value.shape[lead:]) for value in values]
    return np.concatenate(wide, axis=lead + dim)


def dynamic_slice(item: Instruction, value: Value, starts: Sequence[Value], lead: int) -> Value:
    """Each device's and iteration's own window; a start is clamped so that the window fits."""
    sizes = _ints(item.attribute("dynamic_slice_sizes"))
    dims = value.shape[lead:]
    heads = np.broadcast_shapes(value.shape[:lead], *(start.shape for start in starts))
    if math.prod(heads) * max(math.prod(sizes), 1) > MOST_ELEMENTS:
        raise NotUnderstood
    index: list[Value] = []
    for at, (start, size, dim) in enumerate(zip(starts, sizes, dims, strict=True)):
        first = np.clip(start.astype(np.int64), 0, dim - size)
        turned = np.arange(size).reshape([size if other == at else 1 for other in range(len(sizes))])
        index.append(first.reshape(first.shape + (1,) * len(sizes)) + turned)
    if math.prod(value.shape[:lead]) == 1:
        return value.reshape(dims)[tuple(index)] if dims else value
    places: tuple[Value, ...] = np.indices(heads, sparse=True)
    wide = np.broadcast_to(value, heads + dims)
    return wide[tuple(place.reshape(place.shape + (1,) * len(sizes)) for place in places) + tuple(index)]


def _ints(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in re.findall(r"\d+", text))
