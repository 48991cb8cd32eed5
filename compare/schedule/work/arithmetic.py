"""The arithmetic of one instruction: FLOPs of the matrix unit, and elements that other arithmetic produces.

Multiply-adds of a convolution count where its window lies on a value of the operand: positions in padding, and between
dilated values, are no work (XLA's `HloCostAnalysis` counts the same).  libtpu writes most products as convolutions.
"""

import re
from dataclasses import dataclass
from math import gcd, prod
from typing import Self

from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Computation, Instruction
from compare.hlo.text.shapes import Array, Shape, arrays

ELEMENTWISE = frozenset({
    "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "convert", "cosine", "count-leading-zeros",
    "divide", "erf", "exponential", "exponential-minus-one", "floor", "is-finite", "log", "log-plus-one", "logistic",
    "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "remainder", "rng",
    "rng-bit-generator", "round-nearest-afz", "round-nearest-even", "rsqrt", "select", "shift-left",
    "shift-right-arithmetic", "shift-right-logical", "sign", "sine", "sqrt", "stochastic-convert", "subtract", "tan",
    "tanh", "xor",
})  # fmt: skip
"""Opcodes that compute each element of their result once."""

MOST_PLACES = 1 << 20
"""Of a convolution's window or result along one dim, the smaller of the two."""

_CALLS = frozenset({"fusion", "call", "async-start"})
_STATED_FLOPS = re.compile(r'"cost_estimate":\{"flops":"?(\d+)')
_WINDOW = ("size", "stride", "lhs_dilate", "rhs_dilate")
_NUMBER, _PAD = re.compile(r"0*[1-9]\d{0,9}"), re.compile(r"-?\d{1,10}_-?\d{1,10}")
_LABELS = re.compile(r"([\w?]+)_([\w?]+)->([\w?]+)")


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The arithmetic of one execution on one device."""

    matrix_flops: int = 0
    """2 × multiply-adds of dots and convolutions, and what a kernel's author states."""
    vector_ops: int = 0
    """Elements that other arithmetic produces; of a sum also its partial sums."""

    def __add__(self, other: Self) -> "Arithmetic":
        return Arithmetic(self.matrix_flops + other.matrix_flops, self.vector_ops + other.vector_ops)


_NOTHING = Arithmetic()


class ArithmeticCounts:
    """Counts instructions; caches called computations."""

    def __init__(self) -> None:
        self._inside: dict[Computation, Arithmetic] = {}

    def of(self, item: Instruction) -> Arithmetic:
        """One execution, with all that a fusion or call contains; a loop or branch by itself computes nothing."""
        opcode = item.opcode
        if opcode in _CALLS:
            return sum((self._of_computation(inside) for inside in item.callees), start=_NOTHING)
        if opcode in ("dot", "convolution"):
            return Arithmetic(matrix_flops=2 * multiply_adds(item))
        if opcode in ELEMENTWISE:
            return Arithmetic(vector_ops=_elements(item.shape))
        if opcode == "custom-call":
            return Arithmetic(matrix_flops=stated_flops(item) or 0)
        return Arithmetic(vector_ops=self._applied(item))

    def _of_computation(self, computation: Computation) -> Arithmetic:
        if computation not in self._inside:
            self._inside[computation] = sum((self.of(item) for item in computation), start=_NOTHING)
        return self._inside[computation]

    def _applied(self, item: Instruction) -> int:
        """Of opcodes that apply a computation to scalars: how often × its operations."""
        times = _applications(item)
        return times * sum(self._of_computation(inside).vector_ops for inside in item.callees) if times else 0


def _applications(item: Instruction) -> int:
    """How often an opcode applies its computation to scalars; 0 for any other opcode."""
    if item.opcode == "map":
        return _elements(item.shape)
    if item.opcode == "reduce":
        return max(0, _elements(item.operand(0).shape) - _elements(item.shape))
    if item.opcode == "reduce-window":
        return _windowed(item)
    if item.opcode == "scatter":
        return _elements(item.operand(len(item.operand_names) - 1).shape)
    if item.opcode == "sort":
        dims = arrays(item.operand(0).shape)[0].dims
        along = _numbers(item.attribute("dimensions"))
        if len(along) != 1 or along[0] >= len(dims):
            raise item.error("sorts along a dim that its operand does not have")
        return _elements(item.shape) * max(dims[along[0]] - 1, 0).bit_length()
    return 0


def _windowed(item: Instruction) -> int:
    """Of a reduce-window; along a dim that every window holds whole, as in libtpu's softmax, one reduction."""
    operand, result = _array(item.operand(0)).dims, arrays(item.shape)[0].dims
    windows, places = 1, 1
    for index, (length, count) in enumerate(zip(operand, result, strict=False)):
        dim = _window_dim(item, index)
        size, last = dim.size, dim.stride * (count - 1) - dim.low
        holds_all = last <= 0 and size - 1 - dim.low >= length - 1
        windows *= 1 if holds_all else count
        places *= length if holds_all else size
    return windows * (places - 1)


