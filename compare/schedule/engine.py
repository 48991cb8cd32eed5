"""The engine of modelled steps and of graphs: an event loop, and the transfers at which classes of ranks meet.

A transfer begins when all that it waits for have come.  Who comes when, and over what links it goes, is for those who
use it: a step in the order of its text, on a TPU's own links (`compare.schedule.step_simulator`), and a graph of nodes
on any machine (`compare.network.engine.graph_simulator`).
"""

import heapq
from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar


@dataclass(slots=True, eq=False)
class Instance:
    """One execution of a transfer in one group of classes."""

    transfer: int
    place: int
    """Of the group, among the transfer's."""
    missing: int
    """Members that it still waits for."""
    nodes: list[tuple[int, int]] = field(default_factory=list, kw_only=True)
    """(class, node) that end with it."""
    joined: float = field(default=-1.0, kw_only=True)
    ended: float = field(default=-1.0, kw_only=True)


AnInstance = TypeVar("AnInstance", bound=Instance)


class Engine(ABC, Generic[AnInstance]):
    """Times in ns; `starts`, `joined` and `ends` of each node of each class, -1 until it has come so far."""

    def __init__(self, num_nodes: Sequence[int]):
        """num_nodes: of each class."""
        self.now = 0.0
        self._events: list[tuple[float, int, int, float, Callable[[], None]]] = []
        self._order = 0
        self.starts, self.joined, self.ends = ([array("d", [-1.0]) * size for size in num_nodes] for _ in range(3))
        self._instances: dict[tuple[int, int], AnInstance] = {}
        self._open_groups: dict[tuple[int, int], int] = {}
        """(class, node) -> its groups that have not ended, where there are several."""

    @abstractmethod
    def open(self, transfer: int, place: int) -> AnInstance:
        """The transfer in one of its groups, when the first member comes."""

    @abstractmethod
    def begin(self, instance: AnInstance) -> None:
        """All have come: what leads, at some time, to `end_instance`."""

    @abstractmethod
    def end_node(self, index: int, node: int) -> None:
        """A node has ended in all its groups: what comes after it."""

    def at(self, time: float, act: Callable[[], None], *, rank: int = 0) -> None:
        """rank: of what happens at one time, the lowest goes first; among equals who asked first."""
        self._order += 1
        heapq.heappush(self._events, (self.instant(time), rank, self._order, time, act))

    @staticmethod
    def instant(time: float) -> float:
        """The same for times that count as one."""
        return time

    def run(self) -> None:
        """Until nothing is left to happen."""
        events, pop = self._events, heapq.heappop
        while events:
            _, _, _, self.now, act = pop(events)
            act()

    def join(self, index: int, node: int, transfer: int, places: Sequence[int], *, is_awaited: bool = True) -> None:
        """A class comes to a transfer, in some of its groups.  is_awaited: whether these wait for it to begin."""
        if len(places) > 1:
            self._open_groups[index, node] = len(places)
        for place in places:
            instance = self._instances.get((transfer, place))
            if instance is None:
                instance = self._instances[transfer, place] = self.open(transfer, place)
            if instance.ended >= 0:  # a message that came before its receiver
                self.joined[index][node] = self.now
                self._end_member(index, node)
                continue
            instance.nodes.append((index, node))
            instance.missing -= is_awaited
            if is_awaited and not instance.missing:
                instance.joined = self.now
                self.begin(instance)

    def end_instance(self, instance: AnInstance) -> None:
        """All its data has arrived."""
        instance.ended = self.now
        for index, node in instance.nodes:
            self.joined[index][node] = max(self.joined[index][node], instance.joined)
            self._end_member(index, node)

    def _end_member(self, index: int, node: int) -> None:
        if (index, node) in self._open_groups:
            self._open_groups[index, node] -= 1
            if self._open_groups[index, node]:
                return
        self.end_node(index, node)
