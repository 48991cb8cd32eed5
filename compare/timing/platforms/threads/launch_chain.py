"""The way back from an operation of a CPU profile to the launch of its run, over the threads in between.

A program is launched by an event `…Executable::Execute`, which hands over one piece of work for each of its devices,
in the order of their places in the program.  In each of them an event (`[3] …Execute`, `…ExecuteHelper`) hands over
the operations of one device, and these hand over parts of themselves (openxla/xla, xla/pjrt/cpu/cpu_client.cc and
xla/pjrt/common_pjrt_client.cc; so do the versions that torch_xla 2.9 and jaxlib 0.10 are built from).

The way ends where a run has completed: what a thread hands over after `ThunkExecutor::Execute (wait for completion)`
is another run that had waited for this one, of any device.
"""

import numpy as np

from compare.timing.arrays import Ints, Mask
from compare.timing.platforms.threads.thread_timeline import LAST, NONE, RECORD, Spans, Threads

LAUNCHES_ALL = r"\w+Executable::Execute(?: \(.*\))?"
"""Launches a program on all its devices."""
_LAUNCHES_ONE = r"\[\d+\] \w+Executable::Execute.*|\w+Executable::ExecuteHelper.*"
"""Launches it on one of them."""
COMPLETE = r"ThunkExecutor::Execute \(wait for completion\)"
"""Ends when all that a device does in a run is done."""
REGION, LAUNCH_ALL, LAUNCH_ONE = range(3)


class LaunchGraph:
    """The nodes of the way back: regions and launches, by begin."""

    def __init__(self, threads: Threads):
        regions, launch = threads.regions, [threads.events_named(name) for name in (LAUNCHES_ALL, _LAUNCHES_ONE)]
        begins = np.concatenate([regions.begins, *(threads.begins[own] for own in launch)])
        order = np.argsort(begins, kind="stable")
        sizes = [regions.begins.size, *(own.size for own in launch)]
        ends = np.concatenate([regions.ends, *(threads.ends[own] for own in launch)])
        self.spans = Spans.of(begins[order], ends[order])
        self.kind = np.repeat([REGION, LAUNCH_ALL, LAUNCH_ONE], sizes)[order]
        self.event = np.concatenate([np.full(sizes[0], -1), *launch])[order]
        """Of a launch."""
        self._hand_overs(threads, np.concatenate([regions.context, np.full(sum(sizes[1:]), NONE)])[order])
        self._completions(threads)
        self._devices(threads)

    def _hand_overs(self, threads: Threads, context: Ints) -> None:
        records = threads.events_named(RECORD)
        at, made = threads.begins[records], threads.given_context[records]
        order = np.argsort(made, kind="stable")
        found = np.append(order, -1)[np.searchsorted(made[order], context)]
        known = (context != NONE) & (np.append(made, NONE)[found] == context)
        self.handed_at = np.where(known, np.append(at, NONE)[found], NONE)
        """Where a region was handed over; NONE of others, and where the profile does not show it."""
        around = self.spans.innermost(self.handed_at)
        self.before = np.where(self.kind == REGION, np.where(known, around, -1), self.spans.outer)
        """What lies around that, or around the launch; -1 for none."""
        self.giver = self.spans.innermost(at)
        """What lies around each hand-over, in order; -1 for none."""
        self.given = np.full(records.size, -1)
        """The region of each, -1 where the profile ends before it."""
        self.given[found[known]] = np.flatnonzero(known)

    def _completions(self, threads: Threads) -> None:
        self.until = np.full(self.kind.size, LAST)
        """Up to where what happens in it belongs to one run."""
        complete = threads.events_named(COMPLETE)
        node = self.spans.innermost(threads.begins[complete])
        np.minimum.at(self.until, node[node >= 0], threads.ends[complete[node >= 0]])

    def _devices(self, threads: Threads) -> None:
        before, every = self.before, np.arange(self.kind.size)
        source = np.append(self.kind, -1)[before]
        one = self.kind == LAUNCH_ONE
        # A device's share of a launch holds a launch for one; what else may be handed over there is no share.
        share = (self.kind == REGION) & (source == LAUNCH_ALL) & np.isin(every, before[one])
        self.single = one & (source != LAUNCH_ONE) & ~np.append(share, False)[before]
        self.device = np.where(self.single, 0, np.where(share, self._places(share), -1))
        launch = np.where(source == LAUNCH_ALL, np.append(self.event, -1)[before], self.event)
        self.run = np.where(self.single | share, launch, -1)
        in_time = (source >= 0) & (self.handed_at <= np.append(self.until, LAST)[before])
        follows = in_time & (one & ~self.single | (self.kind == REGION) & (source != LAUNCH_ALL))
        self.root = np.where(follows, before, every)
        while (self.root[self.root] != self.root).any():
            self.root = self.root[self.root]

    def _places(self, share: Mask) -> Ints:
        """The place of each share's device: shares are handed over in this order, also those that never began."""
        counts = (np.append(self.kind, -1)[self.giver] == LAUNCH_ALL) & (
            (self.given < 0) | np.append(share, True)[self.given]
        )
        own = np.flatnonzero(counts)
        own = own[np.argsort(self.giver[own], kind="stable")]
        giver = self.giver[own]
        place = np.full(self.kind.size + 1, -1)
        place[self.given[own]] = np.arange(own.size) - np.searchsorted(giver, giver)
        return place[:-1]
