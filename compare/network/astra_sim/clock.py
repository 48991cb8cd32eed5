"""Time in whole ticks: what happens at a tick happens in the order in which it was asked for.

Source: ASTRA-sim's `EventQueue` (a list of events a tick, appended to while it runs) and `Sys::try_register_event` (the
events of one rank at one tick are one entry of that list, at the place of the first of them).
"""

import heapq
from collections.abc import Callable

Action = Callable[[], None]
Tag = tuple[int, int]
"""A collective or a message, and its chunk: tells the messages of a pair of ranks from each other."""


class Clock:
    """The present tick, and what is to come."""

    def __init__(self) -> None:
        self.now = 0
        self._ticks: list[int] = []
        self._due: dict[int, list[Action]] = {}

    def after(self, delay: int, action: Action) -> None:
        """Do this `delay` ticks from now; at 0 after everything that is due now."""
        tick = self.now + delay
        if tick not in self._due:
            self._due[tick] = []
            heapq.heappush(self._ticks, tick)
        self._due[tick].append(action)

    @property
    def is_due_now(self) -> bool:
        """Whether anything is to come at the present tick."""
        return self.now in self._due

    def run(self) -> None:
        """Until nothing is to come."""
        while self._ticks:
            self.now = self._ticks[0]
            for action in self._due[self.now]:  # grows while it runs
                action()
            del self._due[heapq.heappop(self._ticks)]


class RankClock:
    """The events of one rank: those of one tick follow each other without another rank's in between."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[int, list[Action]] = {}

    @property
    def now(self) -> int:
        return self._clock.now

    def after(self, delay: int, action: Action) -> None:
        """Do this `delay` ticks from now."""
        tick = self._clock.now + delay
        if tick in self._due:
            self._due[tick].append(action)
        else:
            self._due[tick] = [action]
            self._clock.after(delay, lambda: self._run(tick))

    def _run(self, tick: int) -> None:
        for action in self._due[tick]:  # grows while it runs
            action()
        del self._due[tick]
