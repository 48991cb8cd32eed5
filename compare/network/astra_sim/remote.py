"""Memory that several ranks share, as ASTRA-sim's analytical memory simulates it: one access of a pool after another.

Source: `AnalyticalRemoteMemory.cc` of astra-memory-analytical.
"""

from collections import defaultdict, deque
from dataclasses import dataclass

from compare.network.astra_sim.clock import Action, RankClock
from compare.timeline.errors import TimingError

PER_NPU, PER_NODE, POOL = "PER_NPU_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteMemory:
    """What its file says; latency and rate in ticks, whole numbers as there."""

    kind: str
    """PER_NPU: a rank's accesses never wait; PER_NODE: they do for those of their node; POOL: for everybody's."""
    latency: int
    bytes_a_tick: int
    ranks_of_node: int = 1
    nodes: int = 1

    def check(self, num_ranks: int) -> None:
        """Raises `TimingError` where ASTRA-sim has no place for a rank."""
        if self.kind == PER_NODE and self.nodes * self.ranks_of_node < num_ranks:
            raise TimingError(
                f"memory.json: {self.nodes} nodes of {self.ranks_of_node} ranks, and the trace has {num_ranks:,}"
            )


class RemoteAccesses:
    """Those that wait, and those under way."""

    def __init__(self, memory: RemoteMemory) -> None:
        self._memory = memory
        self._waiting: defaultdict[int, deque[tuple[RankClock, int, Action]]] = defaultdict(deque)
        self._busy: set[int] = set()

    def issue(self, rank: int, timer: RankClock, num_bytes: int, end: Action) -> None:
        if self._memory.kind == PER_NPU:
            timer.after(self._ticks(num_bytes), end)
            return
        pool = 0 if self._memory.kind == POOL else rank // self._memory.ranks_of_node
        if pool in self._busy:
            self._waiting[pool].append((timer, num_bytes, end))
        else:
            self._begin(pool, timer, num_bytes, end)

    def _begin(self, pool: int, timer: RankClock, num_bytes: int, end: Action) -> None:
        self._busy.add(pool)
        timer.after(self._ticks(num_bytes), end)
        timer.after(self._ticks(num_bytes), lambda: self._free(pool))

    def _free(self, pool: int) -> None:
        if self._waiting[pool]:
            self._begin(pool, *self._waiting[pool].popleft())
        else:
            self._busy.remove(pool)

    def _ticks(self, num_bytes: int) -> int:
        return self._memory.latency + int(num_bytes / self._memory.bytes_a_tick)
