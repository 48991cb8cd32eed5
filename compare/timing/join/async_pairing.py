"""One event for each communication, of the several in which a profile may show it.

An asynchronous communication can stand on the line of asynchronous operations, from its start to its done; as a start
and a done on the device's main line; and on the line of another core that does the work.  What shows it best is kept,
what is left belongs to it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compare.timing.arrays import Ints, Mask, Times
from compare.timing.intervals import Union

WHOLE, START, DONE, INSIDE, BETWEEN = range(5)
"""Which part of its communication an event shows.  `inside`: another core's work for it.  `between`: neither end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationEvents:
    """Events that show communications.  group: equal for those of one collective in one execution of its program."""

    group: Ints
    half: NDArray[np.int8]
    own_line: Mask
    """On the line of asynchronous operations, where a start spans all of it."""
    starts: Times
    ends: Times


@dataclass(frozen=True, slots=True, kw_only=True)
class Communications:
    """Which of the events stand for communications, and until when; the others are parts of these."""

    stands: Mask
    ends: Times
    unfinished: Mask
    """Starts without a done."""
    unbegun: Mask
    """Dones without a start."""


def match_halves(parts: CommunicationEvents) -> Communications:
    """The line of asynchronous operations where it shows it, else its start and done, else the other core's work."""
    ends = parts.ends.copy()
    start, done = parts.half == START, parts.half == DONE
    stands = parts.own_line & (start | (parts.half == WHOLE))
    unfinished = unbegun = np.zeros(stands.size, np.bool_)
    for own_line in (True, False):
        here = parts.own_line == own_line
        found = _paired(parts, start & here, done & here)
        ends[found.starts] = np.maximum(ends[found.starts], parts.ends[found.dones])
        unpaired = done & here
        unpaired[found.dones] = False
        if own_line:
            stands |= unpaired
            continue
        others = here & (start | unpaired | (parts.half == WHOLE))
        others &= ~_shown(parts, ends, others, stands)
        stands |= others
        unbegun, unfinished = others & unpaired, others & start
        unfinished[found.starts] = False
    inside = parts.half == INSIDE
    inside &= ~_shown(parts, ends, inside, stands)
    first, ends = _merged(parts, ends, inside)
    return Communications(stands=stands | first, ends=ends, unfinished=unfinished, unbegun=unbegun)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The places of starts, and of the done of each."""

    starts: Ints
    dones: Ints


def _paired(parts: CommunicationEvents, start: Mask, done: Mask) -> _Pairs:
    """In each group the first start with the first done after it, and so on."""
    places = np.flatnonzero(start | done)
    order = places[np.lexsort((done[places], parts.starts[places], parts.group[places]))]
    if not order.size:
        return _Pairs(order, order)
    first = np.flatnonzero(np.diff(parts.group[order], prepend=-1))
    group = np.repeat(np.arange(first.size), np.diff(np.append(first, order.size)))
    begun, ended = (_counted(mask[order], first, group) for mask in (start, done))
    # A done before the first start belongs to one that began before anything was recorded.
    wide = 2 * order.size + 2
    early = np.maximum(np.maximum.accumulate(ended - begun + group * wide) - group * wide, 0)
    key = group * wide
    late = done[order] & (early == np.where(np.diff(group, prepend=-1), 0, np.roll(early, 1)))
    starts, dones = order[start[order]], order[late]
    start_keys, done_keys = (key + begun)[start[order]], (key + ended - early)[late]
    at = np.minimum(np.searchsorted(start_keys, done_keys), max(start_keys.size - 1, 0))
    both = start_keys[at] == done_keys if start_keys.size else np.zeros(dones.size, np.bool_)
    return _Pairs(starts[at[both]], dones[both])


def _counted(mask: Mask, first: Ints, group: Ints) -> Ints:
    """How many there are in each group up to each place, that included."""
    total = np.cumsum(mask)
    return total - (total - mask)[first][group]


def _axis(parts: CommunicationEvents, ends: Times) -> tuple[Times, Times]:
    """Begins and ends in the order of time, whole numbers, each group on a stretch of its own."""
    times, rank = np.unique(np.concatenate((parts.starts, ends)), return_inverse=True)
    begins, stops = np.split(rank.astype(np.float64), 2)
    shift = np.unique(parts.group, return_inverse=True)[1] * float(times.size + 1)
    return begins + shift, np.maximum(stops, begins + 0.5) + shift


def _shown(parts: CommunicationEvents, ends: Times, events: Mask, by: Mask) -> Mask:
    """Which of the events overlap one of the same group that stands for the communication already."""
    begins, stops = _axis(parts, ends)
    shown = np.zeros(events.size, np.bool_)
    if by.any() and events.any():
        shown[events] = Union.of(begins[by], stops[by]).inside(begins[events], stops[events]) > 0
    return shown


def _merged(parts: CommunicationEvents, ends: Times, events: Mask) -> tuple[Mask, Times]:
    """Of events of a group that overlap the first, until the last of them ends."""
    first, ends = np.zeros(events.size, np.bool_), ends.copy()
    if not events.any():
        return first, ends
    begins, stops = _axis(parts, ends)
    places = np.flatnonzero(events)
    order = places[np.argsort(begins[places], kind="stable")]
    reached = np.maximum.accumulate(stops[order])
    leads = np.append(True, begins[order][1:] >= reached[:-1])
    heads = np.flatnonzero(leads)
    first[order[heads]] = True
    ends[order[heads]] = np.maximum.reduceat(ends[order], heads)
    return first, ends
