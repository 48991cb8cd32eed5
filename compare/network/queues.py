"""Chunks of known durations through queues: each serves one at a time, first come, first served."""

import heapq
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Visit:
    """A phase of a chunk: which queue it waits in, and how long it holds that."""

    queue: int
    duration: float


def serve_chunks(chunks: Sequence[Sequence[Visit]]) -> float:
    """When the last chunk has made all its visits; all chunks come at 0, in order."""
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)
    busy: set[int] = set()
    ends: list[tuple[float, int, int]] = []
    place = [0] * len(chunks)
    now, order = 0.0, 0

    def fill(queue: int) -> None:
        nonlocal order
        if queue not in busy and waiting[queue]:
            chunk = waiting[queue].popleft()
            busy.add(queue)
            order += 1
            heapq.heappush(ends, (now + chunks[chunk][place[chunk]].duration, order, chunk))

    for chunk, visits in enumerate(chunks):
        waiting[visits[0].queue].append(chunk)
        fill(visits[0].queue)
    while ends:
        now, _, chunk = heapq.heappop(ends)
        left = chunks[chunk][place[chunk]].queue
        place[chunk] += 1
        busy.remove(left)
        if place[chunk] < len(chunks[chunk]):
            joined = chunks[chunk][place[chunk]].queue
            waiting[joined].append(chunk)
            fill(joined)
        fill(left)
    return now
