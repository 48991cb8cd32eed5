"""A rank: its chunks wait in the queues of a dim, and go from phase to phase.

A queue has some slots; what waits in it is served first come, first served.  A chunk that ends a phase joins the end
of its next queue before the slot it leaves is filled again.

Source: `Sys::proceed_to_next_vnet_baseline`, `Sys::SchedulerUnit`.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from compare.network.astra_sim.clock import Action, Tag
from compare.network.astra_sim.phases import Phase


class PhaseRun(Protocol):
    """The algorithm of a phase, ready to start."""

    def start(self) -> None: ...


@dataclass(slots=True)
class Issue:
    """A collective that a rank has under way."""

    tag: Tag
    """Of its first chunk; the others count on."""
    enter: "Enter"
    end: Action
    left: int
    """Chunks."""


class Chunk:
    """A piece of a collective, and what is left of its way."""

    def __init__(self, issue: Issue, number: int, phases: tuple[Phase, ...]) -> None:
        self.issue = issue
        self.tag: Tag = issue.tag[0], issue.tag[1] + number
        self.phases = deque(phases)
        self.queue: int | None = None
        self.phase_run: PhaseRun | None = None


Enter = Callable[["Rank", Chunk, Phase, Action], PhaseRun]
"""Makes the algorithm of a phase; the action is called when it ends."""


class Rank:
    """The queues of one rank."""

    def __init__(self, number: int, slots: int) -> None:
        self.number = number
        self._slots = slots
        self._queues: defaultdict[int, list[Chunk]] = defaultdict(list)
        self._running: defaultdict[int, int] = defaultdict(int)

    def issue(self, chunks: tuple[tuple[Phase, ...], ...], *, tag: Tag, enter: "Enter", end: Action) -> None:
        """Let all chunks of a collective join their first queues; `end` is called when the last has made its way."""
        issue = Issue(tag, enter, end, len(chunks))
        for number, phases in enumerate(chunks):
            self._advance(Chunk(issue, number, phases))

    def _advance(self, chunk: Chunk) -> None:
        before = chunk.queue
        if not chunk.phases:
            chunk.issue.left -= 1
            if not chunk.issue.left:
                chunk.issue.end()  # the chunk still has its slot when the next collective is issued
        if before is not None:
            self._queues[before].remove(chunk)
        if chunk.phases:
            phase = chunk.phases.popleft()
            chunk.queue = phase.queue
            chunk.phase_run = chunk.issue.enter(self, chunk, phase, lambda: self._advance(chunk))
            self._queues[phase.queue].append(chunk)
        else:
            chunk.queue = None
        if before is not None:
            self._running[before] -= 1
            self._fill(before)
        if chunk.queue is not None:
            self._fill(chunk.queue)

    def _fill(self, queue: int) -> None:
        chunks = self._queues[queue]
        while self._running[queue] < min(self._slots, len(chunks)):
            chunk = chunks[self._running[queue]]
            self._running[queue] += 1
            if chunk.phase_run:
                chunk.phase_run.start()
