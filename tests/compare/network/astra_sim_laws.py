"""ASTRA-sim's cycles as closed forms: one function an algorithm, held against the replay and against its own runs.

`hop(m, d)` is a message of m bytes over a distance of d ranks, `e` the endpoint delay, `P(m)` a reduction.  Quotients
are whole numbers of bytes, as in its code.
"""

from dataclasses import dataclass

from compare.network.astra_sim.exchange import Costs
from compare.network.astra_sim.phases import Phase, endpoint_ticks, find_levels, plan_chunks
from compare.network.astra_sim.wires import message_ticks
from compare.network.machines.collective import Collective
from compare.network.machines.machine import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    DIRECT,
    DOUBLE_BINARY_TREE,
    HALVING_DOUBLING,
    REDUCE_SCATTER,
    RING,
    SWITCH,
    Dim,
    Machine,
)
from compare.network.queues import Visit, serve_chunks
from compare.timeline.errors import TimingError

LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Wire:
    """One dim, and what its ranks do with a message."""

    dim: Dim
    costs: Costs
    aware: bool = False
    """Each link on the way carries the whole message before the next one starts."""

    def hop(self, num_bytes: int, distance: int) -> int:
        """`floor(hops × latency + bytes ÷ bandwidth)`, aware `hops × floor(latency + bytes ÷ bandwidth)`."""
        hops = self.dim.hops(0, distance)
        if self.aware:
            return hops * message_ticks(self.dim, 1, num_bytes)
        return message_ticks(self.dim, hops, num_bytes)


