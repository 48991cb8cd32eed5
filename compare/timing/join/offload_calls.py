"""Which call of another core asked for which of its communications, where no program tells: by time.

A device's own line shows the call, from start to done, and not what is called; the other core's line shows that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compare.timing.arrays import Ints, Times

UNKNOWN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreEvents:
    """Communications that stand for themselves, of calls or of other cores."""

    place: Ints
    """Which event it is."""
    device: Ints
    kind: Sequence[str]
    """`?` of a call that does not say of what."""
    starts: Times
    ends: Times


@dataclass(frozen=True, slots=True)
class MatchedCalls:
    """Places of calls, and of what each asked for."""

    calls: Ints
    works: Ints


def match_calls(calls: CoreEvents, works: CoreEvents) -> MatchedCalls:
    """For each of the other core's communications the first call on its device that is under way, of the same kind."""
    found: list[tuple[int, int]] = []
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
                found.append((int(calls.place[call]), int(works.place[work])))
                break
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return MatchedCalls(pairs[:, 0], pairs[:, 1])


def _in_order(seen: CoreEvents) -> list[int]:
    order: list[int] = np.lexsort((seen.starts, seen.device)).tolist()
    return order


def _over(calls: CoreEvents, call: int, works: CoreEvents, work: int) -> bool:
    """Whether a call has ended before this work, and before all that comes after it."""
    if calls.device[call] != works.device[work]:
        return bool(calls.device[call] < works.device[work])
    return bool(calls.ends[call] <= works.starts[work])
