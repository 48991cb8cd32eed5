"""Equality with ASTRA-sim, to the cycle; and that each rule is needed for it."""

import pytest

from compare.network.astra_sim import exchange, phases, rank, replay, scripts, wires
from compare.network.astra_sim.replay import count_cycles, time_messages
from compare.network.machines.collective import Collective, Message
from compare.network.machines.kinds import RING, SWITCH
from compare.network.machines.machine import Algorithm, Algorithms, Dim, Machine
from compare.timeline.errors import TimingError
from tests.compare.network.astra_sim_runs import read_runs

MIB = 1 << 20


@pytest.mark.parametrize("run", read_runs(), ids=lambda run: run.name)
def test_the_replay_ends_at_the_cycle_of_the_real_program(run):
    ends = count_cycles(run.machine, run.collective, aware=run.aware)
    assert (max(ends), min(ends)) == (run.last, run.first)


def machine_of(kind, *sizes):
    dims = tuple(Dim(kind=kind, size=size, bytes_per_ns=90 * 2**30 / 1e9, latency_ns=1000) for size in sizes)
    algorithms = Algorithms.alike((Algorithm(),) * len(dims))
    return Machine(dims=dims, algorithms=algorithms, memory_bytes_per_ns=2765.0, endpoint_ns=10)


SHIFT = [tuple((rank, (rank + distance) % 8, MIB) for rank in range(8)) for distance in range(5)]
MESSAGES = [
    # (dims, messages, cycles congestion-unaware, congestion-aware); the real program's, at the commits of astra_sim.csv
    ((RING, 8), [(0, 4, MIB)], [14850], [47400]),
    ((RING, 8), [(0, 4, MIB), (1, 5, MIB), (2, 6, MIB), (3, 7, MIB)], [14850] * 4, [47400] * 4),
    ((RING, 8), SHIFT[1], [11850] * 8, [11850] * 8),
    ((RING, 8), SHIFT[2], [12850] * 8, [23700] * 8),
    ((RING, 8), SHIFT[3], [13850] * 8, [35550] * 8),
    ((RING, 8), SHIFT[4], [14850] * 8, [47400] * 8),
    ((RING, 8), [(0, 1, 4 * MIB), (7, 1, MIB)], [44402, 12850], [44402, 55252]),
    ((RING, 8), [(0, 2, 2 * MIB), (1, 2, 4 * MIB)], [23701, 44402], [66103, 44402]),
    (
        (RING, 8),
        [(0, 4, MIB), (1, 4, MIB), (2, 4, MIB), (3, 4, MIB)],
        [14850, 13850, 12850, 11850],
        [47400, 35550, 23700, 11850],
    ),
    ((SWITCH, 8), [(0, 2, MIB), (1, 2, MIB)], [12850, 12850], [23700, 34550]),
    ((SWITCH, 4), [(0, 3, MIB), (1, 3, MIB), (2, 3, MIB)], [12850] * 3, [23700, 34550, 45400]),
    ((SWITCH, 8), [(0, 1, MIB), (0, 2, MIB), (0, 3, MIB)], [12850, 25700, 38550], [23700, 47400, 71100]),
    ((RING, 4, 2), [(0, 6, MIB)], [12850], None),
    ((RING, 4, 4, 4), [(0, 42, MIB)], [12850], None),
]


@pytest.mark.parametrize(("dims", "pairs", "free", "shared"), MESSAGES)
def test_messages_arrive_at_the_cycle_of_the_real_program(dims, pairs, free, shared):
    machine = machine_of(*dims)
    messages = [Message(*pair) for pair in pairs]
    assert list(time_messages(machine, messages)) == free
    if shared:
        assert list(time_messages(machine, messages, aware=True)) == shared
    else:
        with pytest.raises(TimingError, match="congestion-aware ASTRA-sim has one dim"):
            time_messages(machine, messages, aware=True)


def test_a_permute_of_the_example_run_in_ticks_of_1_ps():
    # v5e: a link of 37.303e9 bytes/s and a hop of 465.67 ns; ASTRA-sim printed 0.90 and 450.22 us.
    dims = tuple(Dim(kind=RING, size=size, bytes_per_ns=0.037303, latency_ns=465_670) for size in (4, 2))
    machine = Machine(dims=dims, algorithms=Algorithms.alike((Algorithm(),) * 2), endpoint_ns=10)
    for num_bytes, microseconds in ((16_384, 0.90), (16_777_216, 450.22)):
        (tick,) = time_messages(machine, [Message(0, 4, num_bytes)])
        assert round(tick / 1e6, 2) == microseconds


