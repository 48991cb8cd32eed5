"""The rendezvous of devices in a CPU profile, and how long each device waits there for the others.

A collective of XLA:CPU begins with a rendezvous of its group: each participant arrives, waits until the last one has,
and only then moves data, each its own share; so `InProcessCommunicator::AllReduce` and the others in openxla/xla,
xla/backends/cpu/collectives/in_process_communicator.cc, and `Rendezvous` in xla/service/rendezvous.h.  The event
`Rendezvous` begins when a participant arrives.  It has its number in the order of arrival (`id`), the number of
participants (`num_threads`) and the key of the group (`name`); rounds of one key follow each other.

The wait is from a device's own arrival to the last one's.  `Wait: pending_threads=1/4` lasts longer, until the waiting
thread wakes up; the others do not cause that, and it counts as transfer.
"""

import re
from dataclasses import dataclass

import numpy as np

from compare.profile.platforms.threads.thread_timeline import LAST, Threads
from compare.timeline.arrays import Floats, Ints

_MEETS = r"Rendezvous|RendezvousSingle"
_MEMBERS = re.compile(r"global_devices=\[([\d, ]*)\]")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Every arrival at a rendezvous."""

    event: Ints
    wait_ns: Floats
    """Time until the last arrival; NaN where the profile does not show it."""
    round: Ints
    """Equal for arrivals that wait for each other; -1 unknown."""
    group: Ints
    """Index into `members`."""
    members: tuple[frozenset[int] | None, ...]
    """The devices of each group; `None` where it names none."""

    @property
    def highest(self) -> int:
        """The largest device number in any group."""
        return max((max(devices) for devices in self.members if devices), default=0)


def find_arrivals(threads: Threads) -> Arrivals:
    """The arrivals, by thread and time.

    The round of an arrival completes with the next arrival of the last number under its key.  A thread may be suspended
    between taking its number and the start of its event: then the last has arrived already, and it does not wait.
    """
    events = threads.events_named(_MEETS)
    keys = threads.words("name")[events]
    begins, ends = threads.time(threads.begins[events]), threads.time(threads.ends[events])
    order = np.lexsort((begins, keys.codes))
    positions = np.arange(events.size)
    last = (threads.numbers("id")[events] == threads.numbers("num_threads")[events] - 1)[order]
    after = np.minimum.accumulate(np.where(last, positions, events.size)[::-1])[::-1]
    before = np.maximum.accumulate(np.where(last, positions, -1))
    key, begins, ends = np.asarray(keys.codes, np.int64)[order], begins[order], ends[order]
    completes_later = (np.append(key, -1)[after] == key) & (np.append(begins, LAST)[after] <= ends)
    is_late = (before >= 0) & (key[before] == key) & (ends[before] >= begins)
    completes = np.where(completes_later, after, np.where(is_late, before, -1))
    waits = np.where(completes_later, np.append(begins, 0)[after] - begins, np.where(is_late, 0, np.nan)) / 1e3
    back = np.argsort(order)
    return Arrivals(
        event=events,
        wait_ns=waits[back],
        round=completes[back],
        group=key[back],
        members=tuple(_members(word) for word in keys.categories),
    )


def _members(key: str) -> frozenset[int] | None:
    match = _MEMBERS.search(key)
    return frozenset(map(int, match[1].split(","))) if match and match[1] else None
