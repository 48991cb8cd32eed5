"""The state of the simulation: the clock of each class, busy links, and memory bandwidth in use."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from compare.schedule.class_collectives import ClassCollective
from compare.schedule.links import SLOTS
from compare.timeline.arrays import Floats, Mask


@dataclass(frozen=True, slots=True)
class CollectiveTimes:
    """Per class: when the last member of its groups arrived, and when it had all data."""

    ready: Floats
    end: Floats


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

    def take(self, rendezvous: ClassCollective, wanted: Floats) -> Floats:
        """Per group when all bytes have passed, given the time at which it would begin (-inf: it does not run)."""
        uses, starts, moving = rendezvous.uses, rendezvous.use_starts, rendezvous.moving_ns
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
class SimulatorState:
    """All times in ns, one entry for each class."""

    now: Floats
    egress: EgressLinks
    taken: Floats
    """Time in which the TensorCore has used the memory so far; local copies run in the rest."""
    queued: Floats
    """When the last copy would end if copies had the memory to themselves."""
    copies: dict[str, list[Floats]] = field(default_factory=dict)
    """The same for each local copy in flight, oldest first, by the name of its start."""

    @classmethod
    def of(cls, num_classes: int) -> "SimulatorState":
        return cls(
            np.zeros(num_classes), EgressLinks.of(num_classes * SLOTS + 1), np.zeros(num_classes), np.zeros(num_classes)
        )

    def compute(self, ns: float, memory_ns: float, active: Mask) -> None:
        """Advance by compute.  Its memory traffic has priority over copies in flight."""
        self.taken = np.where(active, self.taken + min(memory_ns, ns), self.taken)
        self.now = np.where(active, self.now + ns, self.now)

    def start_copy(self, name: str, ns: float, active: Mask) -> None:
        """Queue a local copy behind earlier ones."""
        self.queued = np.where(active, np.maximum(self.now - self.taken, self.queued) + ns, self.queued)
        self.copies.setdefault(name, []).append(self.queued)

    def end_copy(self, name: str, active: Mask) -> bool:
        """Wait for a copy, which has the memory to itself meanwhile; False where none is in flight."""
        waiting = self.copies.get(name)
        if not waiting:
            return False
        self.wait(waiting.pop(0) + self.taken, active)
        return True

    def start_collective(self, rendezvous: ClassCollective, active: Mask) -> CollectiveTimes:
        """Start a collective: it proceeds when the last member has arrived and its links are free."""
        ready, end = self.now.copy(), self.now.copy()
        participants = rendezvous.participants
        if not participants.size:
            return CollectiveTimes(ready, end)
        arrivals = np.where(active, self.now, -np.inf)[rendezvous.members]
        last = np.maximum.reduceat(arrivals, rendezvous.member_starts)
        done = self.egress.take(rendezvous, last + rendezvous.before_ns)
        ready[participants] = np.maximum.reduceat(last[rendezvous.groups_of], rendezvous.groups_of_starts)
        end[participants] = np.maximum.reduceat(done[rendezvous.groups_of], rendezvous.groups_of_starts)
        return CollectiveTimes(np.where(active, ready, self.now), np.where(active, end, self.now))

    def wait(self, until: Floats, active: Mask) -> None:
        self.now = np.where(active, np.maximum(self.now, until), self.now)
