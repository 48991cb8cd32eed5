"""What the result of a collective goes into, up to the next product or collective: a local sum, its scope's end."""

from collections.abc import Callable, Collection, Iterable, Iterator

from compare.hlo.counts.execution_counts import is_collective
from compare.hlo.dataflow.dataflow import Value, levels
from compare.hlo.emission.emission_form import reducer_of
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.metadata import SourceMetadata
from compare.hlo.text.shapes import Array

PRODUCTS = ("dot", "convolution")
_SAME_NUMBERS = frozenset((
    "add", "async-done", "bitcast", "collective-permute-done", "convert", "copy", "copy-done", "copy-start",
    "dynamic-slice", "fusion", "get-tuple-element", "opt-barrier", "parameter", "reshape", "slice", "transpose",
    "tuple",
))  # fmt: skip
"""Opcodes between a part and the sum that it is added to."""
MOST_VALUES = 200
"""How many values are searched: what is further is another part of the program."""


class ResultUse:
    """Forward walks in one module.

    used_by: a step to the consumers of a value; row_of: the row that an instruction is a part of.
    """

    def __init__(
        self,
        sources: SourceMetadata,
        *,
        used_by: Callable[[Value], Iterator[Value]],
        row_of: Callable[[Instruction], Instruction],
    ):
        self._sources, self._used_by, self._row_of = sources, used_by, row_of

    def added_up(self, starts: Iterable[Value], *, parts: int) -> bool:
        """Whether the result is added up where it comes, into an array of one member's size.

        parts: how many members' the result has.
        """
        starts = list(starts)
        sizes = {_elements(item.shape, path) for _, item, path in starts}
        for level in self._levels(starts):
            for _, item, _ in level:
                if _adds(item) and _elements(item.shape, ()) * parts in sizes:
                    return True
        return False

    def added_to_another(self, starts: Iterable[Value], scope: str, *, parts: int) -> bool:
        """Whether a part of the result, laid out anew at most, is added to an array of its size in the same scope.

        parts: how many the result has.  What is added outside of the scope is a residual.
        """
        starts = list(starts)
        sizes = {_elements(item.shape, path) for _, item, path in starts}
        for level in self._levels(starts, through=_SAME_NUMBERS):
            for _, item, _ in level:
                is_sum = item.opcode == "add" and _elements(item.shape, ()) * parts in sizes
                # What a hop brings is added to the next partial sum in the scope of that sum; in another scope an
                # addition is the residual, `add(s, p)` in `norm`, of which the permute moves a part.
                if is_sum and not self._is_outside(item, scope):
                    return True
        return False

    def steps_to_end(self, starts: Iterable[Value], scope: str) -> int | None:
        """How many steps the result is from an operation of another part of the program; None if none is found.

        No product and no other collective stands between: what goes into a product is not yet its scope's output.
        """
        for steps, level in enumerate(self._levels(list(starts))):
            if steps and any(self._is_outside(item, scope) for _, item, _ in level):
                return steps
        return None

    def _is_outside(self, item: Instruction, scope: str) -> bool:
        return self._sources.path(item) is not None and self._sources.scope(item) != scope

    def _levels(self, starts: list[Value], *, through: Collection[str] = ()) -> Iterator[list[Value]]:
        """Breadth first, past no product and no collective but the rest of its own; through these opcodes alone."""
        own = {self._row_of(item) for _, item, _ in starts}

        def step(value: Value) -> Iterator[Value]:
            for after in self._used_by(value):
                if self._goes_on(after[1], own) and (not through or after[1].opcode in through):
                    yield after

        return levels(starts, step, most=MOST_VALUES)

    def _goes_on(self, item: Instruction, own: set[Instruction]) -> bool:
        if is_collective(item):
            return self._row_of(item) in own
        return item.opcode not in PRODUCTS


def _adds(item: Instruction) -> bool:
    """Whether it adds parts up: a reduction, or an addition of two slices."""
    if item.opcode == "reduce":
        return reducer_of(item) == "add"
    # Where XLA takes the parts apart, their sum is of slices: `add(q0, q1)`, `q0 = f32[1,8,8]{2,1,0} slice(g)`.  An
    # addition of one slice and something else is a residual.
    return item.opcode == "add" and all(_is_slice(operand) for operand in item.operands)


def _is_slice(item: Instruction) -> bool:
    while item.opcode in ("reshape", "bitcast", "copy", "convert", "add"):
        if item.opcode == "add":
            return all(map(_is_slice, item.operands))
        item = item.operand(0)
    return item.opcode in ("slice", "dynamic-slice")


def _elements(shape: object, path: tuple[int, ...]) -> int:
    for index in path:
        shape = shape[index] if isinstance(shape, tuple) else shape
    return shape.elements if isinstance(shape, Array) else 0
