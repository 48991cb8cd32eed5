"""The link traffic of a collective: steps from chip to chip, and bytes on the busiest link of each group.

All groups of a collective run at once and share links: a group on every second chip of a line shares its links with
the group between.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from compare.hlo.collective import Collective
from compare.hlo.devices.groups import Groups
from compare.schedule.class_collectives import CollectiveCost
from compare.schedule.compiler_algorithm import BLOCK, DIRECT, Algorithm, read_algorithm
from compare.schedule.hardware import Hardware
from compare.schedule.links import SLOTS, TO_NETWORK, Torus
from compare.schedule.rings import Block, Order, find_ring
from compare.schedule.schedule_program import CollectiveOp, Notes
from compare.timeline.arrays import Floats, Ints
from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """What one execution sends over links, per group."""

    hops: Floats
    """Sequential steps from a chip to a neighbour."""
    load: Floats
    """Bytes on its busiest link per byte of payload, summed over the phases."""
    uses: tuple[frozenset[int], ...]
    """The links out of its own chips that it uses: chip × `SLOTS` + link."""
    hop_share: Floats
    """Per device, what it sends × the links of the torus that this crosses, per byte of payload."""

    def cost(self, groups: Groups, row: Collective, hardware: Hardware) -> CollectiveCost:
        """Latency before the first byte, and time of the bytes; 0 for a group that moves nothing."""
        before = np.where(self.load > 0, hardware.launch_ns + self.hops * hardware.hop_ns, 0.0)
        moving = self.load * row.payload_bytes / hardware.link_bytes_per_ns
        return CollectiveCost(groups, row.kind == "collective-permute", before, moving, self.uses)


@dataclass(frozen=True, slots=True, eq=False)
class NetworkWork:
    """The work of one execution on the networks, per device that sends; compared by identity."""

    ici_byte_hops: Floats
    """Bytes × links of the torus that they cross."""
    dcn_bytes: Floats
    """Bytes that leave for other slices."""


@dataclass(frozen=True, slots=True)
class _Share:
    """The part of the payload that goes around a ring, and the number of steps."""

    part: float
    """Fraction of the payload that is scattered, gathered or summed on this ring."""
    rounds: int
    """Times around the ring: 2 for an all-reduce (a reduce-scatter, then an all-gather); 1 for either alone."""
    one_shot: bool
    """Of an all-reduce: every full part goes around once, and is summed on arrival: fewer steps, more bytes."""

    @classmethod
    def of(cls, kind: str, *, one_shot: bool, part: float = 1.0) -> "_Share":
        return cls(part, 2 if kind == "all-reduce" and not one_shot else 1, one_shot)

    def link_fraction(self, size: int) -> float:
        """The fraction of the payload between two neighbours, both directions together."""
        return self.part * ((size - 1) if self.one_shot else self.rounds * (size - 1) / size)

    def steps(self, size: int) -> int:
        return size // 2 if self.one_shot else self.rounds * (size - 1)


@dataclass
class Phase:
    """Concurrent loads: (source, target, fraction of the payload, group); on a ring's edge of all steps together."""

    messages: list[tuple[int, int, float, int]] = field(default_factory=list)
    steps: dict[int, int] = field(default_factory=dict)
    is_direct: bool = False

    def add_ring(self, order: Sequence[int], share: _Share, *, group: int) -> None:
        """Add a two-way ring, half of the data each way; two devices have one neighbour, and send it everything."""
        size = len(order)
        if size < 2:
            return
        for source, target in pairwise((*order, order[0])):
            self.messages.append((source, target, share.link_fraction(size) / 2, group))
            self.messages.append((target, source, share.link_fraction(size) / 2, group))
        self.steps[group] = max(share.steps(size), self.steps.get(group, 0))


def route_collective(kind: str, groups: Groups, torus: Torus, algorithm: Algorithm) -> LinkTraffic:
    """The links and steps of one execution; of a permute each pair is a group."""
    return _sum_phases(list_phases(kind, groups, torus, algorithm), torus, num_groups=len(groups))


