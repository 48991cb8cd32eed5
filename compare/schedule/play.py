"""Play a step in the order of its text, each class on its own clock: waiting, busy links, memory bandwidth in use."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from compare.schedule.class_collectives import ClassCollective
from compare.schedule.links import SLOTS
from compare.schedule.step import Compute, Container, Exchange, LocalCopy, Step
from compare.timeline.arrays import Floats, Mask


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """When each class came to an entry, when the last member of its groups came, and when it was over.

    A class that does not execute the entry has the time of its clock in all.  Of a local copy only `begun` counts.
    """

    begun: Floats
    ready: Floats
    end: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PlayedStep:
    """A step with the times of its entries."""

    step: Step
    times: Sequence[Times]

    @property
    def end_ns(self) -> float:
        return max((float(each.end.max()) for each in self.times), default=0.0)


def play_step(step: Step) -> PlayedStep:
    clocks, times = Clocks.of(step.classes.count), list[Times]()
    for index, entry in enumerate(step.entries):
        begun = ready = clocks.now
        end: Floats | None = None
        if isinstance(entry, Compute):
            clocks.compute(entry.run.total_ns, entry.run.memory_ns, entry.active)
        elif isinstance(entry, Exchange):
            ready, end = clocks.meet(entry.rendezvous.among, entry.active)
            if not entry.is_start:
                clocks.wait(end, entry.active)
        elif isinstance(entry, LocalCopy):
            clocks.start_copy(index, entry.ns, entry.active)
        elif not isinstance(entry, Container):
            is_copy = entry.begun in clocks.copies
            clocks.wait(clocks.end_copy(entry.begun) if is_copy else times[entry.begun].end, entry.active)
        times.append(Times(begun, ready, clocks.now if end is None else end))
    return PlayedStep(step, times)


@dataclass
class EgressLinks:
    """The links out of the chips of each class: when the last started collective occupies them.

    Another collective may use a link before that one, if the gap is long enough.
    """

    before: Floats
    """The end of the occupation before that; the last entry is never taken: 0 in all three."""
    since: Floats
    until: Floats

    @classmethod
    def of(cls, num_links: int) -> Self:
        return cls(np.zeros(num_links), np.zeros(num_links), np.zeros(num_links))

    def take(self, among: ClassCollective, wanted: Floats) -> Floats:
        """Per group when all bytes have passed, given the time at which it would begin (-inf: it does not run)."""
        uses, starts, moving = among.uses, among.use_starts, among.moving_ns
        counts = np.diff([*starts, uses.size])
        is_free = self.until[uses] <= np.repeat(wanted, counts)
        early = np.maximum(wanted, np.maximum.reduceat(np.where(is_free, 0.0, self.before[uses]), starts))
        late = np.minimum.reduceat(np.where(is_free, np.inf, self.since[uses]), starts)
        fits = (early + moving <= late) & (late < np.inf) & (wanted > -np.inf)
        begin = np.where(fits, early, np.maximum(wanted, np.maximum.reduceat(self.until[uses], starts)))
        goes_before = np.repeat(fits, counts) & ~is_free
        (between,) = np.nonzero(goes_before)
        (behind,) = np.nonzero(~goes_before & np.repeat(wanted > -np.inf, counts))
        begins, ends = (np.repeat(times, counts) for times in (begin, begin + moving))
        self.before[uses[behind]] = self.until[uses[behind]]
        np.maximum.at(self.before, uses[between], ends[between])
        self.since[uses[behind]] = np.inf
        np.minimum.at(self.since, uses[behind], begins[behind])
        np.maximum.at(self.until, uses[behind], ends[behind])
        self.before[-1] = self.since[-1] = self.until[-1] = 0.0
        return np.where(wanted > -np.inf, begin + moving, wanted)


@dataclass
class Clocks:
    """All times in ns, one entry for each class."""

    now: Floats
    egress: EgressLinks
    taken: Floats
    """Time in which the TensorCore has used the memory so far; local copies run in the rest."""
    queued: Floats
    """When the last copy would end if copies had the memory to themselves."""
    copies: dict[int, Floats] = field(default_factory=dict)
    """The same for each local copy in flight, by its entry."""

    @classmethod
    def of(cls, num_classes: int) -> Self:
        return cls(
            np.zeros(num_classes), EgressLinks.of(num_classes * SLOTS + 1), np.zeros(num_classes), np.zeros(num_classes)
        )

    def compute(self, ns: float, memory_ns: float, active: Mask) -> None:
        """Advance by compute.  Its memory traffic has priority over copies in flight."""
        self.taken = np.where(active, self.taken + min(memory_ns, ns), self.taken)
        self.now = np.where(active, self.now + ns, self.now)

    def start_copy(self, entry: int, ns: float, active: Mask) -> None:
        """Queue a local copy behind earlier ones."""
        self.queued = np.where(active, np.maximum(self.now - self.taken, self.queued) + ns, self.queued)
        self.copies[entry] = self.queued

    def end_copy(self, entry: int) -> Floats:
        """When a copy ends that has the memory to itself from now on."""
        return self.copies.pop(entry) + self.taken

    def meet(self, among: ClassCollective, active: Mask) -> tuple[Floats, Floats]:
        """Start a collective: when the last member has come, and, its links being free, when all data has arrived."""
        ready, end = self.now.copy(), self.now.copy()
        if among.participants.size:
            arrivals = np.where(active, self.now, -np.inf)[among.members]
            last = np.maximum.reduceat(arrivals, among.member_starts)
            done = self.egress.take(among, last + among.before_ns)
            for times, of_group in ((ready, last), (end, done)):
                times[among.participants] = np.maximum.reduceat(of_group[among.groups_of], among.groups_of_starts)
        return np.where(active, ready, self.now), np.where(active, end, self.now)

    def wait(self, until: Floats, active: Mask) -> None:
        self.now = np.where(active, np.maximum(self.now, until), self.now)
