"""Match the communications of two timelines by what they are and by their order, never by the clock.

A slower step is still the same step: what runs equally often in both is matched first to first, second to second.
Where one side runs something more often, its worst fits stay unmatched.
"""

from dataclasses import dataclass

import numpy as np

from compare.timeline.arrays import Ints, Mask, Times

PAYLOAD, CONTEXT, DURATION, NAME, OFFSET = 4.0, 1.0, 1.0, 1.0, 1e-6
"""Costs of a mismatch: another payload; each communication of equal counts more or less before it; relative
difference of duration; another name; another offset in the step, which only breaks ties."""

FAR = 10
"""Cap on the difference in communications before a pair."""

MOST_CELLS = 4_000_000
"""Cells of the largest cost table; beyond it the first runs are matched and the last stay unmatched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCommunications:
    """The communications of one device in one step, by start."""

    key: Ints
    """One number per scope, axes and kind, the same in both timelines."""
    payload: Times
    offset: Times
    """From the start of the step."""
    duration: Times
    name: Ints
    """The collective that it executes, with the same numbers in both timelines."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Indices of the matched communications; all others are unmatched."""

    left: Ints
    right: Ints


def align(left: StepCommunications, right: StepCommunications) -> Pairs:
    """Match as many as possible, in order, within each key."""
    size = int(max(left.key.max(initial=-1), right.key.max(initial=-1))) + 1
    counts = [np.bincount(side.key, minlength=size) for side in (left, right)]
    equal_counts = counts[0] == counts[1]
    matched = [[_ordered(side.key, equal_counts)] for side in (left, right)]
    before = [np.cumsum(equal_counts[side.key]) for side in (left, right)]
    for key in np.flatnonzero(~equal_counts & (counts[0] > 0) & (counts[1] > 0)):
        rows = [np.flatnonzero(side.key == key) for side in (left, right)]
        few, many = (0, 1) if rows[0].size < rows[1].size else (1, 0)
        sides = (left, right)
        chosen = _chosen(_Ends(sides[few], rows[few], before[few]), _Ends(sides[many], rows[many], before[many]))
        matched[few].append(rows[few])
        matched[many].append(rows[many][chosen])
    return Pairs(*(np.concatenate(parts) for parts in matched))


def _ordered(keys: Ints, equal_counts: Mask) -> Ints:
    """Indices of the runs whose key is equally often on both sides, key by key, each in order."""
    rows = np.flatnonzero(equal_counts[keys])
    return rows[np.argsort(keys[rows], kind="stable")]


@dataclass(frozen=True, slots=True)
class _Ends:
    """The runs of one key on one side."""

    runs: StepCommunications
    rows: Ints
    before: Ints
    """For each run of the side, the communications of equal counts up to it."""


def _chosen(few: _Ends, many: _Ends) -> Ints:
    """For each of the few, in order, its match among the many, at the least total cost.

    Dynamic programming over (i of the few, k of the many skipped so far), which pairs i with i + k.
    """
    size, spare = few.rows.size, many.rows.size - few.rows.size
    if size * (spare + 1) > MOST_CELLS:
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
    """The cost of matching one of the few with each of some of the many."""
    run, others = few.rows[row], many.rows[columns]
    runs, other_runs = few.runs, many.runs
    length = np.maximum(runs.duration[run], other_runs.duration[others])
    apart = np.abs(runs.duration[run] - other_runs.duration[others])
    relative = np.divide(apart, length, out=np.zeros_like(apart), where=length > 0)
    drift = np.abs(runs.offset[run] - other_runs.offset[others])
    span = max(float(runs.offset[-1]), float(other_runs.offset[-1]), 1.0)
    payloads = runs.payload[run], other_runs.payload[others]
    same = (payloads[0] == payloads[1]) | (np.isnan(payloads[0]) & np.isnan(payloads[1]))
    context = np.minimum(np.abs(few.before[run] - many.before[others]), FAR)
    cost: Times = PAYLOAD * ~same + CONTEXT * context + DURATION * relative + OFFSET * drift / span
    return np.asarray(cost + NAME * (runs.name[run] != other_runs.name[others]))
