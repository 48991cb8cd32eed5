"""The clocks of the classes: what runs, who waits for whom, which links and which memory are busy until when."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compare.timing.model.devices import Rendezvous
from compare.timing.model.links import SLOTS, Real

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Met:
    """Of each class: when the last member of its groups came, and when it had everything."""

    ready: Real
    end: Real


@dataclass
class Clocks:
    """All times in ns, one entry for each class."""

    now: Real
    links: Real
    """Until when each way out of each class's chips is taken; the last entry never is."""
    memory: Real
    """Until when the memory is busy with local copies."""
    copies: dict[str, list[Real]] = field(default_factory=dict)
    """The ends of local copies under way, oldest first, by the name of their start."""

    @classmethod
    def of(cls, number: int) -> "Clocks":
        return cls(np.zeros(number), np.zeros(number * SLOTS + 1), np.zeros(number))

    def compute(self, ns: float, memory_ns: float, there: Mask) -> None:
        """Let the TensorCore work.  Its own reads and writes go first: copies under way get what they leave."""
        if memory_ns > 0:
            for ends in self.copies.values():
                for number, end in enumerate(ends):
                    ends[number] = self._later(end, ns, memory_ns, there)
            self.memory = self._later(self.memory, ns, memory_ns, there)
        self.now = np.where(there, self.now + ns, self.now)

    def _later(self, end: Real, ns: float, memory_ns: float, there: Mask) -> Real:
        under_way = np.clip((end - self.now) / ns, 0.0, 1.0)
        return np.where(there, end + min(memory_ns, ns) * under_way, end)

    def start_copy(self, name: str, ns: float, there: Mask) -> Real:
        """Local copies follow each other through the memory."""
        end = np.maximum(self.now, self.memory) + ns
        self.memory = np.where(there, end, self.memory)
        self.copies.setdefault(name, []).append(np.where(there, end, self.now))
        return end

    def end_copy(self, name: str, there: Mask) -> Real | None:
        """Wait for a copy, and give its end; None where none is under way."""
        ends = self.copies.get(name)
        if not ends:
            return None
        end = ends.pop(0)
        if not ends:
            del self.copies[name]
        self.now = np.where(there, np.maximum(self.now, end), self.now)
        return end

    def meet(self, rendezvous: Rendezvous, there: Mask) -> Met:
        """A collective that everybody begins now: it goes ahead when the last has come and its links are free."""
        ready, end = self.now.copy(), self.now.copy()
        who = rendezvous.takes_part
        if not who.size:
            return Met(ready, end)
        came = np.where(there, self.now, -np.inf)[rendezvous.members]
        last = np.maximum.reduceat(came, rendezvous.member_starts)
        free = np.maximum.reduceat(self.links[rendezvous.uses], rendezvous.use_starts)
        done = np.maximum(last + rendezvous.before_ns, free) + rendezvous.moving_ns
        counts = np.diff([*rendezvous.use_starts, rendezvous.uses.size])
        np.maximum.at(self.links, rendezvous.uses, np.repeat(done, counts))
        self.links[-1] = 0.0
        ready[who] = np.maximum.reduceat(last[rendezvous.theirs], rendezvous.their_starts)
        end[who] = np.maximum.reduceat(done[rendezvous.theirs], rendezvous.their_starts)
        return Met(np.where(there, ready, self.now), np.where(there, end, self.now))

    def wait(self, until: Real, there: Mask) -> None:
        self.now = np.where(there, np.maximum(self.now, until), self.now)
