"""The busiest link of a step: how many bytes the messages of all ranks put on it, and over how many hops they go.

A message takes the shorter way; half way round a ring it goes upwards.  Through a switch it takes the link up from its
sender and the link down to its receiver.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compare.network.machines.machine import FULLY_CONNECTED, LINE, SWITCH, Dim


@dataclass(frozen=True, slots=True)
class Load:
    """Of one step in one dim."""

    hops: int
    """Of the longest way."""
    up_bytes: float
    """On the busiest link, in the direction of rising coordinates, or of a switch or a full mesh, in any."""
    down_bytes: float = 0.0

    def ns(self, dim: Dim) -> float:
        """`hops × latency + bytes on the busiest link ÷ bandwidth`."""
        return self.hops * dim.latency_ns + max(self.up_bytes, self.down_bytes) / dim.bytes_per_ns


def shift_load(dim: Dim, distances: Iterable[int], num_bytes: float) -> Load:
    """Every rank sends so many bytes to the rank at each of these distances further on (modulo the size), at once."""
    hops, up, down = 0, 0, 0
    for messages, distance in enumerate(distances, start=1):
        ahead = distance % dim.size
        if dim.kind == SWITCH:
            hops, up = 2, messages
        elif dim.kind == FULLY_CONNECTED:
            hops, up = 1, 1
        elif dim.kind == LINE:  # those that leave the end go back to the start
            hops = max(hops, ahead, dim.size - ahead)
            up += min(ahead, dim.size - ahead)
            down += min(ahead, dim.size - ahead)
        elif 2 * ahead <= dim.size:
            hops, up = max(hops, ahead), up + ahead
        else:
            hops, down = max(hops, dim.size - ahead), down + dim.size - ahead
    return Load(hops, up * num_bytes, down * num_bytes)


def swap_load(dim: Dim, distance: int, num_bytes: float) -> Load:
    """Ranks at a distance that is a power of two exchange so many bytes each way, as halving-doubling does."""
    if dim.kind in (SWITCH, FULLY_CONNECTED):
        return Load(dim.hops(0, 1), num_bytes)
    return Load(distance, distance * num_bytes, distance * num_bytes)


def message_load(dim: Dim, messages: Iterable[tuple[int, int, float]]) -> Load:
    """Any messages at once: from one coordinate to another, and the bytes of each."""
    carried: dict[tuple[int, int], float] = {}
    hops = 0
    for source, target, num_bytes in messages:
        links = list(route_links(dim, source, target))
        hops = max(hops, len(links))
        for link in links:
            carried[link] = carried.get(link, 0.0) + num_bytes
    return Load(hops, max(carried.values(), default=0))


def route_links(dim: Dim, source: int, target: int) -> Iterator[tuple[int, int]]:
    """The links of one message; a switch is the device behind the last rank."""
    if source == target:
        return
    if dim.kind == SWITCH:
        yield source, dim.size
        yield dim.size, target
    elif dim.kind == FULLY_CONNECTED:
        yield source, target
    else:
        ahead = (target - source) % dim.size
        upwards = target > source if dim.kind == LINE else 2 * ahead <= dim.size
        step, hops = (1, ahead) if upwards else (-1, dim.size - ahead)
        for hop in range(hops):
            yield (source + step * hop) % dim.size, (source + step * (hop + 1)) % dim.size
