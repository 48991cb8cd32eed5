"""Recognize an index computed only from the device's place and constants (arithmetic, table look-ups).

Its place are partition-id, replica-id and, of several slices, the number of its slice.
"""

from compare.hlo.counts.integer_ops import MOVES, OPERANDS
from compare.hlo.dataflow.dataflow import CallContext, Value, step_through, walk
from compare.hlo.text.instruction import Computation, Instruction

_FOLLOWED = {*OPERANDS, *MOVES, "concatenate", "dynamic-slice", "constant", "iota"}


def depends_on_partition(index: Instruction) -> bool:
    """True if an index depends on the place of the device, and on no data."""
    names_device = False
    for value in walk([(first_call_context(index.computation), index, ())], _made_of):
        item = value[1]
        if item.opcode in ("partition-id", "replica-id") or item.target == "SliceId":
            names_device = True
        elif item.opcode not in _FOLLOWED and step_through(value) is None:
            return False
    return names_device


def _made_of(value: Value) -> list[Value]:
    before = step_through(value)
    return [(value[0], operand, ()) for operand in value[1].operands] if before is None else before


def first_call_context(computation: Computation) -> CallContext:
    """The call context of a computation through its first caller in the text."""
    if not computation.callers:
        return CallContext(computation)
    call = computation.callers[0]
    return first_call_context(call.computation).inside(call, computation)
