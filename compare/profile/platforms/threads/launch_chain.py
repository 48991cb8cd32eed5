"""Trace each operation of a CPU profile back, across threads, to the launch of its run.

A program is launched by an event `…Executable::Execute`, which hands one task per device to the thread pool, in the
order of their indices in the program.  In each task an event (`[3] …Execute`, `…ExecuteHelper`) hands over the
operations of one device, and these hand over parts of themselves (openxla/xla, xla/pjrt/cpu/cpu_client.cc and
xla/pjrt/common_pjrt_client.cc; the same in the versions that torch_xla 2.9 and jaxlib 0.10 are built from).

The chain ends where a run has completed: what a thread hands over after `ThunkExecutor::Execute (wait for completion)`
is another run, of any device, that waited for this one.
"""

import numpy as np

from compare.profile.platforms.threads.thread_timeline import LAST, NONE, RECORD, Spans, Threads
from compare.timeline.arrays import Ints, Mask

LAUNCHES_ALL = r"\w+Executable::Execute(?: \(.*\))?"
"""Launches a program on all its devices."""
_LAUNCHES_ONE = r"\[\d+\] \w+Executable::Execute.*|\w+Executable::ExecuteHelper.*"
"""Launches it on one device."""
COMPLETE = r"ThunkExecutor::Execute \(wait for completion\)"
"""Ends when a device has completed a run."""
REGION, LAUNCH_ALL, LAUNCH_ONE = range(3)


class LaunchGraph:
    """The nodes of the chain: regions and launches, by begin."""

    def __init__(self, threads: Threads):
        regions, launch = threads.regions, [threads.events_named(name) for name in (LAUNCHES_ALL, _LAUNCHES_ONE)]
        begins = np.concatenate([regions.begins, *(threads.begins[events] for events in launch)])
        order = np.argsort(begins, kind="stable")
        sizes = [regions.begins.size, *(events.size for events in launch)]
        ends = np.concatenate([regions.ends, *(threads.ends[events] for events in launch)])
        self.spans = Spans.of(begins[order], ends[order])
        self.kind = np.repeat([REGION, LAUNCH_ALL, LAUNCH_ONE], sizes)[order]
        self.event = np.concatenate([np.full(sizes[0], -1), *launch])[order]
        """The event of a launch; -1 for regions."""
        self._hand_overs(threads, np.concatenate([regions.context, np.full(sum(sizes[1:]), NONE)])[order])
        self._completions(threads)
        self._devices(threads)

    def _hand_overs(self, threads: Threads, context: Ints) -> None:
        records = threads.events_named(RECORD)
        positions, given = threads.begins[records], threads.given_context[records]
        order = np.argsort(given, kind="stable")
        record = np.append(order, -1)[np.searchsorted(given[order], context)]
        known = (context != NONE) & (np.append(given, NONE)[record] == context)
        self.handed_at = np.where(known, np.append(positions, NONE)[record], NONE)
        """The position at which a region was handed over; NONE for others, and where the profile does not show it."""
        around = self.spans.innermost(self.handed_at)
        self.before = np.where(self.kind == REGION, np.where(known, around, -1), self.spans.outer)
        """The node that encloses that position, or the launch; -1 for none."""
        self.giver = self.spans.innermost(positions)
        """The node that encloses each hand-over, in order; -1 for none."""
        self.given = np.full(records.size, -1)
        """The region of each hand-over; -1 where the profile ends before it."""
        self.given[record[known]] = np.flatnonzero(known)

    def _completions(self, threads: Threads) -> None:
        self.until = np.full(self.kind.size, LAST)
        """The position up to which the contents of each node belong to one run."""
        complete = threads.events_named(COMPLETE)
        node = self.spans.innermost(threads.begins[complete])
        np.minimum.at(self.until, node[node >= 0], threads.ends[complete[node >= 0]])

    def _devices(self, threads: Threads) -> None:
        before, nodes = self.before, np.arange(self.kind.size)
        source = np.append(self.kind, -1)[before]
        launches_one = self.kind == LAUNCH_ONE
        # A device's task of a launch contains a launch on one device; other tasks handed over there do not count.
        share = (self.kind == REGION) & (source == LAUNCH_ALL) & np.isin(nodes, before[launches_one])
        self.single = launches_one & (source != LAUNCH_ONE) & ~np.append(share, False)[before]
        self.device = np.where(self.single, 0, np.where(share, self._places(share), -1))
        launch = np.where(source == LAUNCH_ALL, np.append(self.event, -1)[before], self.event)
        self.run = np.where(self.single | share, launch, -1)
        in_time = (source >= 0) & (self.handed_at <= np.append(self.until, LAST)[before])
        follows = in_time & (launches_one & ~self.single | (self.kind == REGION) & (source != LAUNCH_ALL))
        self.root = np.where(follows, before, nodes)
        while (self.root[self.root] != self.root).any():
            self.root = self.root[self.root]

    def _places(self, share: Mask) -> Ints:
        """The device index of each task: tasks are handed over in this order, including those that never began."""
        counts = (np.append(self.kind, -1)[self.giver] == LAUNCH_ALL) & (
            (self.given < 0) | np.append(share, True)[self.given]
        )
        hand_overs = np.flatnonzero(counts)
        hand_overs = hand_overs[np.argsort(self.giver[hand_overs], kind="stable")]
        giver = self.giver[hand_overs]
        index = np.full(self.kind.size + 1, -1)
        index[self.given[hand_overs]] = np.arange(hand_overs.size) - np.searchsorted(giver, giver)
        return index[:-1]