def ring_ticks(kind: str, num_bytes: int, wire: Wire) -> int:
    """`s·hop(S/n, 1) + r·P(S/n) + (s+1)·e`.

    All-reduce s = 2(n-1), r = n-1; reduce-scatter s = r = n-1; all-gather, of whole shards, s = n-1, r = 0; all-to-all,
    passed on from rank to rank, s = n(n-1)/2, r = 0.
    """
    size = wire.dim.size
    steps = {ALL_REDUCE: 2 * (size - 1), ALL_TO_ALL: size * (size - 1) // 2}.get(kind, size - 1)
    reductions = size - 1 if kind in (ALL_REDUCE, REDUCE_SCATTER) else 0
    share = num_bytes if kind == ALL_GATHER else num_bytes // size
    return steps * wire.hop(share, 1) + reductions * wire.costs.reduction(share) + (steps + 1) * wire.costs.endpoint


def direct_ticks(kind: str, num_bytes: int, wire: Wire, *, window: int | None = None) -> int:
    """`R·round + p·P(m) + (R+1)·e`.

    R = ceil((n-1)/W) rounds, an all-reduce twice as many; p of them reduce, every second one, and of an all-reduce
    every fourth.

    A round is `hop(m, floor(n/2))`, as long as the last message of an all-reduce comes later than `P(m) + e` after
    the one before; aware, with all messages at once, `(g-2)·floor(m/B) + 2·floor(latency + m/B)` with g = h(h+1)/2, h
    = floor(n/2), messages over the busiest link of a ring, and g = n over a switch.
    """
    size, others = wire.dim.size, wire.dim.size - 1
    width = others if window is None else min(window, others)
    if width < others and (wire.aware or wire.dim.kind == RING):
        raise TimingError("direct with a window has a law where all distances are alike and no link is shared")
    share = num_bytes if kind == ALL_GATHER else num_bytes // size
    rounds = -(-others // width) * (2 if kind == ALL_REDUCE else 1)
    every = {ALL_REDUCE: 4, REDUCE_SCATTER: 2}.get(kind)
    reductions = len(range(1, rounds + 1, every)) if every else 0
    half = size // 2
    over_busiest = {RING: half * (half + 1) // 2, SWITCH: size}.get(wire.dim.kind, 1) if wire.aware else 1
    sending = int(share / wire.dim.bytes_per_ns)
    if over_busiest > 1:
        last_apart = sending
        round_ticks = (over_busiest - 2) * sending + 2 * message_ticks(wire.dim, 1, share)
    else:
        far = wire.dim.kind == RING and half > 1
        last_apart = wire.hop(share, half) - wire.hop(share, half - 1) if far else LARGEST
        round_ticks = wire.hop(share, half)
    if kind == ALL_REDUCE and wire.costs.endpoint + wire.costs.reduction(share) >= last_apart:
        raise TimingError("a direct all-reduce has a law where its last message comes after the others are reduced")
    return rounds * round_ticks + reductions * wire.costs.reduction(share) + (rounds + 1) * wire.costs.endpoint


def halving_doubling_ticks(kind: str, num_bytes: int, wire: Wire) -> int:
    """Reduce-scatter: `Σ_{k=1..L} hop(S/2^k, 2^(k-1)) + Σ_{k=2..L} P(S/2^k) + (L+1)·e`, n = 2^L.

    The last reduction is not charged.  All-gather: `Σ_{k=0..L-1} hop(2^k·S, n/2^(k+1)) + (L+1)·e`.  All-reduce: both,
    with one end, and the doubling starts from twice the half of what is left.
    """
    levels = wire.dim.size.bit_length() - 1
    up = [(num_bytes >> level, 1 << level - 1) for level in range(1, levels + 1)]
    reduced = sum(wire.costs.reduction(share) for share, _ in up[1:]) if kind != ALL_GATHER else 0
    left = num_bytes if kind == ALL_GATHER else num_bytes >> levels + 1 << 1
    down = [(left << level, wire.dim.size >> level + 1) for level in range(levels)]
    steps = {ALL_REDUCE: up + down, ALL_GATHER: down}.get(kind, up)
    return sum(wire.hop(*step) for step in steps) + reduced + (len(steps) + 1) * wire.costs.endpoint


def double_binary_tree_ticks(num_bytes: int, wire: Wire) -> int:
    """`2·Σ_{k=0..L-1} hop(S, 2^k) + (2L-1)·P(S) + (2L+1)·e`, n = 2^L, for every kind.

    A chunk goes up one tree, whole, and down again.  Aware, on a switch, two children share the way to their parent:
    `+ 2(L-1)·floor(S/B)`.
    """
    levels = wire.dim.size.bit_length() - 1
    hops = 2 * sum(wire.hop(num_bytes, 1 << level) for level in range(levels))
    shared = int(num_bytes / wire.dim.bytes_per_ns) if wire.aware and wire.dim.kind == SWITCH else 0
    return (
        hops
        + 2 * (levels - 1) * shared
        + (2 * levels - 1) * wire.costs.reduction(num_bytes)
        + (2 * levels + 1) * wire.costs.endpoint
    )


def phase_ticks(phase: Phase, wire: Wire) -> int:
    """Of one phase, by the law of its algorithm."""
    name = phase.algorithm.name
    if name == DIRECT:
        return direct_ticks(phase.kind, phase.num_bytes, wire, window=phase.algorithm.window)
    if name == HALVING_DOUBLING:
        return halving_doubling_ticks(phase.kind, phase.num_bytes, wire)
    if name == DOUBLE_BINARY_TREE:
        return double_binary_tree_ticks(phase.num_bytes, wire)
    if name == RING:
        return ring_ticks(phase.kind, phase.num_bytes, wire)
    raise TimingError(f"no law for {name}")


def collective_ticks(machine: Machine, collective: Collective) -> int:
    """Over all ranks, without contention: the phases of each chunk, through queues of `ceil(active ÷ queues)` slots."""
    if any(level.listed or level.algorithm.through_all for level in find_levels(machine, collective)):
        raise TimingError("a law is over whole dims")
    costs = Costs(endpoint_ticks(machine), machine.memory_bytes_per_ns)
    plan = plan_chunks(machine, collective)
    trees = any(phase.algorithm.name == DOUBLE_BINARY_TREE for phase in plan[0])
    if trees and (len(plan) > 1 or len(plan[0]) > 1):
        raise TimingError("a tree has a law where it stands alone: its ranks end at different ticks")
    chunks = [
        [Visit(phase.queue, phase_ticks(phase, Wire(machine.dims[phase.level], costs))) for phase in phases]
        for phases in plan
    ]
    return int(serve_chunks(chunks, machine.slots))
