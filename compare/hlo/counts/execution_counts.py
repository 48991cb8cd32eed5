"""Count how often each device executes each collective, from ENTRY down through loops and branches."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compare.hlo.collective import COLLECTIVE_KINDS, Loop
from compare.hlo.counts.evaluator import Evaluator
from compare.hlo.counts.integer_ops import MOST_ELEMENTS, NotUnderstood
from compare.hlo.dataflow.dataflow import ONE_CALL, CallContext, body_of, branches_of, condition_of
from compare.hlo.text.instruction import Computation, Instruction
from compare.hlo.text.module import Module

MOST_EXECUTIONS = 1 << 40
"""Largest credible number of executions in a step; beyond it the count is `unknown`."""

MOST_VISITS = 1 << 17
_LATER = ("-done", "-update")


@dataclass(frozen=True)
class Site:
    """A collective instruction, with its executions summed over all call paths to it."""

    item: Instruction
    frames: tuple[CallContext, ...]
    """The call contexts in which it runs."""
    loops: tuple[Loop, ...]
    """The loops around its first call context, outermost first."""
    device_executions: tuple[int, ...]
    executions_are: str
    in_exact_branch: bool
    """Inside a conditional whose predicate was evaluated per device, so that the count is exact."""


@dataclass(frozen=True, eq=False)
class _CallCount:
    """How often a computation runs in one call context: a mask [devices, iterations …], and whether it is exact."""

    mask: NDArray[np.bool_]
    extents: tuple[int, ...] = ()
    factor: int = 1
    loops: tuple[Loop, ...] = ()
    are: str = "exact"
    in_exact_branch: bool = False

    def of_each_device(self, num_devices: int) -> NDArray[np.int64]:
        """Executions of each device: the mask summed over iterations, without expanding them."""
        repeats = math.prod(extent for extent, size in zip(self.extents, self.mask.shape[1:], strict=True) if size == 1)
        runs = self.mask.reshape(self.mask.shape[0], -1).sum(axis=1, dtype=np.int64) * repeats * self.factor
        return np.broadcast_to(runs, num_devices)


def count_executions(module: Module, values: Evaluator) -> list[Site]:
    """Every collective instruction, in the order in which the schedule reaches it.

    `HloError` where one stands in a computation that nothing calls: what called it is missing.
    """
    items = collective_instructions(module)
    visits: dict[Instruction, list[tuple[CallContext, _CallCount]]] = {}
    wanted = lines_leading_to(module, [item.index for item in items])
    for item in (module.at(at) for lines in wanted.values() for at in lines):
        item.check_attributes()
    module.check_calls()
    always = _CallCount(np.ones((1,), np.bool_))
    for count, (frame, times, item) in enumerate(_visit(CallContext(module.entry), always, wanted, values)):
        if count > MOST_VISITS:
            raise item.error(f"more than {MOST_VISITS} ways of calls lead to collectives; this is one of them")
        visits.setdefault(item, []).append((frame, times))
    for item in items:
        if item not in visits:
            raise item.error(f"a collective in computation {item.computation.name!r}, which nothing that runs calls")
    distinct = {times for ways in visits.values() for _, times in ways}
    executions = {times: times.of_each_device(values.num_devices) for times in distinct}
    return [_site(item, ways, executions) for item, ways in visits.items()]


def _site(
    item: Instruction, ways: list[tuple[CallContext, _CallCount]], executions: dict["_CallCount", NDArray[np.int64]]
) -> Site:
    kinds = {times.are for _, times in ways}
    are = next((kind for kind in ("unknown", "upper-bound", "stated") if kind in kinds), "exact")
    total = sum((executions[times] for _, times in ways[1:]), executions[ways[0][1]])
    return Site(
        item=item,
        frames=tuple(frame for frame, _ in ways),
        loops=ways[0][1].loops,
        device_executions=() if are == "unknown" else tuple(total.tolist()),
        executions_are=are,
        in_exact_branch=any(times.in_exact_branch for _, times in ways),
    )


def collective_instructions(module: Module) -> list[Instruction]:
    """The collectives or their starts, the sends and the receives, in text order.

    `HloError` where one stands outside of all computations, or behind another instruction on its line, and where a kind
    is unknown.
    """
    items = [item for item in module.communication if not item.opcode.endswith(_LATER)]
    for item in items:
        if not is_collective(item):
            raise item.error(f"unknown kind of collective {item.opcode!r}; known are {', '.join(COLLECTIVE_KINDS)}")
    return items


def async_ends(module: Module) -> list[Instruction]:
    """The instructions that end or continue an asynchronous collective, send or receive."""
    return [item for item in module.communication if item.opcode.endswith(_LATER)]


def lines_leading_to(module: Module, starts: Iterable[int]) -> dict[Computation, list[int]]:
    """Computation -> where the lines begin that are to be visited in it: the starts, and calls that lead to one."""
    calls = module.calls  # Read even where there is no start: a computation that is missing could have one.
    wanted: dict[Computation, set[int]] = {}
    todo = list(starts)
    while todo:
        at = todo.pop()
        computation = module.at(at).computation
        if computation not in wanted:
            wanted[computation] = set()
            todo += calls.get(computation.name, ())
        wanted[computation].add(at)
    return {computation: sorted(lines) for computation, lines in wanted.items()}


def _visit(
    frame: CallContext, times: _CallCount, wanted: dict[Computation, list[int]], values: Evaluator
) -> Iterator[tuple[CallContext, _CallCount, Instruction]]:
    for at in wanted.get(frame.computation, ()):
        item = frame.computation.at(at)
        if item.opcode == "while":
            yield from _loop(frame, times, item, wanted, values)
        elif item.opcode == "conditional":
            for branch, taken in _branches(frame, times, item, values):
                yield from _visit(branch, taken, wanted, values)
        elif item.callees and (item.opcode in ONE_CALL or item.opcode.endswith("-start")):
            inner = [computation for computation in item.callees if computation in wanted]
            for computation in inner:
                yield from _visit(frame.inside(item, computation), times, wanted, values)
            if is_collective(item):
                if inner:
                    raise item.error("is a collective, and calls a computation with another")
                yield frame, times, item
        elif is_collective(item):
            yield frame, times, item
        elif not item.opcode.endswith(("-done", "-update")):
            raise item.error(f"a collective stands in a computation that {item.opcode} calls")


def is_collective(item: Instruction) -> bool:
    """True for a collective or its start; false for an update or a done."""
    return item.opcode.removesuffix("-start") in COLLECTIVE_KINDS or item.opcode in ("send", "recv")


def _loop(
    frame: CallContext, times: _CallCount, loop: Instruction, wanted: dict[Computation, list[int]], values: Evaluator
) -> Iterator[tuple[CallContext, _CallCount, Instruction]]:
    """The condition runs once more than the body."""
    if condition_of(loop) is body_of(loop):
        raise loop.error("its condition is its body")
    trips = values.trips.count(frame, loop)
    if trips is not None and times.factor * math.prod(times.extents) * (trips + 1) > MOST_EXECUTIONS:
        trips = None
    stated = (frame, loop) in values.trips.stated and times.are == "exact"
    are = "unknown" if trips is None else "stated" if stated else times.are
    tests = 1 if trips is None else trips + 1
    note = values.trips.notes.get((frame, loop), "")
    around = Loop(name=loop.name, trip_count=None if trips is None else tests, note=note)
    testing = replace(times, factor=times.factor * tests, loops=(*times.loops, around), are=are)
    yield from _visit(frame.inside(loop, condition_of(loop)), testing, wanted, values)
    body = replace(
        times,
        mask=times.mask[..., np.newaxis],
        extents=(*times.extents, 1 if trips is None else trips),
        loops=(*times.loops, Loop(name=loop.name, trip_count=trips, note=note)),
        are=are,
    )
    yield from _visit(frame.inside(loop, body_of(loop)), body, wanted, values)


def _branches(
    frame: CallContext, times: _CallCount, choice: Instruction, values: Evaluator
) -> Iterator[tuple[CallContext, _CallCount]]:
    """Each branch, with the devices and iterations that take it: all of them for an unknown predicate."""
    try:
        taken = values.branch(frame, choice)
        size = math.prod(np.broadcast_shapes(taken.shape, times.mask.shape))
        if size > MOST_ELEMENTS:
            raise NotUnderstood
    except NotUnderstood:
        taken = None
    for number, computation in enumerate(branches_of(choice)):
        inner = frame.inside(choice, computation)
        if taken is None:
            yield inner, replace(times, are="unknown" if times.are == "unknown" else "upper-bound")
        else:
            yield inner, replace(times, mask=times.mask & (taken == number), in_exact_branch=True)
