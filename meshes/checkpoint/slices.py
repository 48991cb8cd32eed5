"""Assemble a slice of a weight from slices of a checkpoint's tensors."""

from collections.abc import Iterable, Iterator
from itertools import product
from math import prod
from typing import Any, Protocol

import numpy as np

from meshes.case import Case
from meshes.checkpoint.tables import Source, dim_size
from meshes.models import Model
from meshes.process.errors import MeshError
from meshes.weights import WeightSpec

Array = np.ndarray[Any, np.dtype[Any]]
Index = tuple[slice, ...]

BLOCK_BYTES = 2**18
"""Read and turned at a time, counted as float32: few rows, so that they stay in the processor's cache."""


EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
"""Tables of the same numbers, where the head is tied."""


class Tensors(Protocol):
    """Tensors by name, readable in parts."""

    def shape(self, name: str) -> tuple[int, ...]: ...

    def matrix(self, name: str, *, lead: tuple[int, ...], rows: range, columns: range) -> Array:
        """Of the matrix at `lead` of a tensor's outer dims, rows and columns, [rows, columns]; a vector is one row."""
        ...


def read_slice(spec: WeightSpec, *, source: Source, tensors: Tensors, case: Case, index: Index, out: Array) -> None:
    """Fill `out`, of the shape of `index` into the weight, reading no more than that."""
    reader = _Reader(spec, source, tensors, case, index)
    for place, name, lead in reader.matrices():
        reader.fill(out[place], name=name, lead=lead)


def check_shapes(sources: Iterable[Source], *, tensors: Tensors, model: Model) -> None:
    """Raise `MeshError` if the shape of a tensor is not that of the model."""
    for source in sources:
        right = source.shape(model)
        for name in source.each(model):
            if tensors.shape(name) != right:
                raise MeshError(
                    f"tensor {name!r} of the checkpoint has shape {tensors.shape(name)}; {model.name} needs {right} "
                    f"({source.dims})"
                )


