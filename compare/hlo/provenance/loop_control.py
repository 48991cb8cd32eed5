"""Find collectives that control a loop: those that compute counters or predicates of its condition."""

from collections.abc import Callable, Iterable

from compare.hlo.dataflow.call_context import CallContext, body_of, condition_of
from compare.hlo.dataflow.dataflow import Value, find_computed, inputs_of, is_carry
from compare.hlo.provenance.layout_passthrough import trace_sources
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.shapes import Array

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
            todo: list[Value] = [(condition, condition.computation.root, ())]
            seen, paths = set(todo), set()
            while todo:
                value = todo.pop()
                inner, at, path = value
                if inner is condition and at.opcode == "parameter":
                    paths.add(path)
                    continue
                fresh = [source for source in inputs_of(value) if source not in seen]
                seen.update(fresh)
                todo += fresh
            body = _body(loop)
            self._paths[loop] = frozenset(path for path in paths if _is_scalar(body, path) and _changes(body, path))
        return self._paths[loop]


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
    return isinstance(part, Array) and not part.dims and part.dtype[0] in "sup"


def _changes(body: CallContext, path: tuple[int, ...]) -> bool:
    return not is_carry(find_computed((body, body.computation.root, path)), body, path)
