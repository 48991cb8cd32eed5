"""Which links of the torus a collective loads, and the peak bandwidth that they allow.

A link connects neighbouring chips, the two ends of a wrapped side, the cores of one chip, or any two slices.  Bus
bandwidth is that of NCCL-tests (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from compare.metrics.network.sent_bytes import SentBytes
from compare.report.model.mesh import DeviceMesh

Place = tuple[int, ...]
"""slice, x, y, z, core."""

Loads = dict[tuple[int, int], Fraction]
"""(from, to) of neighbouring devices -> bytes."""

SLICE, CORE = 0, 4
DIMS = range(5)


@dataclass(frozen=True)
class Torus:
    """Where the devices of a mesh are."""

    places: tuple[Place, ...]
    sides: Place
    closes: tuple[bool, ...]
    """For each dim, whether its ends are linked."""

    @classmethod
    def of(cls, mesh: DeviceMesh) -> "Torus":
        """From a report's mesh."""
        places = tuple(tuple(device.place) for device in mesh.devices)
        cores = max(place[CORE] for place in places) + 1
        sides = (mesh.slices, *(*mesh.sides, 1, 1)[:3], cores)
        closes = (False, *(*mesh.wraps, False, False, False)[:3], False)
        return cls(places, sides, closes)

    @cached_property
    def device(self) -> dict[Place, int]:
        return {place: device for device, place in enumerate(self.places)}

    def line(self, source: Place, dim: int, to: int) -> Iterator[tuple[int, int]]:
        """The links from a place along one dim to the coordinate `to`, in the shorter direction."""
        side, coordinate = self.sides[dim], source[dim]
        if dim in (SLICE, CORE):
            marks = [coordinate, to] if coordinate != to else [coordinate]
        else:
            forward = (to - coordinate) % side if self.closes[dim] else to - coordinate
            if self.closes[dim] and 2 * forward > side:
                forward -= side
            step = 1 if forward >= 0 else -1
            marks = [(coordinate + hop * step) % side for hop in range(abs(forward) + 1)]
        ids = [self.device[(*source[:dim], mark, *source[dim + 1 :])] for mark in marks]
        return pairwise(ids)

    def route(self, source: int, target: int) -> Iterator[tuple[int, int]]:
        """The links from device to device: along x, y, z, then between cores, then between slices."""
        place, goal = self.places[source], self.places[target]
        for dim in (1, 2, 3, CORE, SLICE):
            yield from self.line(place, dim, goal[dim])
            place = (*place[:dim], goal[dim], *place[dim + 1 :])


@dataclass(frozen=True, slots=True)
class Box:
    """A group whose places are all combinations of some coordinates."""

    dims: tuple[int, ...]
    """Dims along which the group has more than one coordinate."""
    marks: Mapping[int, tuple[int, ...]]
    """Dim -> its coordinates, in order."""

    @classmethod
    def of(cls, group: Sequence[int], torus: Torus) -> "Box | None":
        """`None` where the group is not a box."""
        places = {torus.places[device] for device in group}
        marks = {dim: tuple(sorted({place[dim] for place in places})) for dim in DIMS}
        size = 1
        for coordinates in marks.values():
            size *= len(coordinates)
        if size != len(places):
            return None
        return cls(tuple(dim for dim in DIMS if len(marks[dim]) > 1), marks)

    def stride(self, dim: int) -> int | None:
        """The distance of neighbours along a dim; `None` where it is not constant."""
        steps = {after - before for before, after in pairwise(self.marks[dim])}
        return steps.pop() if len(steps) == 1 else None

    def closed(self, dim: int, torus: Torus) -> bool:
        """Whether the members along a dim form a ring: evenly spaced, around a wrapped side."""
        stride = self.stride(dim)
        return torus.closes[dim] and stride is not None and stride * len(self.marks[dim]) == torus.sides[dim]


def gather_loads(group: Sequence[int], torus: Torus) -> Loads:
    """The load of each link in an all-gather, in bytes per byte of its result.

    In a box the result is split into as many parts as the box has dims; part k is gathered along dim k, then along the
    next, so that all dims are used at once.  Along a closed dim half goes in each direction; along an open one each
    shard goes outwards in both.  Without a box: a ring in order of id, whose hops take the shortest route.
    """
    loads: Loads = {}
    box = Box.of(group, torus)
    if box is None:
        shard = Fraction(1, len(group))
        for source, target in zip(group, [*group[1:], group[0]], strict=True):
            _add(loads, torus.route(source, target), shard * (len(group) - 1))
        return loads
    for first in range(len(box.dims)):
        order = (*box.dims[first:], *box.dims[:first])
        shard = Fraction(1, len(group) * len(order))
        for dim in order:
            _gather_along(loads, group, dim, box, torus, shard)
            shard *= len(box.marks[dim])
    return loads


