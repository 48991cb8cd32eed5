"""Runs that could not start when they were launched, because they had to wait for others.

A program of several devices waits until the one before has completed.  It is then handed over by the thread that has
completed that, the device that came to wait last first, as waiters are called (`PjRtCpuExecutable::Execute`, "Gang
schedule collectives", in openxla/xla, xla/pjrt/cpu/cpu_client.cc; `AsyncValue::EnqueueWaiter` in
xla/tsl/concurrency/async_value.cc).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from compare.timing.arrays import Ints
from compare.timing.platforms.threads.launch_chain import LAUNCH_ONE, LaunchGraph
from compare.timing.platforms.threads.thread_timeline import LAST, NONE, Threads


@dataclass(frozen=True, slots=True)
class Late:
    """What the devices of one run did after it had waited."""

    run: int
    executions: Ints
    """The nodes where they begin."""
    places: tuple[Ints, ...]
    """For each the devices that it may be: several where they came to wait at the same time."""


@dataclass(frozen=True, slots=True)
class _Idle:
    """Launches for one device that neither ran it nor handed it over, in order of runs and time."""

    run: Ints
    place: Ints
    begins: Ints
    ends: Ints


def match_waiting_launches(ways: LaunchGraph, threads: Threads, late: Ints) -> Iterator[Late]:
    """Match executions of which no launch is known with launches that had to wait, both in order.

    None where something was under way when the profile began: what waited then it does not show.
    """
    idle = _idle(ways, threads)
    if not late.size or late.size > idle.run.size or (ways.handed_at[late] == NONE).any():
        return
    handed = threads.time(ways.handed_at[late])
    order = np.argsort(handed, kind="stable")
    late, handed = late[order], handed[order]
    edges = [0, *(np.flatnonzero(np.diff(idle.run)) + 1).tolist(), idle.run.size]
    launch = idle.run[edges[:-1]]
    began, ended = threads.time(threads.begins[launch]), threads.time(threads.ends[launch])
    for number, (first, behind) in enumerate(pairwise(edges)):
        own = slice(first, behind)
        if late[own].size < behind - first or handed[first] < idle.begins[own].max():
            return
        if number and ended[:number].max() > began[number]:
            return  # launched by several threads at once: which came first is not known
        threads_of = np.unique(threads.thread_of(ways.handed_at[late[own]]))
        if threads_of.size == 1:
            yield Late(int(idle.run[first]), late[own], tuple(_last_first(idle, first, behind)))


def _idle(ways: LaunchGraph, threads: Threads) -> _Idle:
    gives = np.isin(np.arange(ways.kind.size), ways.giver)
    node = np.flatnonzero((ways.kind == LAUNCH_ONE) & ~gives & (ways.until == LAST))
    root = ways.root[node]
    node, root = node[ways.device[root] >= 0], root[ways.device[root] >= 0]
    if np.unique(ways.single[root]).size > 1:  # programs of one device do not wait their turn among the others
        node, root = node[:0], root[:0]
    begins = threads.time(ways.spans.begins[node])
    order = np.lexsort((begins, threads.time(threads.begins[ways.run[root]])))
    node, root = node[order], root[order]
    return _Idle(ways.run[root], ways.device[root], begins[order], threads.time(ways.spans.ends[node]))


def _last_first(idle: _Idle, first: int, behind: int) -> Iterator[Ints]:
    """The places in the order in which they are called.  Launches that overlap may have come either way round."""
    begins, ends, place = idle.begins[first:behind], idle.ends[first:behind], idle.place[first:behind]
    earliest = (ends[None, :] <= begins[:, None]).sum(axis=1)
    latest = place.size - 1 - (begins[None, :] >= ends[:, None]).sum(axis=1)
    for came in reversed(range(place.size)):
        yield place[(earliest <= came) & (came <= latest)]
