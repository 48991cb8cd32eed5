"""A step in the order of its text, each class on its own clock: waiting, busy links, memory bandwidth in use."""

from bisect import insort
from collections.abc import Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from compare.schedule.device_classes import number_rows
from compare.schedule.engine import Engine, Instance
from compare.schedule.step import Compute, Entry, Exchange, LocalCopy, Rendezvous, Step, Wait
from compare.timeline.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """When each class came to an entry, when the last member of its groups came, and when it was over.

    A class that does not execute the entry has the time of its clock in all.  Of a local copy only `begun` counts.
    """

    begun: Floats
    ready: Floats
    end: Floats


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedStep:
    """A step with the times of its entries."""

    step: Step
    times: Sequence[Times]

    @property
    def end_ns(self) -> float:
        return max((float(each.end.max()) for each in self.times), default=0.0)


def simulate_step(step: Step) -> SimulatedStep:
    return StepSimulator(step).simulate()


@dataclass
class EgressLinks:
    """The links out of the chips of each class: who has taken them, from when to when."""

    taken: dict[int, list[tuple[float, float, int]]] = field(default_factory=dict)
    """(begin, end, transfer) of each link, by their begin."""

    def take(self, links: Collection[int], now: float, wanted: float, ns: float, transfer: int) -> float:
        """The first time from `wanted` on at which no other transfer has one of the links for so long.

        The groups of one transfer share the links: their load is counted together.  now: all that is asked for from now
        on is for this time or a later one.
        """
        begin = wanted
        for since, until, other in sorted(self._list_taken(links, now)):
            if other != transfer and since < begin + ns and begin < until:
                begin = until
        for link in links if ns else ():
            insort(self.taken.setdefault(link, []), (begin, begin + ns, transfer))
        return begin

    def _list_taken(self, links: Collection[int], now: float) -> list[tuple[float, float, int]]:
        listed = []
        for link in links:
            taken = self.taken.get(link, [])
            while taken and taken[0][1] <= now:
                del taken[0]
            listed += taken
        return listed


_COMPUTE, _COPY, _EXCHANGE, _START, _WAIT, _OTHER = range(6)
_Command = tuple[int, int, float, float]
"""(number of the entry, what it is, two numbers of it): what the loop of a class reads, thousands of times a step."""


def _command(number: int, entry: Entry) -> _Command:
    if isinstance(entry, Compute):
        # Its memory traffic has priority over the copies under way: they run in the rest of its time.
        return number, _COMPUTE, entry.run.total_ns, min(entry.run.memory_ns, entry.run.total_ns)
    if isinstance(entry, LocalCopy):
        return number, _COPY, entry.ns, 0.0
    if isinstance(entry, Exchange):
        return number, _START if entry.is_start else _EXCHANGE, 0.0, 0.0
    return number, _WAIT if isinstance(entry, Wait) else _OTHER, entry.begun, 0.0


def _list_commands(step: Step) -> list[list[_Command]]:
    """Of each class; those that execute the same share one list."""
    commands = [_command(number, entry) for number, entry in enumerate(step.entries)]
    active = np.array([entry.active for entry in step.entries], np.bool_).reshape(-1, step.classes.count).T
    which = number_rows(active).tolist()
    distinct = {number: active[which.index(number)] for number in which}
    lists = {number: [commands[at] for at in np.flatnonzero(mask).tolist()] for number, mask in distinct.items()}
    return [lists[number] for number in which]


class StepSimulator(Engine[Instance]):
    """Each class executes its entries one after another; a node is an entry."""

    def __init__(self, step: Step):
        super().__init__([len(step.entries)] * step.classes.count)
        self.step, self.links = step, EgressLinks()
        self.commands = _list_commands(step)
        self.cores = [self._execute(index) for index in range(step.classes.count)]
        self.waits_for = [-1] * step.classes.count
        """The entry whose end each class needs to go on."""
        self.clocks = [-1.0] * step.classes.count
        """When each class has done all."""

    @staticmethod
    def instant(time: float) -> float:
        """In ps: sums of the same durations in another order differ in their last digits."""
        return int(time * 1000 + 0.5)

    def simulate(self) -> SimulatedStep:
        for core in self.cores:
            next(core, None)
        self.run()
        assert min(self.clocks, default=0.0) >= 0, "a class waits for what nobody sends"
        return SimulatedStep(self.step, self._list_times())

    def _execute(self, index: int) -> Iterator[None]:
        """One class; pauses where it needs the end of a collective."""
        now = memory_ns = queued = 0.0
        copies = dict[float, float]()
        """By its entry, when each copy under way would end, and `queued` the last, with the memory to themselves."""
        starts, ends = self.starts[index], self.ends[index]
        for number, what, ns, of_memory in self.commands[index]:
            starts[number] = now
            if what == _COMPUTE:
                now += ns
                memory_ns += of_memory
            elif what == _COPY:
                left = now - memory_ns
                queued = copies[number] = (queued if queued > left else left) + ns
            elif what == _WAIT:
                end = copies.pop(ns, None)
                if end is None:
                    now = yield from self._wait(index, int(ns), now)
                elif end + memory_ns > now:
                    now = end + memory_ns
            elif what != _OTHER and (places := self._rendezvous(number).among.groups_of.get(index)):
                self.at(now, partial(self.join, index, number, number, places), rank=number)
                if what == _START:
                    continue
                now = yield from self._wait(index, number, now)
            ends[number] = now
        self.clocks[index] = now

    def _wait(self, index: int, node: int, now: float) -> Generator[None, None, float]:
        """For what the class has started; returns its clock behind it."""
        if self.ends[index][node] < 0 <= self.starts[index][node]:
            self.waits_for[index] = node
            yield
        return max(now, self.ends[index][node])

    def _rendezvous(self, number: int) -> Rendezvous:
        entry = self.step.entries[number]
        assert isinstance(entry, Exchange)
        return entry.rendezvous

    def open(self, transfer: int, place: int) -> Instance:
        active = self.step.entries[transfer].active
        members = self._rendezvous(transfer).among.groups[place].members
        return Instance(transfer, place, sum(bool(active[index]) for index in members))

    def begin(self, instance: Instance) -> None:
        group = self._rendezvous(instance.transfer).among.groups[instance.place]
        wanted = self.now + group.before_ns
        begin = self.links.take(group.links, self.now, wanted, group.moving_ns, instance.transfer)
        self.at(begin + group.moving_ns, partial(self.end_instance, instance), rank=instance.transfer)

    def end_node(self, index: int, node: int) -> None:
        self.ends[index][node] = self.now
        if self.waits_for[index] == node:
            self.waits_for[index] = -1
            next(self.cores[index], None)

    def _list_times(self) -> list[Times]:
        begun, ready, end = (np.array(times).T for times in (self.starts, self.joined, self.ends))
        # A class comes to what it does not execute when it comes to what it executes next.
        begun = np.where(begun < 0, np.inf, begun)
        begun = np.minimum.accumulate(np.vstack([begun, self.clocks])[::-1])[:0:-1]
        ready, end = (np.where(times < 0, begun, times) for times in (ready, end))
        return list(map(Times, begun, ready, end))
