"""A collective whose messages a user wrote as Chakra files, one for each place in its group.

A rank does whatever has what it needs, any number at once: sends, receives, and reductions of a fixed length.  The
bytes are those of the files, whatever the collective's own.  Ranks are places in the group.

Source: `CustomAlgorithm.cc`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from compare.network.astra_sim.clock import Action, RankClock
from compare.network.astra_sim.exchange import Transport
from compare.network.graph.graph import COMPUTE, RECEIVE, SEND
from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True)
class CustomNode:
    """SEND, RECEIVE or COMPUTE."""

    op: int
    deps: tuple[int, ...]
    """Positions among the nodes of its file."""
    place: int = 0
    """Of the other end, in the group."""
    tag: int = 0
    num_bytes: int = 0
    ticks: int = 0
    """Of a reduction."""


CustomFiles = tuple[tuple[CustomNode, ...], ...]
"""By the place in the group."""


class CustomPlay:
    """One rank in one such collective."""

    def __init__(
        self,
        files: CustomFiles,
        group: Sequence[int],
        rank: int,
        *,
        transport: Transport,
        timer: RankClock,
        leave: Action,
        one_by_one: bool,
    ) -> None:
        """group: in its listed order.  one_by_one: whether the order of messages that leave at once matters."""
        place = sorted(group).index(rank)
        if place >= len(files):
            raise TimingError(f"a custom collective over {len(group)} ranks has files for {len(files)}")
        self._nodes, self._group, self._rank = files[place], group, rank
        self._transport, self._timer, self._leave, self._one_by_one = transport, timer, leave, one_by_one
        self._waits = [len(node.deps) for node in self._nodes]
        self._users: list[list[int]] = [[] for _ in self._nodes]
        for number, node in enumerate(self._nodes):
            for dep in node.deps:
                self._users[dep].append(number)
        self._left = len(self._nodes)

    def start(self) -> None:
        self._issue([number for number, waits in enumerate(self._waits) if not waits])

    def _issue(self, ready: list[int]) -> None:
        if self._one_by_one and sum(self._nodes[number].op == SEND for number in ready) > 1:
            raise TimingError(
                "a custom collective in which a rank sends several messages at once: their order on shared links is "
                "that of a hash table in ASTRA-sim, and not simulated"
            )
        for number in ready:
            self._issue_one(number, self._nodes[number])

    def _issue_one(self, number: int, node: CustomNode) -> None:
        def end() -> None:
            self._end(number)

        if node.op == COMPUTE:
            self._timer.after(node.ticks, end)
            return
        if node.place >= len(self._group):
            raise TimingError(
                f"a custom collective over {len(self._group)} ranks has a message with place {node.place}"
            )
        other = self._group[node.place]
        if node.op == SEND:
            self._transport.send((-2, node.tag), self._rank, other, node.num_bytes, end)
        else:
            assert node.op == RECEIVE
            self._transport.receive((-2, node.tag), other, self._rank, node.num_bytes, end)

    def _end(self, number: int) -> None:
        self._left -= 1
        ready = []
        for user in self._users[number]:
            self._waits[user] -= 1
            if not self._waits[user]:
                ready.append(user)
        self._issue(ready)
        if not self._left:
            self._leave()
