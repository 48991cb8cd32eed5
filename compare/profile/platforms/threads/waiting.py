"""Runs that could not start when they were launched, because they had to wait for others.

A program of several devices waits until the previous one has completed.  The thread that completes that one hands it
over, the last waiting device first, as waiters are called (`PjRtCpuExecutable::Execute`, "Gang schedule
collectives", in openxla/xla, xla/pjrt/cpu/cpu_client.cc; `AsyncValue::EnqueueWaiter` in
xla/tsl/concurrency/async_value.cc).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from compare.profile.platforms.threads.launch_chain import LAUNCH_ONE, LaunchGraph
from compare.profile.platforms.threads.thread_timeline import LAST, NONE, Threads
from compare.timeline.arrays import Ints


@dataclass(frozen=True, slots=True)
class LateRun:
    """The executions of one run after its wait."""

    run: int
    executions: Ints
    """The nodes where they begin."""
    devices: tuple[Ints, ...]
    """Possible devices of each execution: several where they started to wait at the same time."""


@dataclass(frozen=True, slots=True)
class _WaitingLaunches:
    """Launches on one device that neither ran it nor handed it over, by run and time."""

    run: Ints
    device: Ints
    begins: Ints
    ends: Ints


def match_waiting_launches(graph: LaunchGraph, threads: Threads, late: Ints) -> Iterator[LateRun]:
    """Match executions without a known launch with launches that had to wait, both in order.

    Yields nothing where something was running when the profile began: what waited then is not shown.
    """
    idle = _idle(graph, threads)
    if not late.size or late.size > idle.run.size or (graph.handed_at[late] == NONE).any():
        return
    handed = threads.time(graph.handed_at[late])
    order = np.argsort(handed, kind="stable")
    late, handed = late[order], handed[order]
    edges = [0, *(np.flatnonzero(np.diff(idle.run)) + 1).tolist(), idle.run.size]
    launch = idle.run[edges[:-1]]
    began, ended = threads.time(threads.begins[launch]), threads.time(threads.ends[launch])
    for index, (first, stop) in enumerate(pairwise(edges)):
        late_rows = slice(first, stop)
        if late[late_rows].size < stop - first or handed[first] < idle.begins[late_rows].max():
            return
        if index and ended[:index].max() > began[index]:
            return  # launched by several threads at once: the order is unknown
        threads_of = np.unique(threads.thread_of(graph.handed_at[late[late_rows]]))
        if threads_of.size == 1:
            yield LateRun(int(idle.run[first]), late[late_rows], tuple(_last_first(idle, first, stop)))


def _idle(graph: LaunchGraph, threads: Threads) -> _WaitingLaunches:
    gives = np.isin(np.arange(graph.kind.size), graph.giver)
    node = np.flatnonzero((graph.kind == LAUNCH_ONE) & ~gives & (graph.until == LAST))
    root = graph.root[node]
    node, root = node[graph.device[root] >= 0], root[graph.device[root] >= 0]
    if np.unique(graph.single[root]).size > 1:  # programs of one device do not wait their turn among the others
        node, root = node[:0], root[:0]
    begins = threads.time(graph.spans.begins[node])
    order = np.lexsort((begins, threads.time(threads.begins[graph.run[root]])))
    node, root = node[order], root[order]
    return _WaitingLaunches(graph.run[root], graph.device[root], begins[order], threads.time(graph.spans.ends[node]))


def _last_first(idle: _WaitingLaunches, first: int, stop: int) -> Iterator[Ints]:
    """The possible devices, in the order in which they are called.  The order of overlapping launches is unknown."""
    begins, ends, device = idle.begins[first:stop], idle.ends[first:stop], idle.device[first:stop]
    earliest = (ends[None, :] <= begins[:, None]).sum(axis=1)
    latest = device.size - 1 - (begins[None, :] >= ends[:, None]).sum(axis=1)
    for nth in reversed(range(device.size)):
        yield device[(earliest <= nth) & (nth <= latest)]
