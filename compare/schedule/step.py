"""One step as a list: what each class of devices does, in the order of the program's text, loops unrolled.

It is simulated (`step_simulator`), shown (`trace_writer`) and laid out as a graph for other machines (`network.graph`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from compare.hlo.collective import Collective
from compare.schedule.class_collectives import ClassCollective, CollectiveCost
from compare.schedule.device_classes import Classes
from compare.schedule.exchange import NetworkWork
from compare.schedule.schedule_program import Block, CollectiveOp, Conditional, Copy, Loop, Node, Notes, Run
from compare.timeline.arrays import Ints, Mask
from compare.timeline.errors import TimingError

MOST_POINTS = 400_000
"""Most points of a step where something waits or starts; the model refuses longer steps."""


@dataclass(frozen=True, slots=True, eq=False)
class Compute:
    """Operations of the TensorCore without a wait between them."""

    run: Run
    active: Mask
    """The classes that execute it; of every entry."""


@dataclass(frozen=True, slots=True, eq=False)
class Rendezvous:
    """A collective as its devices execute it."""

    row: Collective
    cost: CollectiveCost
    among: ClassCollective
    network: NetworkWork


@dataclass(frozen=True, slots=True, eq=False)
class Exchange:
    """An execution of a collective, or its start."""

    name: str
    rendezvous: Rendezvous
    is_start: bool
    active: Mask


@dataclass(frozen=True, slots=True, eq=False)
class LocalCopy:
    """The start of an asynchronous local copy."""

    name: str
    ns: float
    """If the memory is otherwise idle."""
    num_bytes: int
    active: Mask


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """Waits for what an earlier entry started, or closes a loop, a conditional or a call."""

    name: str
    begun: int
    """The entry that started it; of a loop, a conditional or a call, the first that is in it."""
    active: Mask


class Wait(End):
    """Of a collective or a local copy."""


class Container(End):
    """A loop, a conditional or a call: the entries from `begun` on."""


Entry = Compute | Exchange | LocalCopy | Wait | Container


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """The entries of all classes."""

    classes: Classes
    entries: Sequence[Entry]
    unawaited: Sequence[tuple[int, Mask]]
    """Starts of collectives that nothing waits for, in the classes named."""
    scopes: Mapping[str, str]
    """Of instructions that compute or copy."""
    notes: Notes


@dataclass
class Unroller:
    """Lists the entries of a step."""

    classes: Classes
    rendezvous: Mapping[int, Rendezvous]
    """By the identity of the collective's node."""
    notes: Notes
    entries: list[Entry] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    flights: dict[str, dict[int, Mask]] = field(default_factory=dict)
    """Row of the collectives table -> starts in flight, the oldest first, in the classes that still have to wait."""
    copies: dict[str, list[int]] = field(default_factory=dict)
    """The same of local copies, by the name of their start."""
    points: int = 0

    def __post_init__(self) -> None:
        self.active: Mask = np.ones(self.classes.count, np.bool_)

    def unroll(self, nodes: Sequence[Node], scopes: Mapping[str, str]) -> Step:
        """`TimingError` where the step is too long."""
        self._add(nodes)
        unawaited = [flight for starts in self.flights.values() for flight in starts.items()]
        for start, _ in unawaited:
            self.notes.add(f"nothing waits for {self._name(start)}: it ends when all has arrived")
        return Step(self.classes, self.entries, unawaited, scopes, self.notes)

    def _name(self, start: int) -> str:
        entry = self.entries[start]
        assert isinstance(entry, Exchange)
        return entry.name

    def _add(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, Run):
                self.entries.append(Compute(node, self.active))
                continue
            self.points += 1
            if self.points > MOST_POINTS:
                raise TimingError(
                    f"a step waits or starts something more than {MOST_POINTS} times; that many are modelled"
                )
            if isinstance(node, CollectiveOp):
                self._collective(node)
            elif isinstance(node, Copy):
                self._copy(node)
            else:
                begun = len(self.entries)
                self._open(node)
                self.entries.append(Container(node.name, begun, self.active))

    def _collective(self, node: CollectiveOp) -> None:
        if node.part != "done":
            is_start = node.part == "start"
            if is_start:
                self.flights.setdefault(node.row.name, {})[len(self.entries)] = self.active
            self.entries.append(Exchange(node.name, self.rendezvous[id(node)], is_start, self.active))
            return
        ended = self._end_flights(node.ends)
        if not ended:
            self.notes.add(f"{node.name} ends what was started before this step: it does not wait")
        for start, classes in ended.items():
            self.entries.append(Wait(node.name, start, classes))

    def _end_flights(self, rows: Sequence[str]) -> dict[int, Mask]:
        """The starts that a done ends, with the classes: for each class its first in flight; those without one are with
        the last."""
        ended: dict[int, Mask] = {}
        left = self.active
        flights = [(start, row) for row in rows for start in self.flights.get(row, ())]
        for start, row in sorted(flights):
            flight = self.flights[row].pop(start)
            if flight is left:  # nearly always
                return ended | {start: left}
            if (classes := flight & left).any():
                ended[start] = classes
                left = left & ~classes
            if (flight & ~classes).any():
                self.flights[row][start] = flight & ~classes
            if not left.any():
                return ended
        if ended:
            ended[max(ended)] |= left
        return ended

    def _copy(self, node: Copy) -> None:
        if not node.is_end:
            self.copies.setdefault(node.name, []).append(len(self.entries))
            self.entries.append(LocalCopy(node.name, node.ns, node.num_bytes, self.active))
        elif starts := self.copies.get(node.start):
            self.entries.append(Wait(node.name, starts.pop(0), self.active))

    def _open(self, node: Loop | Conditional | Block) -> None:
        if isinstance(node, Block):
            self._add(node.body)
        elif isinstance(node, Loop):
            self.iterations.append(0)
            for trip in range(node.trips):
                self.iterations[-1] = trip
                self._add(node.test)
                self._add(node.body)
            self._add(node.test)
            self.iterations.pop()
        else:
            outer, taken = self.active, self._taken(node.taken)
            for index, branch in enumerate(node.branches):
                self.active = outer & (taken == index)
                if branch and self.active.any():
                    self._add(branch)
            self.active = outer

    def _taken(self, taken: Ints) -> Ints:
        """The branch of each class in this iteration."""
        iteration = tuple(min(trip, size - 1) for trip, size in zip(self.iterations, taken.shape[1:], strict=False))
        now = taken[(slice(None), *iteration)].reshape(taken.shape[0])
        return now[self.classes.first] if now.size > 1 else np.broadcast_to(now, self.classes.count)
