"""Map instruction names to collectives: the names under which a profile shows each execution.

A profile has an event for every instruction that the device executes: of a collective that is the instruction itself,
or its start and its done, or the fusion, call or wrapper around it.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.hlo.collective import COLLECTIVE_KINDS, Collective
from compare.hlo.counts.evaluator import Evaluator
from compare.hlo.counts.execution_counts import collective_instructions, count_executions
from compare.hlo.counts.partition_index import first_call_context
from compare.hlo.dataflow.dataflow import step_through, walk
from compare.hlo.devices.groups import DeviceNumbering
from compare.hlo.emission import megascale
from compare.hlo.emission.emission_form import feeds, find_chain_starts, starts_chain
from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.module import Module

_WRAPPED = ("async", "call", "fusion", "custom-call")
_DONE = re.compile(rf" (?:{'|'.join((*COLLECTIVE_KINDS, *_WRAPPED))})-done *\(")
_CONTAINER = re.compile(r" (?:while|conditional|call) *\(")
# `constant.190.clone.5`, `reduce-scatter.5.cloned.1`, and after several passes `all-reduce.5.clone.2..sunk.4`.
_CLONE = re.compile(r"\.+(?:clone|cloned|remat|sunk)\d*(?:\.\d+)?$")


@dataclass(frozen=True, slots=True)
class EventRole:
    """The part that an instruction's event plays in the execution of a collective."""

    row: Collective
    part: str
    """`whole`: it is executed in this instruction.  `start`, `done`: it begins and ends in them; `between`: it does
    neither, and stands between them.  `inside`: it is within one of those, perhaps on another core.  `beside`: it
    computes, while the collective is under way."""


def map_event_names(module: Module, rows: Sequence[Collective]) -> Mapping[str, EventRole]:
    """Map every instruction name that a profile event of a collective may have to its row and part.

    rows: those of `collectives(module, …)`.  Each has at least its own name; a name has one row: of several, the one
    that begins, ends or is executed in it, else the first.
    """
    items = {item.line: item for item in collective_instructions(module)}
    links = _links(module)
    receives = megascale.pair_transfers(items.values())
    roles: dict[str, EventRole] = {}
    later: list[tuple[str, EventRole]] = []
    for row in rows:
        item = items.get(row.line)
        if item is None or item.name != row.name:
            raise HloError(f"the row {row.name!r} is of another program: line {row.line} is not its collective")
        for carried, part in _parts(item, links.get(item, []), receives.get(item)):
            carrier = EventRole(row, part)
            if part in ("whole", "start", "done"):
                roles.setdefault(carried.name, carrier)
            else:
                later.append((carried.name, carrier))
    for name, carrier in later:
        roles.setdefault(name, carrier)
    for done in _far_dones(module, roles):
        start = _start_of(done)
        if start is not None and start.name in roles:
            roles[done.name] = EventRole(roles[start.name].row, "done")
    return roles


def _parts(
    item: Instruction, links: Iterable[Instruction], receive: Instruction | None
) -> Iterator[tuple[Instruction, str]]:
    """Each instruction that executes the collective, with its part; the first of several parts counts."""
    outer, inner = _around(item)
    for call in outer:
        if call.opcode == "send":
            yield from _transfer(call, receive)
        elif call.opcode.endswith("-start"):
            yield call, "start"
            yield from ((end, "done" if end.opcode.endswith("-done") else "between") for end in _ends(call))
        else:
            # The fusion `%async-collective-start = (…) fusion(%copy.122), kind=kCustom` runs the first part alone.
            yield call, "start" if call is not item and starts_chain(item) else "whole"
    for link in links:
        around, within = _around(link)
        yield from ((call, "done" if feeds(link, "AsyncCollectiveDone") else "beside") for call in around)
        inner += within
    for call in inner:
        yield call, "inside"
        yield from ((end, "inside") for end in _ends(call))


def _around(item: Instruction) -> tuple[list[Instruction], list[Instruction]]:
    """The outermost fusions and wrappers around it (or itself), and every instruction inside them."""
    outer: list[Instruction] = []
    inner: dict[Instruction, None] = {}
    todo = [item]
    while todo:
        now = todo.pop()
        wrappers = [call for call in now.computation.callers if _wraps(call)]
        if not wrappers:
            outer.append(now)
        elif now not in inner:
            inner[now] = None
            todo += wrappers
    return list(dict.fromkeys(outer)), list(inner)


def _wraps(call: Instruction) -> bool:
    return call.opcode in ("fusion", "custom-call") or call.opcode.endswith("-start")


def _ends(start: Instruction) -> Iterator[Instruction]:
    """The updates and dones that consume the result of a start."""
    if not start.opcode.endswith(("-start", "-update", "send", "recv")):
        return
    for user in start.users:
        if user.opcode.endswith(("-done", "-update")) and user.operand(0) is start:
            yield user
            yield from _ends(user)


def _transfer(send: Instruction, receive: Instruction | None) -> Iterator[tuple[Instruction, str]]:
    """The parts of a transfer between slices: the send starts it, the receive-done ends it."""
    yield send, "start"
    if receive is not None:
        yield from ((end, "done") for end in _ends(receive))
        yield receive, "between"
    yield from ((end, "between") for end in _ends(send))


def _links(module: Module) -> dict[Instruction, list[Instruction]]:
    """Start of each asynchronous chain -> the instructions that continue it, then the one that ends it."""
    links: dict[Instruction, list[Instruction]] = {}
    if "AsyncCollectiveStart" in module.text:
        values = Evaluator(DeviceNumbering(module.replica_count, module.num_partitions))
        for link, start in find_chain_starts(count_executions(module, values)).items():
            links.setdefault(start, []).append(link)
    return links


def _far_dones(module: Module, known: Container[str]) -> list[Instruction]:
    """The dones whose operand is not the start itself, but a tuple or a loop carry that holds it."""
    lines = dict.fromkeys(module.line_at(match.start()) for match in _DONE.finditer(module.text))
    dones = [owner.at(at) for at in lines if (owner := module.owner(at))]
    return [done for done in dones if done.opcode.endswith("-done") and done.name not in known]


def _start_of(done: Instruction) -> Instruction | None:
    """The nearest start whose result reaches a done; None without one."""
    reached = walk([(first_call_context(done.computation), done.operand(0), ())], step_through)
    return next((item for _, item, _ in reached if item.opcode.endswith("-start")), None)


def container_names(module: Module) -> frozenset[str]:
    """The names of loops, branches and calls, whose events cover those of their bodies."""
    lines = dict.fromkeys(module.line_at(match.start()) for match in _CONTAINER.finditer(module.text))
    items = [owner.at(at) for at in lines if (owner := module.owner(at))]
    return frozenset(item.name for item in items if item.opcode in ("while", "conditional", "call"))


def original_of(name: str, known: Container[str]) -> str | None:
    """The known instruction of this name, else the one that it is a clone of; None without either."""
    return name if name in known else clone_of(name, known)


def clone_of(name: str, known: Container[str]) -> str | None:
    """The known instruction that this name is a clone of; None without one.

    XLA's `HloInstruction::Clone` appends `.clone`, `.clone2`, …, its rematerialization `.remat`, `.remat2`, …, its
    sinking of constants into loops `.sunk`, libtpu's SparseCore calls `.cloned`; the name uniquer may add a number,
    `.clone.1`.  A bare number makes no clone (`all-reduce.1` is no `all-reduce`), nor do `.remat_compressed` and
    `.remat_uncompressed`, which are copies of a result.
    """
    while match := _CLONE.search(name):
        name = name[: match.start()]
        if name in known:
            return name
    return None
