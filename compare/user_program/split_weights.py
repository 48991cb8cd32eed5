"""Which of a program's weights are split over an axis, by the shardings of its parameters."""

from collections.abc import Mapping

from compare.hlo.devices.tiles import is_split_over, read_tiles
from compare.hlo.text.module import read
from compare.hlo.text.shapes import Array
from compare.user_program.saved_program import SavedProgram
from compare.verdict.operand_traffic import is_float

MATRIX = 2
"""Fewest dims of a weight: norm scales and biases are small, and whole."""


def list_split_weights(program: SavedProgram, axes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Axis -> the bytes that a device would hold of each matrix of which its members hold parts, put together.

    Caches (what an output takes over), ids and vectors do not count.  Empty too where the text does not say how its
    parameters are split.
    """
    module = read(program.text)
    found: dict[str, tuple[int, ...]] = {}
    for number, item in module.entry.parameters.items():
        array = item.shape
        if not isinstance(array, Array) or number in module.aliased_parameters:
            continue
        if is_float(array.dtype) and len(array.dims) >= MATRIX:
            tiles = read_tiles(item.attributes.get("sharding", ""))
            for axis, size in axes.items():
                if is_split_over(tiles, axis, axes=axes):
                    found[axis] = (*found.get(axis, ()), array.num_bytes * size)
    return found
