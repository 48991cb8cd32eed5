"""Infer the device and the run of operations in a CPU profile that do not name them.

For most, the chain back to their launch gives both.  For runs that had to wait for others it does not: their devices
are narrowed down by the order in which they started to wait, by the groups in which they meet others, and because a
device takes part in a run once.  Where several remain, the device is unknown.
"""

from dataclasses import dataclass

import numpy as np

from compare.profile.platforms.threads.launch_chain import LAUNCH_ONE, LaunchGraph
from compare.profile.platforms.threads.rendezvous import Arrivals
from compare.profile.platforms.threads.thread_timeline import LAST, NONE, Threads
from compare.profile.platforms.threads.waiting import match_waiting_launches
from compare.timeline.arrays import Ints, Mask

_Possible = Mask
"""(executions, devices): whether each device is possible.  An execution is one device's part of one run."""


@dataclass(frozen=True, slots=True)
class Launches:
    """The device and run of each operation."""

    device: Ints
    """The index of its device in the program, replicas outermost; -1 unknown."""
    run: Ints
    """The event that launched its run, or, where unknown, the first rendezvous of its devices; -1 unknown."""


def find_launches(threads: Threads, events: Ints, arrivals: Arrivals | None = None) -> Launches:
    """The device and run of each event.  arrivals: where groups number devices by their index in the program."""
    graph = LaunchGraph(threads)
    node = _executions(graph, threads.begins[events])
    roots = np.unique(node[node >= 0])
    run, device = graph.run[roots], graph.device[roots]
    indices = np.arange(1 + max(int(graph.device.max(initial=0)), arrivals.highest if arrivals else 0))
    possible = (device[:, None] == indices) | (device < 0)[:, None]
    if (node >= 0).all():  # else something was running when the profile began, and what waited then is not shown
        for late in match_waiting_launches(graph, threads, roots[device < 0]):
            rows = np.searchsorted(roots, late.executions)
            run[rows] = late.run
            possible[rows] = [np.isin(indices, may) for may in late.devices]
    if arrivals is not None:
        execution = _executions(graph, threads.begins[arrivals.event])
        ours = np.flatnonzero(np.isin(execution, roots))
        row = np.searchsorted(roots, execution[ours])
        _keep_members(possible, row, arrivals.group[ours], arrivals)
        run = _run_together(run, row, arrivals.round[ours], arrivals.event[ours])
    _take_part_once(possible, run)
    device = np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), -1)
    row = np.where(node >= 0, np.searchsorted(roots, node), -1)
    device, run, single = (np.append(column, -1)[row] for column in (device, run, graph.single[roots]))
    if _at_once(threads, events[single == 1], run[single == 1]):
        device[single == 1] = -1  # a program for one device on several at once: the device is not shown
    return Launches(device, run)


def launch_times_ps(threads: Threads, run: Ints) -> Ints:
    """When each run was requested: at the first hand-over of the chain to its launch event."""
    graph = LaunchGraph(threads)
    position = threads.begins[run].copy()
    node = graph.spans.innermost(position)
    while (inside := node >= 0).any():
        handed = graph.handed_at[node]
        position = np.where(inside & (handed != NONE), handed, position)
        node = np.where(inside, graph.before[node], -1)
    return threads.time(position)


def device_places(threads: Threads) -> dict[int, int]:
    """Process number of each device -> its index in the program, for the program with the most devices."""
    graph = LaunchGraph(threads)
    launches_one = np.flatnonzero((graph.kind == LAUNCH_ONE) & (graph.run[graph.root] >= 0))
    launch = graph.run[graph.root[launches_one]]
    columns = [threads.numbers(stat) for stat in ("global_device_id", "replica", "partition")]
    number, replica, partition = (column[graph.event[launches_one]] for column in columns)
    partitions = threads.numbers("num_partitions")[launch]
    complete = (number != NONE) & (replica != NONE) & (partition != NONE) & (partitions != NONE)
    if not complete.any():
        return {}
    sizes = np.bincount(np.unique(launch[complete], return_inverse=True)[1])
    widest = complete & (launch == np.unique(launch[complete])[sizes.argmax()])
    return dict(zip(number[widest].tolist(), (replica * partitions + partition)[widest].tolist(), strict=True))


def _executions(graph: LaunchGraph, positions: Ints) -> Ints:
    """The root node of the chain at each position; -1 for none."""
    node = graph.spans.innermost(positions)
    node = np.where(positions <= np.append(graph.until, LAST)[node], node, -1)
    return np.append(graph.root, -1)[node]


def _keep_members(possible: _Possible, row: Ints, group: Ints, arrivals: Arrivals) -> None:
    """Keep only devices that belong to every group of an execution."""
    for execution, group_index in np.unique(np.stack([row, group]), axis=1).T.tolist():
        if members := arrivals.members[group_index]:
            possible[execution] &= np.isin(np.arange(possible.shape[1]), list(members))


def _run_together(run: Ints, row: Ints, round_: Ints, event: Ints) -> Ints:
    """Give executions of unknown runs the run of those they meet, directly or indirectly; else the first event."""
    row, round_, event = row[round_ >= 0], round_[round_ >= 0], event[round_ >= 0]
    far = np.iinfo(np.int64).max
    known = np.where(run >= 0, run, far)
    np.minimum.at(known, row, np.where(run[row] >= 0, far, event))
    while True:
        of_round = np.full(round_.max(initial=0) + 1, far)
        np.minimum.at(of_round, round_, known[row])
        better = known.copy()
        np.minimum.at(better, row, of_round[round_])
        better = np.where(run >= 0, run, better)
        if (better == known).all():
            return np.where(known == far, -1, known)
        known = better


def _take_part_once(possible: _Possible, run: Ints) -> None:
    """Remove the known devices of a run from the possible devices of its other executions, until nothing changes."""
    for run_number in np.unique(run[(possible.sum(axis=1) > 1) & (run >= 0)]).tolist():
        rows = np.flatnonzero(run == run_number)
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
