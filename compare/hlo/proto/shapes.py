"""Shapes and literals of a serialized program, in the spelling of HLO text."""

import math

import numpy as np

from compare.hlo.proto.hlo_messages import BUFFER, ELEMENT_TYPES, TUPLE
from compare.hlo.proto.messages import Message
from compare.hlo.text.errors import HloError
from compare.hlo.text.shapes import MOST_NESTED

MOST_PRINTED = 10
"""A literal with more elements is elided as `{...}`: XLA's own text does the same."""

_VALUES = {
    "pred": "preds", "s8": "s8s", "s16": "s16s", "s32": "s32s", "s64": "s64s",
    "u8": "u8s", "u16": "u16s", "u32": "u32s", "u64": "u64s",
}  # fmt: skip
"""The field of a literal that holds the elements; floats decide no loop and no branch, and are elided."""

_Nested = str | list["_Nested"]

_IN_BYTES = {"s8": "<i1", "u8": "<u1", "s16": "<i2", "u16": "<u2"}


def shape_text(shape: Message, depth: int = 0) -> str:
    """`bf16[4,1024]{1,0:T(8,128)(2,1)S(1)}`, or a tuple of such."""
    if depth > MOST_NESTED:
        raise HloError(f"the tuples of a shape are nested deeper than {MOST_NESTED}")
    if shape.element_type == TUPLE:
        return "(" + ", ".join(shape_text(part, depth + 1) for part in shape.tuple_shapes) + ")"
    if shape.element_type == BUFFER:
        return "b(" + ", ".join(shape_text(part, depth + 1) for part in shape.tuple_shapes) + ")"
    dims = [str(size) for size in shape.dimensions]
    for at, is_dynamic in enumerate(shape.is_dynamic_dimension[: len(dims)]):
        if is_dynamic:
            dims[at] = "<=" + dims[at]
    return f"{_element_type(shape)}[{','.join(dims)}]{_layout(shape)}"


def _element_type(shape: Message) -> str:
    if shape.element_type not in ELEMENT_TYPES:
        raise HloError(f"unknown element type {shape.element_type} of a shape; a newer XLA wrote it")
    return ELEMENT_TYPES[shape.element_type]


def _layout(shape: Message) -> str:
    layout = shape.layout
    order = ",".join(map(str, layout.minor_to_major))
    tiles = "".join(f"({','.join(map(str, tile.dimensions))})" for tile in layout.tiles)
    more = f"T{tiles}" if tiles else ""
    more += f"E({layout.element_size_in_bits})" if layout.element_size_in_bits else ""
    more += f"S({layout.memory_space})" if layout.memory_space else ""
    return f"{{{order}{':' if more else ''}{more}}}" if order or more else ""


def literal_text(literal: Message) -> str:
    """`7`, `{0, 1}`, `{ { 1, 0 }, { 1, 1 } }`; `{...}` for what is long or of another type."""
    shape = literal.shape
    if shape.element_type == TUPLE:
        return "( " + ", ".join(["{...}"] * len(shape.tuple_shapes)) + " )"
    dtype, dims = _element_type(shape), tuple(shape.dimensions)
    elements = math.prod(dims)
    if dtype not in _VALUES or elements > MOST_PRINTED:
        return "{...}"
    stored = getattr(literal, _VALUES[dtype])
    width = np.dtype(_IN_BYTES.get(dtype, "u1")).itemsize
    if min(dims, default=0) < 0 or len(stored) != elements * width:
        raise HloError(f"a literal of shape {shape_text(shape)} with {len(stored)} values or bytes; is it cut?")
    values = np.frombuffer(stored, _IN_BYTES[dtype]).tolist() if dtype in _IN_BYTES else stored
    words = [str(value).lower() for value in values]
    order = tuple(shape.layout.minor_to_major) or tuple(reversed(range(len(dims))))
    if sorted(order) != list(range(len(dims))):
        raise HloError(f"a literal of shape {shape_text(shape)}, whose layout does not name each dim once")
    # The elements stand in memory order, the last dim of the layout's reversal moving fastest.
    outer_first = order[::-1]
    stored_as = np.array(words, dtype=object).reshape([dims[dim] for dim in outer_first])
    return _spell(stored_as.transpose([outer_first.index(dim) for dim in range(len(dims))]).tolist())


def _spell(values: _Nested) -> str:
    """Nested lists as XLA writes them, but for its spaces."""
    return values if isinstance(values, str) else "{" + ", ".join(map(_spell, values)) + "}"
