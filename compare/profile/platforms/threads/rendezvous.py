"""The rendezvous of devices in a CPU profile, and how long each device waits there for the others.

A collective of XLA:CPU begins with a rendezvous of its group: each participant arrives, waits until the last one has,
and only then moves data, each its own share; so `InProcessCommunicator::AllReduce` and the others in openxla/xla,
xla/backends/cpu/collectives/in_process_communicator.cc, and `Rendezvous` in xla/service/rendezvous.h.  The event
`Rendezvous` begins when a participant arrives.  It has its number in the order of arrival (`id`), the number of
participants (`num_threads`) and the key of the group (`name`); rounds of one key follow each other.

The wait is from a device's own arrival to the last one's.  `Wait: pending_threads=1/4` lasts longer, until the waiting
thread wakes up; the others do not cause that, and it counts as transfer.
"""

from dataclasses import dataclass

import numpy as np

from compare.profile.platforms.threads.thread_timeline import LAST, Threads
from compare.timeline.arrays import Floats, Ints

_MEETS = r"Rendezvous|RendezvousSingle"


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Every arrival at a rendezvous."""

    event: Ints
    wait_ns: Floats
    """Time until the last arrival; NaN where the profile does not show it."""


def find_arrivals(threads: Threads) -> Arrivals:
    """The arrivals, by thread and time.

    A round completes with the next arrival of the last number under its key.  A thread may be suspended between taking
    its number and the start of its event: then the last has arrived already, and it does not wait.
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
    waits = np.where(completes_later, np.append(begins, 0)[after] - begins, np.where(is_late, 0, np.nan)) / 1e3
    return Arrivals(event=events, wait_ns=waits[np.argsort(order)])