def check_tied(tensors: Tensors) -> None:
    """Raise `MeshError` where the head of a tied model is another table than the embedding.  Tensors are float32."""
    shape = tensors.shape(EMBEDDING)
    step = max(BLOCK_BYTES // (4 * shape[1]), 1)
    parts = [range(at, min(at + step, shape[0])) for at in range(0, shape[0], step)]

    def bits(name: str, rows: range) -> Array:
        return tensors.matrix(name, lead=(), rows=rows, columns=range(shape[1])).view(np.uint32)

    same = tensors.shape(HEAD) == shape
    if not same or not all(np.array_equal(bits(EMBEDDING, rows), bits(HEAD, rows)) for rows in parts):
        raise MeshError(
            f"tie_word_embeddings is true, but {HEAD!r} differs from {EMBEDDING!r}; say false in config.json, or take "
            f"the head out"
        )


def ranges(index: Index, *, shape: tuple[int, ...]) -> tuple[range, ...]:
    """The range that each slice selects of its dim."""
    return tuple(range(*part.indices(size)) for part, size in zip(index, shape, strict=True))


class _Reader:
    """One weight's slice: which matrices hold it, and where what is read of one belongs."""

    def __init__(self, spec: WeightSpec, source: Source, tensors: Tensors, case: Case, index: Index) -> None:
        self.source, self.tensors, self.model, self.stages = source, tensors, case.model, case.mesh.pp
        self.layer = spec.layer
        self.taken = dict(zip(spec.dims.split(), ranges(index, shape=spec.shape), strict=True))
        dims = len(source.dims.split(","))
        stacked = source.digits(0) if dims == 3 else ("experts",) if "{expert}" in source.name else ()
        self.outer = [name for name in ("layers", "stages", *stacked) if name in self.taken]
        self.inner = [name for name in self.taken if name not in self.outer]
        self.rows = source.digits(dims - 2) if dims > 1 else ()
        self.columns = source.digits(dims - 1)
        self.offsets = [source.offset(at, model=self.model) if at >= 0 else 0 for at in (dims - 2, dims - 1)]
        self.copies = case.kv_heads // self.model.kv_heads

    def matrices(self) -> Iterator[tuple[tuple[int, ...], str, tuple[int, ...]]]:
        """For each matrix that holds a part: its index in the result, its tensor, and its index in that."""
        for numbers in product(*(enumerate(self.taken[name]) for name in self.outer)):
            place = tuple(at for at, _ in numbers)
            where = dict(zip(self.outer, (number for _, number in numbers), strict=True))
            layer = where.get("stages", 0) * (self.model.layers // self.stages) + where.get("layers", self.layer)
            expert = where.get("experts", 0)
            stacked = "experts" in where and "{expert}" not in self.source.name
            yield place, self.source.name.format(layer=layer, expert=expert), (expert,) if stacked else ()

    def fill(self, out: Array, *, name: str, lead: tuple[int, ...]) -> None:
        """The part of one matrix, read and transposed in blocks of full rows of its outer digit."""
        columns = self._span(self.columns, self._source_range(self.columns[0]), self.offsets[1])
        outer = {*self.rows[:1], *self.columns[:1]}
        stored = {
            digit: self._source_range(digit) if digit in outer else range(self._size(digit))
            for digit in (*self.rows, *self.columns)
        }
        wanted = {digit: self.taken[digit] for digit in stored}
        if not self.rows:
            block = self.tensors.matrix(name, lead=lead, rows=range(1), columns=columns)
            out[...] = self._arrange(block, stored=stored, wanted=wanted)
            return
        first, outermost = self.rows[0], stored[self.rows[0]]
        unit_bytes = prod(self._size(digit) for digit in self.rows[1:]) * len(columns) * 4
        step = max(BLOCK_BYTES // unit_bytes, 1)
        for start in range(outermost.start, outermost.stop, step):
            part = range(start, min(start + step, outermost.stop))
            rows = self._span(self.rows, part, self.offsets[0])
            block = self.tensors.matrix(name, lead=lead, rows=rows, columns=columns)
            some, at = self._copies_of(first, part)
            place = tuple(slice(at.start, at.stop) if digit == first else slice(None) for digit in self.inner)
            out[place] = self._arrange(block, stored=stored | {first: part}, wanted=wanted | {first: some})

    def _arrange(self, block: Array, *, stored: dict[str, range], wanted: dict[str, range]) -> Array:
        """A block, cut to the wanted range of each digit, with copies of heads, in the weight's order of dims."""
        arranged = block.reshape([len(numbers) for numbers in stored.values()])
        for at, digit in enumerate(stored):
            copies = self._copies(digit)
            if copies > 1:
                arranged = np.take(
                    arranged, [number // copies - stored[digit].start for number in wanted[digit]], axis=at
                )
            elif len(wanted[digit]) != len(stored[digit]):
                begin = wanted[digit].start - stored[digit].start
                arranged = arranged[(slice(None),) * at + (slice(begin, begin + len(wanted[digit])),)]
        digits = list(stored)
        return arranged.transpose([digits.index(digit) for digit in self.inner])

    def _copies_of(self, digit: str, part: range) -> tuple[range, range]:
        """The wanted numbers that are copies of these, and their indices among the wanted."""
        copies, taken = self._copies(digit), self.taken[digit]
        wanted = range(max(taken.start, part.start * copies), min(taken.stop, part.stop * copies))
        return wanted, range(wanted.start - taken.start, wanted.stop - taken.start)

    def _source_range(self, digit: str) -> range:
        """The range to read of the checkpoint: of copied KV heads their sources."""
        taken, copies = self.taken[digit], self._copies(digit)
        return range(taken.start // copies, -(-taken.stop // copies))

    def _span(self, digits: tuple[str, ...], outer: range, offset: int) -> range:
        """Rows or columns for a range of their outermost digit, with all of the inner ones."""
        unit = prod(self._size(digit) for digit in digits[1:])
        return range(offset + outer.start * unit, offset + outer.stop * unit)

    def _copies(self, digit: str) -> int:
        return self.copies if digit == "kv_heads" else 1

    def _size(self, digit: str) -> int:
        return dim_size(digit, model=self.model)
