"""What a collective or messages cost on a machine: phases over its dims, chunks behind each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compare.timing.errors import TimingError
from compare.timing.network.machines.collective import Collective, Message
from compare.timing.network.machines.machine import (
    ALL_GATHER,
    ALL_REDUCE,
    LOCAL_BW_AWARE,
    REDUCE_SCATTER,
    Algorithm,
    Algorithms,
    Dim,
    Machine,
)
from compare.timing.network.native.loads import route_links
from compare.timing.network.native.steps import Step, list_steps
from compare.timing.network.queues import Visit, serve_chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One phase of a collective: its dim, and its time."""

    kind: str
    dim: int
    algorithm: str
    num_bytes: float
    """That a rank brings into it."""
    steps: int
    ns: float


def time_collective(machine: Machine, collective: Collective) -> float:
    """In ns, from the call to the last rank's end.

    Chunks go through the dims one behind another; a dim has one chunk at a time.  Raises `TimingError` for what has no
    closed form.
    """
    collective.check(machine)
    if collective.num_bytes < 1:
        raise TimingError("bytes: a collective has 1 or more")
    if machine.active_chunks != 1 or machine.queues != 1:
        raise TimingError("several chunks at once in a dim have no closed form; leave out --active and --queues")
    passes = list_passes(machine, collective, collective.num_bytes / machine.chunks)
    visits = [Visit(each.dim, each.ns) for each in passes]
    return machine.launch_ns + serve_chunks([visits] * machine.chunks, 1)


def list_passes(machine: Machine, collective: Collective, num_bytes: float) -> list[Pass]:
    """The phases of one chunk of so many bytes."""
    machine = keep_dims(machine, collective.group)
    algorithms = machine.algorithms.of(collective.kind)
    if algorithms[-1].through_all:
        raise TimingError(f"{algorithms[-1].name} has no closed form; write {algorithms[-1].in_one_dim} for each dim")
    last = len(machine.dims) - 1
    order = [(collective.kind, dim) for dim in range(last + 1)]
    if collective.kind == ALL_GATHER:
        order.reverse()
    elif collective.kind == ALL_REDUCE and machine.multi == LOCAL_BW_AWARE:
        order = [*((REDUCE_SCATTER, dim) for dim in range(last)), (ALL_REDUCE, last),
                 *((ALL_GATHER, dim) for dim in range(last - 1, -1, -1))]  # fmt: skip
    passes = []
    for kind, index in order:
        dim, algorithm = machine.dims[index], algorithms[index]
        steps = list_steps(algorithm, kind, num_bytes, dim)
        passes.append(
            Pass(
                kind=kind, dim=index, algorithm=algorithm.text, num_bytes=num_bytes,
                steps=sum(step.count for step in steps), ns=_sum_steps(steps, dim, machine),
            )
        )  # fmt: skip
        num_bytes = {REDUCE_SCATTER: num_bytes / dim.size, ALL_GATHER: num_bytes * dim.size}.get(kind, num_bytes)
    return passes


def _sum_steps(steps: Sequence[Step], dim: Dim, machine: Machine) -> float:
    """With the endpoint delay before the first step and after each."""
    memory = machine.memory_bytes_per_ns
    moving = sum(step.count * step.load.ns(dim) for step in steps)
    reducing = sum(step.count * 3 * step.reduced_bytes / memory for step in steps) if memory else 0.0
    return moving + reducing + (sum(step.count for step in steps) + 1) * (machine.endpoint_ns or 0)


def keep_dims(machine: Machine, group: tuple[int, ...] | None) -> Machine:
    """The machine of a group: the dims in which its ranks differ, which it has to fill."""
    if group is None:
        return machine
    places = [machine.coordinates(rank) for rank in group]
    kept = [index for index in range(len(machine.dims)) if len({place[index] for place in places}) > 1]
    size = 1
    for index in kept:
        size *= machine.dims[index].size
    if size != len(group):
        raise TimingError(
            f"group: {len(group)} ranks that fill no dims of this machine; there are whole dims of "
            f"{', '.join(str(dim.size) for dim in machine.dims)} ranks"
        )

    def keep(algorithms: tuple[Algorithm, ...]) -> tuple[Algorithm, ...]:
        return tuple(algorithms[index] for index in kept) if len(algorithms) == len(machine.dims) else algorithms

    by_kind = machine.algorithms
    return replace(
        machine,
        dims=tuple(machine.dims[index] for index in kept),
        algorithms=Algorithms(
            all_reduce=keep(by_kind.all_reduce),
            all_gather=keep(by_kind.all_gather),
            reduce_scatter=keep(by_kind.reduce_scatter),
            all_to_all=keep(by_kind.all_to_all),
        ),
    )


def time_messages(machine: Machine, messages: Sequence[Message]) -> list[float]:
    """When each arrives, in ns, if all are sent at once.

    Each goes through the dims in order, and waits for the busiest link on its way, which carries everybody's bytes.
    """
    carried: dict[tuple[int, tuple[int, ...], int, int], float] = {}
    ways = []
    for message in messages:
        message.check(machine)
        here, there = list(machine.coordinates(message.source)), machine.coordinates(message.target)
        way = []
        for index, dim in enumerate(machine.dims):
            for link in route_links(dim, here[index], there[index]):
                line = (index, (*here[:index], *here[index + 1 :]), *link)
                carried[line] = carried.get(line, 0.0) + message.num_bytes
                way.append(line)
            here[index] = there[index]
        ways.append(way)
    return [
        machine.launch_ns
        + sum(machine.dims[line[0]].latency_ns for line in way)
        + max(carried[line] / machine.dims[line[0]].bytes_per_ns for line in way)
        for way in ways
    ]
