"""One collective, or messages between pairs of ranks, in ASTRA-sim's ticks: its rules replayed, not its code run.

The rules are those of ASTRA-sim 518bd513 with astra-network-analytical 599a047; docs/network.md lists them.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from functools import partial

from compare.network.algorithms import Branch, grow_tree
from compare.network.astra_sim.clock import Action, Clock, RankClock
from compare.network.astra_sim.exchange import Costs, Endpoint, Exchange, RankPosition, Script, Transport
from compare.network.astra_sim.phases import Level, Phase, endpoint_ticks, find_levels, plan_chunks
from compare.network.astra_sim.rank import Chunk, PhaseRun, Rank
from compare.network.astra_sim.scripts import make_script
from compare.network.astra_sim.tree_all_reduce import TreeAllReduce
from compare.network.astra_sim.wires import Mailbox, Mirror, lay_wires
from compare.network.machines.collective import Collective, Message, check_messages
from compare.network.machines.kinds import DOUBLE_BINARY_TREE, GREEDY, KINDS, LINE, RING
from compare.network.machines.machine import Machine
from compare.timeline.errors import TimingError
from meshes.process.log import log

MOST_MESSAGES = 10_000_000
"""Of one replay, each link of a shared ring counted: about half a minute."""
MANY_MESSAGES = 500_000
"""More take seconds, which a line says beforehand."""

_LISTED_ENDPOINT = 10
"""Ticks; a ring over listed ranks does not know the endpoint delay (`MemBus::Transmition::Fast`)."""


Ring = tuple[int, ...]


def count_cycles(machine: Machine, collective: Collective, *, aware: bool = False) -> tuple[int, ...]:
    """The tick at which each rank of the collective ends; of ranks that all do the same, one for all.

    `aware` is the backend whose links carry one message at a time.  Raises `TimingError` for what ASTRA-sim cannot
    simulate.
    """
    collective.check(machine)
    check_machine(machine)
    clock = Clock()
    wires = lay_wires(machine, clock, aware=aware)
    levels = find_levels(machine, collective)
    alike = not aware and not any(
        level.listed or level.algorithm.through_all or level.algorithm.name == DOUBLE_BINARY_TREE for level in levels
    )
    ranks = (0,) if alike else collective.group if levels[0].listed and collective.group else range(machine.num_ranks)
    transport: Transport = Mirror(wires, clock) if alike else Mailbox(wires, clock)
    ends: dict[int, int] = {}

    def end(rank: int) -> None:
        ends[rank] = clock.now

    stage = Stage(machine, collective.group, levels, transport, make_timers(clock))
    chunks = plan_chunks(machine, collective)
    events = len(ranks) * len(chunks) * sum(stage.count_messages(phase, ranks[0]) for phase in chunks[0])
    if aware and machine.dims[0].kind == RING:
        events *= 1 + machine.num_ranks // 4
    if events > MOST_MESSAGES:
        raise TimingError(f"{events:,} messages to replay; at most {MOST_MESSAGES:,} are replayed")
    if events > MANY_MESSAGES:
        log().info("ASTRA-sim's rules simulate each message: %s of them, a few seconds for each million", f"{events:,}")
    for number in ranks:
        Rank(number, machine.slots).issue(chunks, tag=(0, 0), enter=stage.enter, end=partial(end, number))
    clock.run()
    if len(ends) < len(ranks):
        raise TimingError(f"{len(ranks) - len(ends)} of {len(ranks)} ranks never finish in ASTRA-sim")
    return tuple(ends[number] for number in ranks)


Timers = defaultdict[int, RankClock]
"""The clock of each rank."""


def make_timers(clock: Clock) -> Timers:
    return defaultdict(lambda: RankClock(clock))


class Stage:
    """Makes the algorithms of all ranks, for one collective or for several over the same ranks."""

    def __init__(
        self,
        machine: Machine,
        group: tuple[int, ...] | None,
        levels: tuple[Level, ...],
        transport: Transport,
        timers: Timers,
    ) -> None:
        self._machine, self._group, self._levels = machine, group, levels
        self._transport, self._timers = transport, timers
        self._rings: dict[tuple[int, int], Ring] = {}
        self._trees: dict[tuple[int, int, bool], dict[int, Branch]] = {}

    def count_messages(self, phase: Phase, rank: int) -> int:
        """That a rank sends in a phase, at most."""
        if phase.algorithm.name == DOUBLE_BINARY_TREE:
            return 3
        return self._script(phase, self._position(phase, rank)).messages

    def enter(self, rank: Rank, chunk: Chunk, phase: Phase, leave: Action) -> PhaseRun:
        level = self._levels[phase.level]
        delay = _LISTED_ENDPOINT if level.listed else endpoint_ticks(self._machine)
        costs = Costs(delay, self._machine.memory_bytes_per_ns)
        endpoint = Endpoint(rank.number, chunk.tag, self._transport, self._timers[rank.number], costs, leave)
        if phase.algorithm.name == DOUBLE_BINARY_TREE:
            return TreeAllReduce(self._branch(phase, rank.number), phase.num_bytes, endpoint)
        return Exchange(self._script(phase, self._position(phase, rank.number)), endpoint)

    def _script(self, phase: Phase, position: RankPosition) -> Script:
        listed = self._levels[phase.level].listed
        return make_script(phase.algorithm, phase.kind, phase.num_bytes, position, listed=listed)

    def _position(self, phase: Phase, rank: int) -> RankPosition:
        ring = self._ring(rank, phase.level)
        return RankPosition(ring, ring.index(rank), phase.step)

    def _branch(self, phase: Phase, rank: int) -> Branch:
        ring = self._ring(rank, phase.level)
        key = ring[0], phase.level, phase.root_last
        if key not in self._trees:
            self._trees[key] = grow_tree(ring, root_last=phase.root_last)
        return self._trees[key][rank]

    def _ring(self, rank: int, index: int) -> Ring:
        """The ranks of a phase, in order."""
        level = self._levels[index]
        if level.listed and self._group:
            return self._group
        if level.algorithm.through_all:
            first, stride = 0, 1
        else:
            stride = self._machine.stride(index)
            first = rank - self._machine.coordinates(rank)[index] * stride
        if (first, index) not in self._rings:
            self._rings[first, index] = tuple(first + stride * place for place in range(level.size))
        return self._rings[first, index]


def time_messages(machine: Machine, messages: Sequence[Message], *, aware: bool = False) -> tuple[int, ...]:
    """The tick at which each message arrives; a rank sends its own one after the other, in the order given."""
    check_messages(messages, machine)
    check_machine(machine)
    clock = Clock()
    transport = Mailbox(lay_wires(machine, clock, aware=aware), clock)
    arrivals: dict[int, int] = {}
    to_send: defaultdict[int, deque[int]] = defaultdict(deque)
    for number, message in enumerate(messages):
        to_send[message.source].append(number)

    def send_next(rank: int) -> None:
        if to_send[rank]:
            number = to_send[rank].popleft()
            message = messages[number]
            transport.send((number, 0), rank, message.target, message.num_bytes, lambda: arrive(number))

    def arrive(number: int) -> None:
        arrivals[number] = clock.now
        send_next(messages[number].source)

    for rank in sorted(to_send):
        send_next(rank)
    clock.run()
    return tuple(arrivals[number] for number in range(len(messages)))


def check_machine(machine: Machine) -> None:
    """Raises `TimingError` for a machine that ASTRA-sim cannot have."""
    if any(dim.kind == LINE for dim in machine.dims):
        raise TimingError("ASTRA-sim has no lines; write a ring, as its own inputs for TPUs do")
    if machine.endpoint_ns == 0:
        raise TimingError(
            "an endpoint delay of 0 is not simulated: most runs of ASTRA-sim abort at it; write 1 or more"
        )
    for kind in KINDS:
        for each in machine.algorithms.of(kind):
            if each.custom is not None:
                raise TimingError(f"{each.text} runs in our own model alone; leave out --as astra-sim")
    if machine.multi == GREEDY:
        raise TimingError("multi: ASTRA-sim's input files cannot ask for greedy; write baseline or local-bw-aware")