def list_phases(kind: str, groups: Groups, torus: Torus, algorithm: Algorithm) -> list[Phase]:
    """The loads of one execution, phase after phase: of each edge of a ring those of all its steps together.

    A permute, and whatever the compiler sends directly, takes a shortest route from source to target.  Else all-gather,
    reduce-scatter and broadcast go around rings once, in both directions, and an all-reduce twice (one-shot: once, with
    every full part).
    """
    if kind == "collective-permute":
        return [_direct_phase(((a, b), 1.0, index) for index, (a, b) in enumerate(groups))]
    if algorithm.shape == DIRECT:
        return [_direct_phase(((a, b), 1 / len(g), index) for index, g in enumerate(groups) for a in g for b in g)]
    if phases := _block_phases(groups, torus, algorithm, kind=kind):
        return phases
    phase, share = Phase(), _Share.of(kind, one_shot=kind == "all-reduce" and any(algorithm.one_shot))
    for index, group in enumerate(groups):
        phase.add_ring(find_ring(group, torus), share, group=index)
    return [phase]


def _direct_phase(pairs: Iterable[tuple[tuple[int, int], float, int]]) -> Phase:
    """Each message by a shortest route.  pairs: ((source, target), fraction of the payload, group)."""
    phase = Phase(is_direct=True)
    for (source, target), share, group in pairs:
        if source != target:
            phase.messages.append((source, target, share, group))
            phase.steps[group] = 1
    return phase


def _block_phases(groups: Groups, torus: Torus, algorithm: Algorithm, *, kind: str) -> list[Phase]:
    """A phase for each side of the blocks, parts of the data in several orders; empty if the groups are no blocks."""
    blocks = [Block.of(group, torus) for group in groups] if algorithm.shape == BLOCK else []
    sides = {block.sides if block else () for block in blocks}
    if len(sides) != 1 or len(next(iter(sides))) < 2:
        return []
    phases = [Phase() for _ in next(iter(sides))]
    for index, block in enumerate(blocks):
        assert block is not None
        orders = _orders(algorithm, block)
        for order in orders:
            _add_side_rings(phases, order, block, algorithm, kind=kind, group=index, part=1 / len(orders))
    return phases


def _orders(algorithm: Algorithm, block: Block) -> list[Order]:
    """The order of the block's sides for each part of the data: from the compiler, or every rotation."""
    sides = block.sides
    named: dict[int, int] = {}
    sizes = dict(algorithm.sizes)
    for numbered in sorted({side for order in algorithm.orders for side in order}):
        unused = [side for side in sides if side not in named.values()]
        fits = [side for side in unused if block.size(side) == sizes.get(numbered, block.size(side))]
        same = [side for side in fits if side == numbered]
        if unused:
            named[numbered] = (same or fits or unused)[0]
    orders = [tuple(named[side] for side in order if side in named) for order in algorithm.orders]
    if not orders or any(sorted(order) != list(sides) for order in orders):
        orders = [sides[turn:] + sides[:turn] for turn in range(len(sides))]
    return list(dict.fromkeys(orders))


def _add_side_rings(
    phases: list[Phase], order: Order, block: Block, algorithm: Algorithm, *, kind: str, group: int, part: float
) -> None:
    """Add one part of the data, side after side: a reduce-scatter begins with the first side, which moves the most; an
    all-gather goes in reverse, so that its last side moves the most."""
    steps = (*algorithm.one_shot, *[algorithm.one_shot[-1] if algorithm.one_shot else False] * len(phases))
    gathers = kind in ("all-gather", "collective-broadcast")
    # The devices of a chip belong to the phase that is scattered first; in a gather, to the last phase.
    for index, side in enumerate(order[::-1] if gathers else order):
        with_cores = index == (len(order) - 1 if gathers else 0)
        one_shot = kind == "all-reduce" and steps[index]
        lines = block.lines(side, with_cores=with_cores)
        for line in lines:
            phases[index].add_ring(line, _Share.of(kind, one_shot=one_shot, part=part), group=group)
        part = part if one_shot else part / len(lines[0])