def _gather_along(loads: Loads, group: Sequence[int], dim: int, box: Box, torus: Torus, shard: Fraction) -> None:
    """An all-gather in every line of the group along one dim; each member starts with `shard`."""
    marks = box.marks[dim]
    size, closed = len(marks), box.closed(dim, torus)
    for device in group:
        place = torus.places[device]
        index = marks.index(place[dim])
        if dim == SLICE:  # The network between slices connects any two directly.
            for mark in marks:
                _add(loads, torus.line(place, dim, mark), shard)
            continue
        ahead, behind = (Fraction(size - 1, 2),) * 2 if closed else (index + 1, size - index)
        if closed or index + 1 < size:
            _add(loads, _hop(torus, place, dim, marks[(index + 1) % size], 1), shard * ahead)
        if closed or index > 0:
            _add(loads, _hop(torus, place, dim, marks[index - 1], -1), shard * behind)


def _hop(torus: Torus, place: Place, dim: int, to: int, direction: int) -> list[tuple[int, int]]:
    """The links to the next member along a dim, in `direction` (±1)."""
    if dim == CORE:
        return list(torus.line(place, dim, to))
    side, links = torus.sides[dim], []
    while place[dim] != to:
        after = (*place[:dim], (place[dim] + direction) % side, *place[dim + 1 :])
        links.append((torus.device[place], torus.device[after]))
        place = after
    return links


def _add(loads: Loads, links: Iterator[tuple[int, int]] | Sequence[tuple[int, int]], amount: Fraction) -> None:
    for link in links:
        loads[link] = loads.get(link, Fraction(0)) + amount


def link_loads(kind: str, group: Sequence[int], torus: Torus) -> Loads:
    """The load of each link for a group of a collective, or a pair of a permute, in bytes per byte of payload.

    A reduce-scatter is an all-gather backwards; an all-reduce is both; a broadcast loads links as an all-gather does;
    an all-to-all and a permute send directly from source to target.
    """
    if kind == "collective-permute":
        return dict.fromkeys(torus.route(group[0], group[1]), Fraction(1))
    if kind in ("all-to-all", "ragged-all-to-all"):
        loads: Loads = {}
        for source in group:
            for target in group:
                _add(loads, torus.route(source, target), Fraction(1, len(group)))
        return loads
    loads = gather_loads(group, torus) if len(group) > 1 else {}
    backwards = {(target, source): amount for (source, target), amount in loads.items()}
    if kind == "reduce-scatter":
        return backwards
    if kind == "all-reduce":
        for link, amount in backwards.items():
            _add(loads, [link], amount)
    return loads


def peaks(sent: Mapping[str, SentBytes], mesh: DeviceMesh, link_bytes_per_s: float | None) -> dict[str, float]:
    """Collective -> the bus bandwidth that its links allow; unknown ones are left out.

    Permute or all-to-all: limited by the busiest link of the shortest routes.  Others: limited by the links of the
    least connected device of a group; groups that share these links share the bandwidth.
    """
    if link_bytes_per_s is None:
        return {}
    torus, known = Torus.of(mesh), dict[tuple[str, tuple[tuple[int, ...], ...]], Fraction | None]()
    result = {}
    for name, collective in sent.items():
        key = (collective.kind, collective.groups)
        if key not in known:
            known[key] = _links(collective, torus)
        links = known[key]
        if links is not None:
            result[name] = float(links) * link_bytes_per_s
    return result


def _links(sent: SentBytes, torus: Torus) -> Fraction | None:
    """The peak in units of one link's bandwidth."""
    if sent.kind in ("collective-permute", "all-to-all", "ragged-all-to-all"):
        return _by_routes(sent, torus)
    boxes = [Box.of(group, torus) for group in sent.groups if len(group) > 1]
    links_by_box = [_by_box(box, torus) for box in boxes if box is not None]
    if not boxes or len(links_by_box) < len(boxes) or None in links_by_box:
        return None
    return min(links for links in links_by_box if links is not None)


def _by_box(box: Box, torus: Torus) -> Fraction | None:
    """Links out of a corner of the box, each divided by the groups on the same line."""
    links = Fraction(0)
    for dim in box.dims:
        stride = box.stride(dim)
        if dim == SLICE or stride is None:
            return None
        if dim != CORE:
            links += Fraction(2 if box.closed(dim, torus) else 1, stride)
    # Cores of a chip share its links, unless they are in one group and share the incoming data.
    shared = 1 if CORE in box.dims else torus.sides[CORE]
    return links / shared or None


def _by_routes(sent: SentBytes, torus: Torus) -> Fraction | None:
    total: dict[tuple[tuple[int, ...], tuple[int, ...]], Fraction] = {}
    for group in sent.groups:
        for (source, target), amount in link_loads(sent.kind, group, torus).items():
            chips = torus.places[source][:CORE], torus.places[target][:CORE]
            if chips[0][SLICE] != chips[1][SLICE]:
                return None
            if chips[0] != chips[1]:
                total[chips] = total.get(chips, Fraction(0)) + amount
    return sent.bus_factor / max(total.values()) if total else None
