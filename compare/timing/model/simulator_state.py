"""The clocks of the classes: what runs, who waits for whom, which links are busy, and what is left of the memory."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from compare.timing.arrays import Floats, Mask
from compare.timing.model.device_classes import ClassCollective
from compare.timing.model.links import SLOTS


@dataclass(frozen=True, slots=True)
class CollectiveTimes:
    """Of each class: when the last member of its groups came, and when it had everything."""

    ready: Floats
    end: Floats


@dataclass
class EgressLinks:
    """The ways out of the chips of each class: when they are taken, by the collective that the text began last.

    What others were waiting for meanwhile may go before it, where there is time enough.
    """

    before: Floats
    """Until when a way was taken before that; of the last entry, which is never taken, 0 in all three."""
    since: Floats
    until: Floats

    @classmethod
    def of(cls, number: int) -> Self:
        return cls(np.zeros(number), np.zeros(number), np.zeros(number))

    def take(self, rendezvous: ClassCollective, wanted: Floats) -> Floats:
        """Of each group when all has passed, if it would begin at a time; -inf is a group that does not come."""
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
    ways: EgressLinks
    taken: Floats
    """How long the TensorCore has had the memory to itself so far; local copies move in the rest."""
    queued: Floats
    """How much of that rest is spoken for: when the last of the copies is there, were the memory theirs alone."""
    copies: dict[str, list[Floats]] = field(default_factory=dict)
    """The same of each local copy under way, oldest first, by the name of its start."""

    @classmethod
    def of(cls, number: int) -> "SimulatorState":
        return cls(np.zeros(number), EgressLinks.of(number * SLOTS + 1), np.zeros(number), np.zeros(number))

    def compute(self, ns: float, memory_ns: float, there: Mask) -> None:
        """Let the TensorCore work.  Its own reads and writes go first: copies under way get what they leave."""
        self.taken = np.where(there, self.taken + min(memory_ns, ns), self.taken)
        self.now = np.where(there, self.now + ns, self.now)

    def start_copy(self, name: str, ns: float, there: Mask) -> None:
        """Local copies follow each other through the memory."""
        self.queued = np.where(there, np.maximum(self.now - self.taken, self.queued) + ns, self.queued)
        self.copies.setdefault(name, []).append(self.queued)

    def end_copy(self, name: str, there: Mask) -> bool:
        """Wait for a copy, with the memory all its own meanwhile; False where none is under way."""
        waiting = self.copies.get(name)
        if not waiting:
            return False
        self.wait(waiting.pop(0) + self.taken, there)
        return True

    def meet(self, rendezvous: ClassCollective, there: Mask) -> CollectiveTimes:
        """A collective that everybody begins now: it goes ahead when the last has come and its links are free."""
        ready, end = self.now.copy(), self.now.copy()
        who = rendezvous.takes_part
        if not who.size:
            return CollectiveTimes(ready, end)
        came = np.where(there, self.now, -np.inf)[rendezvous.members]
        last = np.maximum.reduceat(came, rendezvous.member_starts)
        done = self.ways.take(rendezvous, last + rendezvous.before_ns)
        ready[who] = np.maximum.reduceat(last[rendezvous.theirs], rendezvous.their_starts)
        end[who] = np.maximum.reduceat(done[rendezvous.theirs], rendezvous.their_starts)
        return CollectiveTimes(np.where(there, ready, self.now), np.where(there, end, self.now))

    def wait(self, until: Floats, there: Mask) -> None:
        self.now = np.where(there, np.maximum(self.now, until), self.now)
