"""Which communication of one timeline is which of another: by what they are and their order, never by the clock.

A slower step is still the same step: what runs equally often in both is matched first to first, second to second.
Where one side runs something more often, those are left over that fit the other side worst.
"""

from dataclasses import dataclass

import numpy as np

from compare.timing.arrays import Ints, Mask, Times

PAYLOAD, CONTEXT, DURATION, NAME, OFFSET = 4.0, 1.0, 1.0, 1.0, 1e-6
"""What a bad fit costs: another payload; for each settled communication more or less before it; another length,
relative; another name; another offset in the step, which only ever breaks a tie."""

FAR = 10
"""More communications than this between two are as bad as this many."""

MOST = 4_000_000
"""Cells of the largest table that is searched; beyond it the first are matched and the last left over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCommunications:
    """The communications of one device in one step, by start."""

    key: Ints
    """What it is: the same number for the same scope, axes and kind in both timelines."""
    payload: Times
    offset: Times
    """From the start of the step."""
    duration: Times
    name: Ints
    """The collective that it executes, numbered alike in both timelines."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Places of the matched ones; what is in neither is left over."""

    left: Ints
    right: Ints


def align(left: StepCommunications, right: StepCommunications) -> Pairs:
    """Match as many as can be, in order, within each key."""
    size = int(max(left.key.max(initial=-1), right.key.max(initial=-1))) + 1
    counts = [np.bincount(side.key, minlength=size) for side in (left, right)]
    add_overlap = counts[0] == counts[1]
    found = [[_ordered(side.key, add_overlap)] for side in (left, right)]
    before = [np.cumsum(add_overlap[side.key]) for side in (left, right)]
    for key in np.flatnonzero(~add_overlap & (counts[0] > 0) & (counts[1] > 0)):
        own = [np.flatnonzero(side.key == key) for side in (left, right)]
        few, many = (0, 1) if own[0].size < own[1].size else (1, 0)
        sides = (left, right)
        chosen = _chosen(_Ends(sides[few], own[few], before[few]), _Ends(sides[many], own[many], before[many]))
        found[few].append(own[few])
        found[many].append(own[many][chosen])
    return Pairs(*(np.concatenate(parts) for parts in found))


def _ordered(keys: Ints, add_overlap: Mask) -> Ints:
    """The places of settled keys, key by key, each in order."""
    own = np.flatnonzero(add_overlap[keys])
    return own[np.argsort(keys[own], kind="stable")]


@dataclass(frozen=True, slots=True)
class _Ends:
    """The runs of one key on one side."""

    runs: StepCommunications
    own: Ints
    before: Ints
    """Settled communications up to each of the side's runs."""


def _chosen(few: _Ends, many: _Ends) -> Ints:
    """For each of the few, in order, which of the many it is, so that all together fit best.

    After i of the few have passed over k of the many, the next pairs i with i + k: a table of few × (difference + 1).
    """
    size, spare = few.own.size, many.own.size - few.own.size
    if size * (spare + 1) > MOST:
        return np.arange(size)
    table = np.empty((size, spare + 1))
    reach = np.arange(spare + 1)
    for row in range(size):
        cost = _cost(few, row, many, row + reach)
        table[row] = cost if row == 0 else cost + np.minimum.accumulate(table[row - 1])
    chosen = np.empty(size, dtype=np.int64)
    passed = spare
    for row in range(size - 1, -1, -1):
        passed = int(np.argmin(table[row, : passed + 1]))
        chosen[row] = row + passed
    return chosen


def _cost(few: _Ends, row: int, many: _Ends, columns: Ints) -> Times:
    """How badly one of the few fits each of some of the many."""
    one, others = few.own[row], many.own[columns]
    runs, more = few.runs, many.runs
    length = np.maximum(runs.duration[one], more.duration[others])
    apart = np.abs(runs.duration[one] - more.duration[others])
    relative = np.divide(apart, length, out=np.zeros_like(apart), where=length > 0)
    drift = np.abs(runs.offset[one] - more.offset[others])
    span = max(float(runs.offset[-1]), float(more.offset[-1]), 1.0)
    payloads = runs.payload[one], more.payload[others]
    same = (payloads[0] == payloads[1]) | (np.isnan(payloads[0]) & np.isnan(payloads[1]))
    context = np.minimum(np.abs(few.before[one] - many.before[others]), FAR)
    cost: Times = PAYLOAD * ~same + CONTEXT * context + DURATION * relative + OFFSET * drift / span
    return np.asarray(cost + NAME * (runs.name[one] != more.name[others]))
