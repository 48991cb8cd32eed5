"""Shapes of HLO text: `bf16[4,1024]{1,0:T(8,128)(2,1)}` and tuples of such."""

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from compare.hlo.text.errors import HloError

BITS = {
    "pred": 8, "token": 0, "opaque": 0,
    "s1": 1, "s2": 2, "s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64,
    "u1": 1, "u2": 2, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
    "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128,
    "f4e2m1fn": 4, "f8e3m4": 8, "f8e4m3": 8, "f8e4m3b11fnuz": 8, "f8e4m3fn": 8, "f8e4m3fnuz": 8,
    "f8e5m2": 8, "f8e5m2fnuz": 8, "f8e8m0fnu": 8,
}  # fmt: skip
"""Bits of one element; a predicate takes a byte."""

MOST_NESTED = 50
# TPU layouts go on behind the order of the dims with tiles and the memory space, which no count of bytes needs:
#   bf16[1,2,1,4096]{3,1,2,0:T(2,128)(2,1)S(1)}
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([0-9,]*)[^}]*\})?")
_COMMENT = re.compile(r"/\*.*?(?:\*/|$)")
_DIM = re.compile(r" *(?:<=)?([0-9]{1,19}) *")
MOST_BYTES = 1 << 62
"""No array has more: XLA counts bytes in 64 bits."""


@dataclass(frozen=True, slots=True)
class Array:
    """One array: its element type, its dims, and its layout where the text gives one."""

    dtype: str
    dims: tuple[int, ...]
    minor_to_major: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.dims)

    @property
    def num_bytes(self) -> int:
        """Logical bytes: elements times bits, without the padding of the tiled layout."""
        return -(-self.elements * BITS[self.dtype] // 8)


Shape = Array | tuple["Shape", ...]


@lru_cache(maxsize=4096)
def read_shape(text: str) -> Shape:
    """Read one shape; a tuple becomes a Python tuple.  An unknown spelling raises `HloError`."""
    clean = _COMMENT.sub("", text).strip()
    shape, end = _read(clean, 0)
    if clean[end:].strip():
        raise HloError(f"cannot read the shape {text[:80]!r}; a shape looks like 'bf16[4,1024]{{1,0}}'")
    return shape


def _read(text: str, at: int, depth: int = 0) -> tuple[Shape, int]:
    if depth > MOST_NESTED:
        raise HloError(f"the tuples of a shape are nested deeper than {MOST_NESTED}")
    if text.startswith("(", at):
        parts: list[Shape] = []
        at += 1
        while not text.startswith(")", at):
            part, at = _read(text, at, depth + 1)
            parts.append(part)
            while text.startswith((",", " "), at):
                at += 1
        return tuple(parts), at + 1
    match = _ARRAY.match(text, at)
    if not match or match[1] not in BITS:
        raise HloError(f"cannot read the shape {text[:80]!r}; a shape looks like 'bf16[4,1024]{{1,0}}'")
    layout = None if match[3] is None else _numbers(match[3], text)
    array = Array(match[1], _numbers(match[2], text), layout)
    if array.elements * max(BITS[array.dtype], 1) > 8 * MOST_BYTES:
        raise HloError(f"the shape {text[:80]!r} has more bytes than 64 bits count; it is damaged")
    return array, match.end()


def _numbers(text: str, shape: str) -> tuple[int, ...]:
    """The sizes between the brackets; of a bounded dim (`<=8`) its bound, the most that can move."""
    if not text:
        return ()
    sizes = [_DIM.fullmatch(dim) for dim in text.split(",")]
    if not all(sizes):
        raise HloError(f"cannot read the dims {text[:40]!r} of the shape {shape[:80]!r}; each is a whole number from 0")
    return tuple(int(dim[1]) for dim in sizes if dim)


def arrays(shape: Shape) -> list[Array]:
    """The arrays of a shape, those of nested tuples too, in order."""
    if isinstance(shape, Array):
        return [shape]
    return [array for part in shape for array in arrays(part)]


def element(shape: Shape, path: tuple[int, ...]) -> Shape:
    """The part of a tuple shape at `path`."""
    for index in path:
        if isinstance(shape, Array) or index >= len(shape):
            raise HloError(f"the shape {shape} has no element {path}")
        shape = shape[index]
    return shape