def _sum_phases(phases: list[Phase], torus: Torus, *, num_groups: int) -> LinkTraffic:
    hops, load, hop_share = np.zeros(num_groups), np.zeros(num_groups), np.zeros(len(torus.places))
    uses: list[set[int]] = [set() for _ in range(num_groups)]
    for phase in phases:
        if not phase.messages:
            continue
        columns = list(zip(*phase.messages, strict=True))
        source, target, group = (np.array(columns[column], np.int64) for column in (0, 1, 3))
        routes = torus.routes(source, target)
        busiest = np.zeros(num_groups)
        np.maximum.at(busiest, group, routes.load(np.array(columns[2], np.float64)))
        load += busiest
        hops += count_hops(phase, routes.hops, group, num_groups)
        sent = np.array(columns[2], np.float64) * routes.hops
        hop_share += np.bincount(source, weights=sent, minlength=hop_share.size)
        for link, index in zip(routes.link.tolist(), group[routes.message].tolist(), strict=True):
            uses[index].add(link)
    chips: list[set[int]] = [set() for _ in range(num_groups)]
    for sender, *_, index in (message for phase in phases for message in phase.messages):
        chips[index].add(int(torus.chip[sender]))
    own_uses = (frozenset(link for link in use if link // SLOTS in chips[group]) for group, use in enumerate(uses))
    return LinkTraffic(hops, load, tuple(own_uses), hop_share)


def count_hops(phase: Phase, hops: Ints, group: Ints, num_groups: int) -> Floats:
    """Sequential hops per group: for direct messages the longest route; for a ring its steps × the median route (the
    way back along a line is long, but mostly no extra step)."""
    usual = np.zeros(num_groups)
    for index, steps in phase.steps.items():
        group_hops = hops[group == index]
        usual[index] = group_hops.max() if phase.is_direct else steps * float(np.median(group_hops))
    return usual


def _read_algorithm(comm: CollectiveOp) -> Algorithm:
    """Of the instruction that executes it, where that says one."""
    return read_algorithm(comm.row.kind, comm.text if "collective_algorithm_config" in comm.text else comm.row.text)


class CollectiveCosts:
    """Costs of collectives; caches link traffic by kind, groups and algorithm, and costs also by bytes."""

    def __init__(self, torus: Torus, hardware: Hardware, notes: Notes):
        self._torus, self._hardware, self._notes = torus, hardware, notes
        self._traffic_cache: dict[tuple[str, Groups, Algorithm], LinkTraffic] = {}
        self._costs: dict[tuple[object, ...], CollectiveCost] = {}

    def of(self, comm: CollectiveOp) -> CollectiveCost:
        row = comm.row
        groups = row.mesh_groups
        largest = max((device for group in groups for device in group), default=0)
        if largest >= len(self._torus.places):
            raise TimingError(f"{row.name} names device {largest}, but there are {len(self._torus.places)} of them")
        if row.network == "dcn":
            return self._between_slices(row, groups)
        places = self._torus.places
        if any(len({places[device].slice_index for device in group}) > 1 for group in groups):
            raise TimingError(
                f"{row.name} has groups over several slices, but is no transfer of the data-centre network (megascale)"
            )
        algorithm = _read_algorithm(comm)
        key = (row.kind, groups, algorithm, row.payload_bytes)
        if key not in self._costs:
            if algorithm.note:
                self._notes.add(f"{row.name}: {algorithm.note}")
            self._costs[key] = self._link_traffic(row.kind, groups, algorithm).cost(groups, row, self._hardware)
        return self._costs[key]

    def work_of(self, comm: CollectiveOp) -> NetworkWork:
        """The work of one execution, a whole collective or one from its start to its done."""
        row, nothing = comm.row, np.zeros(len(self._torus.places))
        if row.network == "dcn":
            sent = [float(num_bytes) for num_bytes in row.device_bytes]
            return NetworkWork(nothing, np.array([*sent, *nothing[len(sent) :]]))
        share = self._link_traffic(row.kind, row.mesh_groups, _read_algorithm(comm)).hop_share
        return NetworkWork(share * row.payload_bytes, nothing)

    def _link_traffic(self, kind: str, groups: Groups, algorithm: Algorithm) -> LinkTraffic:
        key = (kind, groups, algorithm)
        if key not in self._traffic_cache:
            self._traffic_cache[key] = route_collective(kind, groups, self._torus, algorithm)
        return self._traffic_cache[key]

    def _between_slices(self, row: Collective, groups: Groups) -> CollectiveCost:
        """Over the data centre's network: every device sends its part over its share of its host's network cards."""
        key = ("dcn", groups, row.device_bytes)
        if key not in self._costs:
            sent = [max((float(row.device_bytes[device]) for device in group), default=0.0) for group in groups]
            moving = np.array(sent) / self._hardware.dcn_bytes_per_ns
            before = np.where(moving > 0, self._hardware.dcn_launch_ns, 0.0)
            uses = tuple(frozenset(int(self._torus.chip[device]) * SLOTS + TO_NETWORK for device in g) for g in groups)
            pairs = row.kind == "collective-permute"
            self._costs[key] = CollectiveCost(groups, pairs, before, moving, uses)
        return self._costs[key]