def test_all_ranks_in_any_order_go_through_the_dims():
    collective = Collective(kind="all-reduce", num_bytes=MIB, group=(7, 6, 5, 4, 3, 2, 1, 0))
    assert set(count_cycles(machine_of(RING, 4, 2), collective)) == {28081}


def test_a_collective_of_no_bytes_runs_as_a_byte_a_rank():
    machine = machine_of(RING, 8)
    assert count_cycles(machine, Collective(kind="all-reduce", num_bytes=0)) == count_cycles(
        machine, Collective(kind="all-reduce", num_bytes=8)
    )


def simulate(run):
    """Cycles of the last and of the first rank; `None` where the replay refuses."""
    try:
        ends = count_cycles(run.machine, run.collective, aware=run.aware)
    except TimingError:
        return None
    return max(ends), min(ends)


def differing_runs():
    """Rows at which the replay no longer ends where the real program does, one by one."""
    return (run for run in read_runs() if simulate(run) != (run.last, run.first))


def one_hop(dim, hops, num_bytes):
    return int(min(hops, 1) * dim.latency_ns + num_bytes / dim.bytes_per_ns)


def round_up(dim, hops, num_bytes):
    return -int(-(hops * dim.latency_ns + num_bytes / dim.bytes_per_ns) // 1)


def never_reduce(self, number):
    return False


def reduce_every_answer(self, number):
    return number % (self.width + self.answers) >= self.width and self.kind in ("all-reduce", "reduce-scatter")


def one_pass(self, num_bytes):
    return int(num_bytes / self.memory_bytes_per_ns)


def round_bytes_up(num_bytes, share, size):
    return -(-num_bytes * round(share * size) // size)


def exact_chunks(machine, collective):
    return machine.chunks, collective.num_bytes // machine.chunks


def keep_size(phase, size):
    return phase.num_bytes


def first_half(self):
    return self.first_half()


def last_come(self, queue):
    chunks = self._queues[queue]
    while self._running[queue] < min(self._slots, len(chunks)):
        chunks.insert(self._running[queue], chunks.pop())
        chunk = chunks[self._running[queue]]
        self._running[queue] += 1
        chunk.phase_run.start()


def one_slot(self):
    return max(1, self.active_chunks // self.queues)


RULES = [
    (wires, "message_ticks", one_hop),
    (wires, "message_ticks", round_up),
    (exchange.Script, "reduces", never_reduce),
    (exchange.Script, "reduces", reduce_every_answer),
    (exchange.Costs, "reduction", one_pass),
    (scripts, "_cut_bytes", round_bytes_up),
    (phases, "cut_chunks", exact_chunks),
    (phases, "leave_bytes", keep_size),
    (phases._Queues, "second_half", first_half),
    (phases._Queues, "any", first_half),
    (rank.Rank, "_fill", last_come),
    (Machine, "slots", property(one_slot)),
    (replay, "_LISTED_ENDPOINT", 11),
]


@pytest.mark.parametrize(
    ("place", "name", "wrong"), RULES, ids=[f"{place.__name__}-{name}" for place, name, _ in RULES]
)
def test_no_rule_can_be_changed_without_a_row_that_differs(place, name, wrong, monkeypatch):
    monkeypatch.setattr(place, name, wrong)
    assert any(differing_runs())


@pytest.mark.parametrize(
    ("kind", "size", "algorithm", "says"),
    [
        ("all-reduce", 6, "halving-doubling", "power of two"),
        ("all-reduce", 6, "double-binary-tree", "power of two"),
        ("all-to-all", 8, "halving-doubling", "no all-to-all"),
        ("all-reduce", 8, "two-way-ring", "rings go one way"),
    ],
)
def test_what_aborts_or_never_ends_there_is_refused(kind, size, algorithm, says):
    dims = (Dim(kind=RING, size=size, bytes_per_ns=90, latency_ns=1000),)
    machine = Machine(dims=dims, algorithms=Algorithms.alike((Algorithm(algorithm),)), endpoint_ns=10)
    with pytest.raises(TimingError, match=says):
        count_cycles(machine, Collective(kind=kind, num_bytes=MIB))
