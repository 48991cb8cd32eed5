"""Recognize an index computed only from the device's place and constants (arithmetic, table look-ups).

Its place are partition-id, replica-id and, of several slices, the number of its slice.
"""

from compare.hlo.counts.integer_ops import BINARY, UNARY
from compare.hlo.dataflow.call_context import CallContext
from compare.hlo.dataflow.dataflow import Value, step_through
from compare.hlo.text.instruction import Computation, Instruction

_FOLLOWED = {
    *BINARY,
    *UNARY,
    "compare",
    "select",
    "clamp",
    "convert",
    "bitcast",
    "bitcast-convert",
    "reshape",
    "broadcast",
    "transpose",
    "slice",
    "concatenate",
    "dynamic-slice",
    "constant",
    "iota",
}


def depends_on_partition(index: Instruction) -> bool:
    """True if an index depends on the place of the device, and on no data."""
    todo: list[Value] = [(first_call_context(index.computation), index, ())]
    seen = set(todo)
    names_device = False
    while todo:
        value = todo.pop()
        frame, item, _ = value
        before = step_through(value)
        if item.opcode in ("partition-id", "replica-id") or item.target == "SliceId":
            names_device = True
        elif before is None and item.opcode not in _FOLLOWED:
            return False
        made_of = [(frame, operand, ()) for operand in item.operands] if before is None else before
        fresh = [source for source in made_of if source not in seen]
        seen.update(fresh)
        todo += fresh
    return names_device


def first_call_context(computation: Computation) -> CallContext:
    """The call context of a computation through its first caller in the text."""
    if not computation.callers:
        return CallContext(computation)
    call = computation.callers[0]
    return first_call_context(call.computation).inside(call, computation)
