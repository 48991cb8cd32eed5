"""Match calls of another core with that core's communications by time, where no program links them.

The device's own line shows the call, from start to done, but not what is called; the other core's line shows that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.timeline.arrays import Ints, Times

UNKNOWN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreEvents:
    """Calls, or communications of other cores."""

    event: Ints
    """Index of the event."""
    device: Ints
    kind: Sequence[str]
    """`?` for a call of unknown kind."""
    starts: Times
    ends: Times


@dataclass(frozen=True, slots=True)
class MatchedCalls:
    """Event indices of calls, and of the communication that each requested."""

    calls: Ints
    works: Ints


def match_calls(calls: CoreEvents, works: CoreEvents) -> MatchedCalls:
    """Match each of the other core's communications with the first open call of its kind on its device."""
    matches: list[tuple[int, int]] = []
    waiting = _in_order(calls)
    taken: set[int] = set()
    first = 0
    for work in _in_order(works):
        while first < len(waiting) and _over(calls, waiting[first], works, work):
            first += 1
        for call in waiting[first:]:
            if calls.device[call] > works.device[work] or calls.starts[call] >= works.ends[work]:
                break
            fits = calls.kind[call] in (UNKNOWN, works.kind[work]) and calls.ends[call] > works.starts[work]
            if fits and call not in taken:
                taken.add(call)
                matches.append((int(calls.event[call]), int(works.event[work])))
                break
    pairs = np.array(matches, np.int64).reshape(-1, 2)
    return MatchedCalls(pairs[:, 0], pairs[:, 1])


def _in_order(seen: CoreEvents) -> list[int]:
    order: list[int] = np.lexsort((seen.starts, seen.device)).tolist()
    return order


def _over(calls: CoreEvents, call: int, works: CoreEvents, work: int) -> bool:
    """Whether a call ended before this work, and so before all later work."""
    if calls.device[call] != works.device[work]:
        return bool(calls.device[call] < works.device[work])
    return bool(calls.ends[call] <= works.starts[work])