def stated_flops(kernel: Instruction) -> int | None:
    """The cost estimate by a kernel's author, or `None`."""
    match = _STATED_FLOPS.search(kernel.text)
    return int(match[1]) if match else None


def multiply_adds(item: Instruction) -> int:
    """Of a dot or convolution.  `HloError` where an attribute is missing or its operands are no arrays."""
    return _dot(item) if item.opcode == "dot" else _convolution(item)


def _dot(item: Instruction) -> int:
    dims = _array(item.operand(0)).dims
    contracted = _numbers(item.attribute("lhs_contracting_dims"))
    if any(dim >= len(dims) for dim in contracted):
        raise item.error("contracts a dim that its operand does not have")
    return _array(item).elements * prod(dims[dim] for dim in contracted)


def _convolution(item: Instruction) -> int:
    left, right, result = (_array(part).dims for part in (item.operand(0), item.operand(1), item))
    labels = _LABELS.fullmatch(item.attribute("dim_labels").strip())
    words: tuple[str, ...] = labels.groups() if labels else ("", "", "")
    if [*map(len, map(set, words))] != [*map(len, (left, right, result))]:
        raise item.error("cannot read dim_labels, which names each dim of both operands and of the result")
    of_left, of_right, of_result = (
        dict(zip(word, dims, strict=True)) for word, dims in zip(words, (left, right, result), strict=True)
    )
    spatial = sorted(label for label in of_result if label.isdigit())
    if not {"b", *spatial} <= of_left.keys() or not {"i", *spatial} <= of_right.keys() or "f" not in of_result:
        raise item.error("cannot read dim_labels, which names each dim of both operands and of the result")
    positions: int = prod(
        _positions(of_left[label], of_right[label], of_result[label], _window_dim(item, index))
        for index, label in enumerate(spatial)
    )
    batch = of_left["b"]
    if "batch_group_count" in item.attributes:
        batch //= max(item.integer("batch_group_count"), 1)
    return batch * of_right["i"] * of_result["f"] * positions


def _positions(left: int, kernel: int, result: int, window: "_Dim") -> int:
    """Pairs of a place in the result and one in the kernel that meet on a value of the left operand."""
    loops, counted = ((kernel, window.gap), (result, window.stride))
    if loops[0] > counted[0]:
        loops, counted = counted, loops
    if loops[0] > MOST_PLACES:
        raise HloError(f"a window of more than {MOST_PLACES:,} places along one dim; is the text damaged?")
    last = (left - 1) * window.spread
    begins = (place * loops[1] - window.low for place in range(loops[0]))
    return sum(_multiples(begin, *counted, last=last, spread=window.spread) for begin in begins)


def _multiples(begin: int, count: int, step: int, *, last: int, spread: int) -> int:
    """Multiples of `spread` from 0 to `last` among `count` numbers that ascend from `begin` by `step`."""
    low, high = max(0, -(begin // step)), min(count - 1, (last - begin) // step)
    common = gcd(step, spread)
    if begin % common or high < low:
        return 0
    period = spread // common
    inverse: int = pow(step // common, -1, period)
    first = low + (-begin // common * inverse - low) % period
    return max(0, (high - first) // period + 1)


@dataclass(frozen=True, slots=True)
class _Dim:
    """The window along one dim."""

    size: int
    stride: int
    low: int
    """Padding before the first value; negative where values are cut off."""
    spread: int
    """Distance of two values of the dilated operand."""
    gap: int
    """Distance of two values of the dilated kernel."""


def _window_dim(item: Instruction, index: int) -> _Dim:
    """The window of dim `index`: what `window={…}` does not say is 1, and no padding."""
    text = item.attribute("window").strip().removeprefix("{").removesuffix("}")
    fields = {key: value.split("x") for key, _, value in (field.partition("=") for field in text.split())}
    words = [fields[key][index : index + 1] if key in fields else ["1"] for key in _WINDOW]
    words.append(fields["pad"][index : index + 1] if "pad" in fields else ["0_0"])
    if not all(words) or not all(_NUMBER.fullmatch(word[0]) for word in words[:-1]) or not _PAD.fullmatch(words[-1][0]):
        raise item.error("cannot read its window")
    size, stride, spread, gap = (int(word[0]) for word in words[:-1])
    return _Dim(size, stride, int(words[-1][0].split("_")[0]), spread, gap)


def _numbers(text: str) -> list[int]:
    return [int(number[:18]) for number in re.findall(r"\d+", text)]


def _array(item: Instruction) -> Array:
    shape = item.shape
    if not isinstance(shape, Array):
        raise item.error("an array is needed here, and this is a tuple")
    return shape


def _elements(shape: Shape) -> int:
    """Of an array, or of the first of several that are computed together."""
    first = arrays(shape)
    return first[0].elements if first else 0
