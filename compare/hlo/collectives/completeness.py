"""Whether a text is complete: a line that was lost or displaced could be a collective, or the call of one.

A line that is missing shows by its name, which others use, and something asynchronous by its end, which has no start.
This needs the complete text, of which the rows need a part.
"""

import re
from collections.abc import Set

from compare.hlo.counts.execution_counts import async_ends
from compare.hlo.counts.partition_index import first_call_context
from compare.hlo.dataflow.dataflow import Value, step_through, walk
from compare.hlo.text.computation_spans import short
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Computation, Instruction
from compare.hlo.text.module import Module

_GROUPS = ("replica_groups", "source_target_pairs")
_ROOT = re.compile(r"ROOT +%?[\w.\-]++ = ")
_USED = re.compile(r"%([A-Za-z0-9_.\-]++)(?! =)")


def check_completeness(module: Module) -> None:
    """Raise `HloError`, naming a line, where a name is used that nothing defines, and where an end has no beginning."""
    module.check_calls()  # first: what follows goes up the calls
    for root in _ROOT.finditer(module.text):
        at = module.line_at(root.start())
        if (before := module.text[at : root.start()].strip()) and not before.startswith("//"):
            raise HloError(f"line {module.number(at)}: two instructions on one line: {short(module.line_text(at))}")
    defined = module.computations.keys()
    for computation in module.computations.values():
        _check_names(computation, defined)
    for item in async_ends(module):
        _check_end(item)
    _check_groups(module)


def _check_groups(module: Module) -> None:
    """Raise `HloError` where groups of devices stand on an instruction that is no collective: its opcode is damaged."""
    communication = {item.index for item in module.communication}
    for name in _GROUPS:
        for match in re.finditer(f"{name}=", module.text):
            at = module.line_at(match.start())
            if at not in communication and module.owner(at) and name in (item := module.at(at)).attributes:
                raise item.error(f"{item.opcode} is no collective, and has {name}")


def _check_names(computation: Computation, defined: Set[str]) -> None:
    """Check that every operand is defined: in one pass where names have their `%`, else line by line."""
    if computation.names is not None:
        unknown = set(_USED.findall(computation.module.text, computation.begin, computation.end))
        unknown.difference_update(computation.names)
        if not unknown or unknown <= defined:
            return
    for item in computation:
        _ = item.operands


def _check_end(end: Instruction) -> None:
    """Check that an end or update of an asynchronous instruction leads to a start of its kind."""
    stem = end.opcode.removesuffix("-done").removesuffix("-update")
    wanted = stem if stem in ("send", "recv") else f"{stem}-start"
    reached = walk([(first_call_context(end.computation), end.operand(0), ())], _before)
    if all(item.opcode != wanted for _, item, _ in reached):
        raise end.error(f"what it ends was begun by no {wanted}")


def _before(value: Value) -> list[Value] | None:
    frame, item, _ = value
    return [(frame, item.operand(0), ())] if item.opcode.endswith("-update") else step_through(value)
