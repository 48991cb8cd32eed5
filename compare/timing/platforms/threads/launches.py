"""Which device and which run an operation of a CPU profile belongs to, where it does not say so itself.

Of most, the way back to their launch tells both.  Of runs that had to wait for others it does not: of these the
devices are what is left by the order in which they came to wait, by the groups in which they meet others, and by a
device taking part in a run once.  Where more than one is left the device is not known.
"""

from dataclasses import dataclass

import numpy as np

from compare.timing.arrays import Ints, Mask
from compare.timing.platforms.threads.launch_chain import LAUNCH_ONE, LaunchGraph
from compare.timing.platforms.threads.rendezvous import Arrivals
from compare.timing.platforms.threads.thread_timeline import LAST, NONE, Threads
from compare.timing.platforms.threads.waiting import match_waiting_launches

_Possible = Mask
"""Executions × places: what the device of each may be.  An execution is what one device does in one run."""


@dataclass(frozen=True, slots=True)
class Launches:
    """What launched each of some operations."""

    device: Ints
    """The place of its device in the program, replicas outermost; -1 unknown."""
    run: Ints
    """The event that launched its run, or where that is not known the first at which devices of it meet; -1 unknown."""


def find_launches(threads: Threads, events: Ints, met: Arrivals | None = None) -> Launches:
    """The device and the run of each of these events.  met: of programs whose devices are numbered by their places."""
    ways = LaunchGraph(threads)
    node = _executions(ways, threads.begins[events])
    roots = np.unique(node[node >= 0])
    run, device = ways.run[roots], ways.device[roots]
    places = np.arange(1 + max(int(ways.device.max(initial=0)), met.highest if met else 0))
    possible = (device[:, None] == places) | (device < 0)[:, None]
    if (node >= 0).all():  # else something was under way when the profile began: what waited then it does not show
        for late in match_waiting_launches(ways, threads, roots[device < 0]):
            rows = np.searchsorted(roots, late.executions)
            run[rows] = late.run
            possible[rows] = [np.isin(places, may) for may in late.places]
    if met is not None:
        at = _executions(ways, threads.begins[met.event])
        ours = np.flatnonzero(np.isin(at, roots))
        row = np.searchsorted(roots, at[ours])
        _keep_members(possible, row, met.group[ours], met)
        run = _run_together(run, row, met.round[ours], met.event[ours])
    _take_part_once(possible, run)
    device = np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), -1)
    row = np.where(node >= 0, np.searchsorted(roots, node), -1)
    device, run, single = (np.append(column, -1)[row] for column in (device, run, ways.single[roots]))
    if _at_once(threads, events[single == 1], run[single == 1]):
        device[single == 1] = -1  # a program for one device, on several at once: on which, nothing says
    return Launches(device, run)


def launch_times_ps(threads: Threads, run: Ints) -> Ints:
    """When each of these runs was asked for: by the first thread on the way to the event that launched it."""
    ways = LaunchGraph(threads)
    at = threads.begins[run].copy()
    node = ways.spans.innermost(at)
    while (inside := node >= 0).any():
        handed = ways.handed_at[node]
        at = np.where(inside & (handed != NONE), handed, at)
        node = np.where(inside, ways.before[node], -1)
    return threads.time(at)


def device_places(threads: Threads) -> dict[int, int]:
    """The place in the program of each device, by its number in the process, of the program with the most devices."""
    ways = LaunchGraph(threads)
    one = np.flatnonzero((ways.kind == LAUNCH_ONE) & (ways.run[ways.root] >= 0))
    launch = ways.run[ways.root[one]]
    columns = [threads.numbers(stat) for stat in ("global_device_id", "replica", "partition")]
    number, replica, partition = (column[ways.event[one]] for column in columns)
    partitions = threads.numbers("num_partitions")[launch]
    told = (number != NONE) & (replica != NONE) & (partition != NONE) & (partitions != NONE)
    if not told.any():
        return {}
    sizes = np.bincount(np.unique(launch[told], return_inverse=True)[1])
    widest = told & (launch == np.unique(launch[told])[sizes.argmax()])
    return dict(zip(number[widest].tolist(), (replica * partitions + partition)[widest].tolist(), strict=True))


def _executions(ways: LaunchGraph, at: Ints) -> Ints:
    """Which node launched what happens at each place, as far back as the way leads; -1 for none."""
    node = ways.spans.innermost(at)
    node = np.where(at <= np.append(ways.until, LAST)[node], node, -1)
    return np.append(ways.root, -1)[node]


def _keep_members(possible: _Possible, row: Ints, group: Ints, met: Arrivals) -> None:
    """Leave only devices that belong to every group in which an execution meets others."""
    for execution, number in np.unique(np.stack([row, group]), axis=1).T.tolist():
        if members := met.members[number]:
            possible[execution] &= np.isin(np.arange(possible.shape[1]), list(members))


def _run_together(run: Ints, row: Ints, round_: Ints, event: Ints) -> Ints:
    """Give executions of unknown runs that of those they meet, directly or through others; else the first event's."""
    row, round_, event = row[round_ >= 0], round_[round_ >= 0], event[round_ >= 0]
    far = np.iinfo(np.int64).max
    found = np.where(run >= 0, run, far)
    np.minimum.at(found, row, np.where(run[row] >= 0, far, event))
    while True:
        of_round = np.full(round_.max(initial=0) + 1, far)
        np.minimum.at(of_round, round_, found[row])
        better = found.copy()
        np.minimum.at(better, row, of_round[round_])
        better = np.where(run >= 0, run, better)
        if (better == found).all():
            return np.where(found == far, -1, found)
        found = better


def _take_part_once(possible: _Possible, run: Ints) -> None:
    """Take devices that are known in a run from what others of the run may be, until that tells no more."""
    for each in np.unique(run[(possible.sum(axis=1) > 1) & (run >= 0)]).tolist():
        rows = np.flatnonzero(run == each)
        while True:
            known = possible[rows].sum(axis=1) == 1
            taken = np.ix_(rows[~known], np.flatnonzero(possible[rows[known]].any(axis=0)))
            if not possible[taken].any():
                break
            possible[taken] = False


def _at_once(threads: Threads, events: Ints, run: Ints) -> bool:
    """Whether any two of these runs overlap in time."""
    if not events.size:
        return False
    order = np.argsort(run, kind="stable")
    first = np.flatnonzero(np.diff(run[order], prepend=-2))
    begins = np.minimum.reduceat(threads.time(threads.begins[events])[order], first)
    ends = np.maximum.reduceat(threads.time(threads.ends[events])[order], first)
    by_begin = np.argsort(begins, kind="stable")
    return bool((ends[by_begin][:-1] > begins[by_begin][1:]).any())
