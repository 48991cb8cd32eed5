"""Where the devices of a CPU profile meet, and how long each waits there for the others.

A collective of XLA:CPU begins with a rendezvous of its group: each participant arrives, waits until the last one has,
and only then moves data, each its own share; so `InProcessCommunicator::AllReduce` and the others in openxla/xla,
xla/backends/cpu/collectives/in_process_communicator.cc, and `Rendezvous` in xla/service/rendezvous.h.  The event
`Rendezvous` begins when a participant arrives.  It bears its number in the order of arrival (`id`), how many there are
(`num_threads`) and the key of the group (`name`); rounds under one key follow each other.

Waiting is from a device's own arrival to the last one's.  `Wait: pending_threads=1/4` lasts longer, until the waiting
thread is awake again; that is not the others' doing, and counts as moving.
"""

import re
from dataclasses import dataclass

import numpy as np

from compare.timing.arrays import Floats, Ints
from compare.timing.platforms.threads.thread_timeline import LAST, Threads

_MEETS = r"Rendezvous|RendezvousSingle"
_MEMBERS = re.compile(r"global_devices=\[([\d, ]*)\]")


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Every arrival at a rendezvous."""

    event: Ints
    wait_ns: Floats
    """Until the last one arrived; NaN where the profile does not show who that was."""
    round: Ints
    """Equal for those who wait for each other, -1 unknown."""
    group: Ints
    """Which of the members."""
    members: tuple[frozenset[int] | None, ...]
    """The devices of each group, None where it names none."""

    @property
    def highest(self) -> int:
        """The greatest number of a device in any group."""
        return max((max(own) for own in self.members if own), default=0)


def find_arrivals(threads: Threads) -> Arrivals:
    """The arrivals, by thread and time.

    The round of an arrival is complete with the next one of the last number under its key.  A thread may be put aside
    between taking its number and the begin of its event: then the last number is there already, and it waits for none.
    """
    events = threads.events_named(_MEETS)
    keys = threads.words("name")[events]
    begins, ends = threads.time(threads.begins[events]), threads.time(threads.ends[events])
    order = np.lexsort((begins, keys.codes))
    places = np.arange(events.size)
    last = (threads.numbers("id")[events] == threads.numbers("num_threads")[events] - 1)[order]
    after = np.minimum.accumulate(np.where(last, places, events.size)[::-1])[::-1]
    before = np.maximum.accumulate(np.where(last, places, -1))
    key, begins, ends = np.asarray(keys.codes, np.int64)[order], begins[order], ends[order]
    comes = (np.append(key, -1)[after] == key) & (np.append(begins, LAST)[after] <= ends)
    there = (before >= 0) & (key[before] == key) & (ends[before] >= begins)
    completes = np.where(comes, after, np.where(there, before, -1))
    waits = np.where(comes, np.append(begins, 0)[after] - begins, np.where(there, 0, np.nan)) / 1e3
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
