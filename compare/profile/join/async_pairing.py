"""Choose one event for each communication, of the several in which a profile may show it.

An asynchronous communication can be on the line of asynchronous operations, from its start to its done; a start and a
done on the device's main line; and on the line of another core that does the work.  The best one is chosen, the others
are parts of it.  Where no program links a call of another core to that core's communication, they are matched by time:
the device's own line shows the call, from start to done, but not what is called; the other core's line shows that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.timeline.arrays import Ints, Mask, Times
from compare.timeline.intervals import Union

UNKNOWN = "?"

WHOLE, START, DONE, INSIDE, BETWEEN = range(5)
"""The part of its communication that an event shows.  `inside`: another core's work for it.  `between`: neither end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationEvents:
    """Events of communications.  group: equal for events of one collective in one execution of its program."""

    group: Ints
    half: NDArray[np.int8]
    own_line: Mask
    """Whether it is on the line of asynchronous operations, where a start spans the full communication."""
    starts: Times
    ends: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Communications:
    """Which events represent communications, and their ends; the other events are parts of these."""

    chosen: Mask
    ends: Times
    unfinished: Mask
    """Chosen starts without a done."""
    unbegun: Mask
    """Chosen dones without a start."""


def match_halves(parts: CommunicationEvents) -> Communications:
    """Prefer the line of asynchronous operations, then a pair of start and done, then another core's work."""
    ends = parts.ends.copy()
    start, done = parts.half == START, parts.half == DONE
    # XLA's `Async XLA Ops` has one event from start to done; on `XLA Ops` the same communication is a short start and a
    # short done.
    chosen = parts.own_line & (start | (parts.half == WHOLE))
    unfinished = unbegun = np.zeros(chosen.size, np.bool_)
    for own_line in (True, False):
        on_line = parts.own_line == own_line
        pairs = _paired(parts, start & on_line, done & on_line)
        ends[pairs.starts] = np.maximum(ends[pairs.starts], parts.ends[pairs.dones])
        unpaired = done & on_line
        unpaired[pairs.dones] = False
        if own_line:
            chosen |= unpaired
            continue
        others = on_line & (start | unpaired | (parts.half == WHOLE))
        others &= ~_shown(parts, ends, others, chosen)
        chosen |= others
        unbegun, unfinished = others & unpaired, others & start
        unfinished[pairs.starts] = False
    inside = parts.half == INSIDE
    inside &= ~_shown(parts, ends, inside, chosen)
    first, ends = _merged(parts, ends, inside)
    return Communications(chosen=chosen | first, ends=ends, unfinished=unfinished, unbegun=unbegun)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Indices of starts, and of the done of each."""

    starts: Ints
    dones: Ints


def _paired(parts: CommunicationEvents, start: Mask, done: Mask) -> _Pairs:
    """In each group, pair the first start with the first done after it, and so on."""
    events = np.flatnonzero(start | done)
    order = events[np.lexsort((done[events], parts.starts[events], parts.group[events]))]
    if not order.size:
        return _Pairs(order, order)
    first = np.flatnonzero(np.diff(parts.group[order], prepend=-1))
    group = np.repeat(np.arange(first.size), np.diff(np.append(first, order.size)))
    begun, ended = (_counted(mask[order], first, group) for mask in (start, done))
    # A done before the first start belongs to a communication that began before the recording.
    wide = 2 * order.size + 2
    early = np.maximum(np.maximum.accumulate(ended - begun + group * wide) - group * wide, 0)
    key = group * wide
    #   start 0, done 2, done 8, start 10, done 12      the done at 8 is of a start that was lost
    # Counting all dones would pair the start at 10 with it.
    late = done[order] & (early == np.where(np.diff(group, prepend=-1), 0, np.roll(early, 1)))
    starts, dones = order[start[order]], order[late]
    start_keys, done_keys = (key + begun)[start[order]], (key + ended - early)[late]
    index = np.minimum(np.searchsorted(start_keys, done_keys), max(start_keys.size - 1, 0))
    both = start_keys[index] == done_keys if start_keys.size else np.zeros(dones.size, np.bool_)
    return _Pairs(starts[index[both]], dones[both])


def _counted(mask: Mask, first: Ints, group: Ints) -> Ints:
    """The running count of `mask` within each group, inclusive."""
    total = np.cumsum(mask)
    return total - (total - mask)[first][group]


def _axis(parts: CommunicationEvents, ends: Times) -> tuple[Times, Times]:
    """Starts and ends as ranks in time, shifted so that groups do not overlap."""
    times, rank = np.unique(np.concatenate((parts.starts, ends)), return_inverse=True)
    begins, stops = np.split(rank.astype(np.float64), 2)
    shift = np.unique(parts.group, return_inverse=True)[1] * float(times.size + 1)
    return begins + shift, np.maximum(stops, begins + 0.5) + shift


def _shown(parts: CommunicationEvents, ends: Times, events: Mask, by: Mask) -> Mask:
    """Which of the `events` overlap one of `by` in the same group."""
    begins, stops = _axis(parts, ends)
    shown = np.zeros(events.size, np.bool_)
    if by.any() and events.any():
        shown[events] = Union.of(begins[by], stops[by]).inside(begins[events], stops[events]) > 0
    return shown


def _merged(parts: CommunicationEvents, ends: Times, events: Mask) -> tuple[Mask, Times]:
    """Merge overlapping events of a group: (whether it is the first of its cluster, ends with the cluster's end)."""
    first, ends = np.zeros(events.size, np.bool_), ends.copy()
    if not events.any():
        return first, ends
    begins, stops = _axis(parts, ends)
    indices = np.flatnonzero(events)
    order = indices[np.argsort(begins[indices], kind="stable")]
    reached = np.maximum.accumulate(stops[order])
    leads = np.append(True, begins[order][1:] >= reached[:-1])
    heads = np.flatnonzero(leads)
    first[order[heads]] = True
    ends[order[heads]] = np.maximum.reduceat(ends[order], heads)
    return first, ends


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
