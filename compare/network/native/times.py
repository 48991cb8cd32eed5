"""What a collective costs on a machine: phases over its dims, chunks behind each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from compare.network.algorithms import Step, list_phases, list_steps
from compare.network.machines.collective import Collective
from compare.network.machines.kinds import GREEDY
from compare.network.machines.machine import Algorithm, Dim, Machine
from compare.network.native.loads import measure_step
from compare.network.native.orders import Order, list_orders
from compare.network.queues import Visit, serve_chunks
from compare.timeline.errors import TimingError

_MOST_RANKS = 8
"""That a message lists of a group."""


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
    return machine.launch_ns + _serve(list_chunks(machine, collective))


def _serve(chunks: Sequence[Sequence[Pass]]) -> float:
    visits = {id(passes): [Visit(each.dim, each.ns) for each in passes] for passes in chunks}
    return serve_chunks([visits[id(passes)] for passes in chunks])


def list_chunks(machine: Machine, collective: Collective) -> list[list[Pass]]:
    """The phases of each chunk.

    `greedy`: the first of the schedules in `orders` that ends earliest.  Themis (Rashidi et al., "Themis: a network
    bandwidth-aware collective scheduling policy for distributed training of DL models", ISCA 2022) lets each chunk
    begin in the dim that is least loaded; by that rule a faster link can lengthen a collective.
    """
    num_bytes = collective.num_bytes / machine.chunks
    if machine.multi != GREEDY:
        return [list_passes(machine, collective, num_bytes)] * machine.chunks
    passes: dict[Order, list[Pass]] = {}
    best, least = None, inf
    for schedule in list_orders(len(keep_dims(machine, collective.group).dims), machine.chunks):
        for order in schedule:
            if order not in passes:
                passes[order] = list_passes(machine, collective, num_bytes, order=order)
        chunks = [passes[order] for order in schedule]
        ns = _serve(chunks)
        if ns < least:
            best, least = chunks, ns
    assert best is not None
    return best


def list_passes(
    machine: Machine, collective: Collective, num_bytes: float, *, order: Sequence[int] | None = None
) -> list[Pass]:
    """The phases of one chunk of so many bytes.  order: of the dims; by default as they stand."""
    machine = keep_dims(machine, collective.group)
    algorithms = machine.algorithms.of(collective.kind)
    if algorithms[-1].through_all:
        raise TimingError(f"{algorithms[-1].name} has no closed form; write {algorithms[-1].in_one_dim} for each dim")
    passes = []
    for kind, index, share in list_phases(machine, collective.kind, order or range(len(machine.dims))):
        dim, algorithm = machine.dims[index], algorithms[index]
        steps = list_steps(algorithm, kind, dim.size)
        passes.append(
            Pass(
                kind=kind,
                dim=index,
                algorithm=algorithm.text,
                num_bytes=share * num_bytes,
                steps=sum(step.count for step in steps),
                ns=_sum_steps(steps, share * num_bytes, dim, machine),
            )
        )
    return passes


def _sum_steps(steps: Sequence[Step], num_bytes: float, dim: Dim, machine: Machine) -> float:
    """`hops × latency + bytes on the busiest link ÷ bandwidth` of each step (cut-through: a message pays its bytes
    once), two reads and a write for what it reduces, and the endpoint delay before the first step and after each."""
    endpoint, memory = machine.endpoint_ns or 0, machine.memory_bytes_per_ns
    total = float(endpoint)
    for step in steps:
        hops, load = measure_step(step, dim)
        reducing = 3 * step.reduced * num_bytes / memory if memory else 0.0
        total += step.count * (hops * dim.latency_ns + load * num_bytes / dim.bytes_per_ns + reducing + endpoint)
    return total


def keep_dims(machine: Machine, group: tuple[int, ...] | None) -> Machine:
    """The machine of a group: the dims in which its ranks differ, which it has to fill."""
    if group is None:
        return machine
    kept = machine.list_dims(group)
    if not machine.is_filled(group):
        raise TimingError(
            f"group: {len(group)} ranks that fill no dims of this machine; with rank {group[0]} a group is "
            f"{_list_groups(machine, group[0])}"
        )

    def keep(algorithms: tuple[Algorithm, ...]) -> tuple[Algorithm, ...]:
        return tuple(algorithms[index] for index in kept) if len(algorithms) == len(machine.dims) else algorithms

    dims = tuple(machine.dims[index] for index in kept)
    return replace(machine, dims=dims, algorithms=machine.algorithms.change(keep))


def _list_groups(machine: Machine, rank: int) -> str:
    """The groups of a rank: `0,1 (dim 0), 0,2,4,6 (dim 1), or all ranks of several dims`."""
    groups, stride = [], 1
    for index, dim in enumerate(machine.dims):
        first = rank - machine.coordinates(rank)[index] * stride
        ranks = [str(first + place * stride) for place in range(dim.size)]
        words = ",".join(ranks if len(ranks) <= _MOST_RANKS else [*ranks[:3], "…", ranks[-1]])
        groups.append(f"{words} (dim {index})")
        stride *= dim.size
    return ", ".join(groups) + ", or all ranks of several dims" * (len(groups) > 1)
