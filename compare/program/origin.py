"""Where a value comes from, through what only hands it on: tuples, copies, fusions, calls, unchanged carries."""

from dataclasses import dataclass

from compare.program.frames import Frame, body_of, branch_operand, branches_of, runs_once
from compare.program.instruction import Instruction
from compare.program.shapes import Array

_HANDS_ON = {"copy", "copy-done", "opt-barrier", "optimization-barrier"}


@dataclass(frozen=True, slots=True)
class Node:
    """One value: what an instruction makes in an activation, or the element of it at `path`."""

    frame: Frame
    item: Instruction
    path: tuple[int, ...] = ()


def origin(node: Node) -> Node:
    """The first value behind `node` that is made and not only handed on.

    A loop's own parameter is where this stops: whoever asks knows whether the loop changes it.
    """
    seen: set[Node] = set()
    while node not in seen:
        seen.add(node)
        before = _before(node)
        if before is None:
            return node
        node = before
    return node


def _before(node: Node) -> Node | None:
    frame, item, path = node.frame, node.item, node.path
    opcode = item.opcode
    if not item.has(path):
        raise item.error(f"it has no element {path}, which is asked for")
    if opcode == "parameter":
        return _handed_in(node)
    if opcode == "get-tuple-element":
        return Node(frame, item.operand(0), (item.integer("index"), *path))
    if opcode == "tuple" and path:
        return Node(frame, item.operand(path[0]), path[1:])
    if opcode in _HANDS_ON:
        return Node(frame, item.operand(0), path)
    if opcode == "copy-start" and path:
        return Node(frame, item.operand(0), path[1:])
    if opcode in ("convert", "bitcast", "reshape") and not path and _same_number(item):
        return Node(frame, item.operand(0))
    if runs_once(item):
        computation = item.called[0]
        return Node(frame.inside(item, computation), computation.root, path)
    if opcode == "while" and path:
        return _left_alone(node)
    return None


def _same_number(item: Instruction) -> bool:
    """Whether a convert, bitcast or reshape of one integer leaves the number as it is."""
    shapes = (item.shape, item.operand(0).shape)
    if not all(isinstance(shape, Array) and shape.elements == 1 and shape.dtype[0] in "su" for shape in shapes):
        return False
    after, before = (shape for shape in shapes if isinstance(shape, Array))
    return after.dtype == before.dtype or int(after.dtype[1:]) >= 32 <= int(before.dtype[1:])


def _handed_in(node: Node) -> Node | None:
    call, outer = node.frame.call, node.frame.outer
    if call is None or outer is None or call.opcode == "while":
        return None
    if call.opcode == "conditional":
        branch = branches_of(call).index(node.frame.computation)
        return Node(outer, branch_operand(call, branch), node.path)
    number = node.item.integer("")
    return Node(outer, call.operand(number), node.path) if number < len(call.operands) else None


def _left_alone(node: Node) -> Node | None:
    """A loop's result that the loop never changes is what it began with."""
    body = node.frame.inside(node.item, body_of(node.item))
    after = origin(Node(body, body.computation.root, node.path))
    if after.frame is body and after.item.opcode == "parameter" and after.path == node.path:
        return Node(node.frame, node.item.operand(0), node.path)
    return None
