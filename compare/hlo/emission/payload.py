"""The payload of a collective, and the bytes that each device sends."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache

from compare.hlo.devices.groups import Groups
from compare.hlo.text.attributes import split_top
from compare.hlo.text.computation_spans import short
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.shapes import BITS, Array, Shape, arrays

_IN_PLACE = "slice_sizes"
"""What a permute has that moves windows of one buffer into another."""
_WORDS = ("u8", "u16", "u32", "u64")
_WINDOW = re.compile(r"\{([0-9]{1,19}(?:,[0-9]{1,19})*)\}")
_WINDOWS = re.compile(rf"\{{{_WINDOW.pattern}(?:,\s*{_WINDOW.pattern})*\}}")
_SENT = {
    "all-reduce": lambda n: Fraction(2 * (n - 1), n),
    "all-gather": lambda n: Fraction(n - 1, n),
    "reduce-scatter": lambda n: Fraction(n - 1, n),
    "all-to-all": lambda n: Fraction(n - 1, n),
    "ragged-all-to-all": lambda n: Fraction(n - 1, n),
    "collective-broadcast": lambda n: Fraction(n - 1, n),
}
"""What a bandwidth-optimal algorithm makes a device of a group of n send, of its payload.

The contract has its own table (`wire_factor`), on purpose: an error in one cannot hide in both.
"""


def carried_arrays(item: Instruction, kind: str, receive: Instruction | None) -> list[Array]:
    """The arrays of its payload: the results of an all-gather, the operands of any other kind."""
    shapes: list[Shape]
    #   collective-permute(p0, p1, p2, p2), slice_sizes={{3}}        p1 is the buffer for what comes in, p2 offsets
    #   ragged-all-to-all(p0, p1, p2, p2, p2, p2)                    p1 is that buffer, p2 offsets and sizes
    if kind == "all-gather":
        shapes = [_result(item if receive is None else receive)]
    elif item.opcode == "send" or kind == "ragged-all-to-all" or _IN_PLACE in item.attributes:
        shapes = [item.operand(0).shape]  # The others are buffers for what comes in, offsets, sizes, a token.
    else:
        shapes = [operand.shape for operand in item.operands]
        if len(shapes) != len(split_top(item.arguments)):
            raise item.error("cannot read each of its operands")
    carried = [_unpack(item, array) for shape in shapes for array in _arrays_of(shape)]
    if not carried:
        raise item.error(f"{item.opcode} carries no array")
    return carried


def _arrays_of(shape: Shape) -> list[Array]:
    return [array for array in arrays(shape) if BITS[array.dtype]]  # no token


def operands_of_arrays(item: Instruction, count: int) -> list[int]:
    """For each of the arrays that it carries, the number of its operand: one may be a tuple of several."""
    if _IN_PLACE in item.attributes:
        return [0] * count
    numbers = [number for number, operand in enumerate(item.operands) for _ in _arrays_of(operand.shape)]
    return numbers if len(numbers) == count else list(range(count))


def _unpack(item: Instruction, array: Array) -> Array:
    """The array; of a sum whose reduction takes smaller numbers out of its unsigned words, those numbers.

    libtpu adds up four f8 or s8 in one u32: its reduction shifts each into place, and adds it as what it is.
    """
    if array.dtype not in _WORDS or not array.dims:
        return array
    parts = [(part.opcode, part.shape) for reduction in item.callees for part in reduction]
    numbers = [(opcode, shape.dtype) for opcode, shape in parts if isinstance(shape, Array)]
    floats = {dtype for opcode, dtype in numbers if opcode == "bitcast-convert" and dtype.startswith(("f", "bf"))}
    added = {dtype for opcode, dtype in numbers if opcode == "add" and BITS[dtype] < BITS[array.dtype]}
    packed = floats or added
    if len(packed) != 1:
        return array
    (dtype,) = packed
    return Array(dtype, (*array.dims[:-1], array.dims[-1] * BITS[array.dtype] // BITS[dtype]))


def _result(item: Instruction) -> Shape:
    """The result of an all-gather: of a start, its tuple's second element; of a receive, the first."""
    shape = item.shape
    if item.opcode == "all-gather":
        return shape
    # `(f32[16], f32[64], u32[], u32[]) all-gather-start(p0)`: operand, result, contexts.
    at = 0 if item.opcode == "recv" else 1
    if isinstance(shape, Array) or len(shape) <= at:
        raise item.error(f"{item.opcode} without the tuple of its buffers")
    return shape[at]


def window_bytes(item: Instruction, carried: Sequence[Array]) -> list[tuple[int, ...]]:
    """For each of the arrays that it carries its logical bytes; of a permute in place those of each of its windows.

    `slice_sizes` has the windows of the first array, then as many of the second.  A device that is the source of
    several pairs sends the first window to its first target, the second to its second: a ring of two directions.
    """
    text = item.attributes.get(_IN_PLACE)
    if text is None or not carried:
        return [(array.num_bytes,) for array in carried]
    if not _WINDOWS.fullmatch(text):
        raise item.error(f"cannot read slice_sizes={short(text)} as sizes of windows, {{{{1,8}},{{1,8}}}}")
    sizes = [tuple(map(int, window.split(","))) for window in _WINDOW.findall(text)]
    each, left = divmod(len(sizes), len(carried))
    found = []
    for at, array in enumerate(carried):
        windows = [Array(array.dtype, dims) for dims in (sizes if left else sizes[at * each : (at + 1) * each])]
        if any(window.elements > array.elements for window in windows):
            raise item.error("a window of it is larger than its operand")
        found.append(tuple(window.num_bytes for window in windows))
    return found


@lru_cache(maxsize=16)
def sent_bytes(
    kind: str, groups: Groups, payload: int, num_devices: int, *, windows: tuple[int, ...] = ()
) -> tuple[Fraction, ...]:
    """Bytes that each device sends in one execution; 0 for a device in no group or paired with itself.

    windows: of a permute in place, the bytes of each, payload in all.
    The layers of a model repeat a few; a large mesh makes each of them large.
    """
    sent = [Fraction(0)] * num_devices
    if kind == "collective-permute":
        pairs, most = [0] * num_devices, max(Counter(source for source, _ in groups).values(), default=0)
        if not windows or len(windows) > most:  # not one for each pair of some device: each pair moves them all
            windows = (payload,)
        for source, target in groups:
            sent[source] += windows[pairs[source] % len(windows)] if source != target else 0
            pairs[source] += 1
        return tuple(sent)
    of_size = {size: _SENT[kind](size) * payload for size in {len(group) for group in groups}}
    for group in groups:
        for device in group:
            sent[device] = of_size[len(group)]
    return tuple(sent)


def total_bytes(sent: tuple[Fraction, ...], executions: Iterable[int]) -> Fraction:
    """Executions × bytes, summed over all devices; equal terms are grouped first."""
    executions = tuple(executions)
    first = sent[0] if sent else Fraction(0)
    if all(value is first for value in sent):
        return first * sum(executions)
    times: dict[int, int] = {}
    values: dict[int, Fraction] = {}
    for value, runs in zip(sent, executions, strict=True):
        times[id(value)] = times.get(id(value), 0) + runs
        values[id(value)] = value
    return sum((values[key] * runs for key, runs in times.items()), Fraction(0))


def round_half_up(value: Fraction) -> int:
    return (2 * value.numerator + value.denominator) // (2 * value.denominator)
