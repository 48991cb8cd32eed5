"""The same graph message by message: every link has a queue, first come first served; no classes, no fair shares.

`cut-through`: a message's head goes on after a hop's latency, and its bytes follow; it holds each link for its bytes.
`store-and-forward`: it goes on when all of it has come.  A rank sends the messages of a round when it has received
those of the round before, so that ranks of one collective need not march in step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from compare.network.algorithms import Phase, lay_out, lay_out_pairs
from compare.network.engine.game import Game, Instance
from compare.network.engine.links import Links
from compare.network.engine.plan import kind_of
from compare.network.machines.machine import CUT_THROUGH
from compare.timeline.arrays import Floats, Ints
from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """Messages between ranks; a rank sends its own when it has received those of the round before."""

    source: Ints
    target: Ints
    share: Floats
    """Bytes of each, per byte of a rank's input."""
    reduced: float
    """Bytes that a rank reduces behind them."""


def list_rounds(phases: Sequence[Phase]) -> list[Round]:
    """All messages of one collective of a group, or of one pair."""
    return [
        Round(
            phase.lines[:, source].reshape(-1), phase.lines[:, target].reshape(-1),
            np.tile(shares * phase.share, len(phase.lines)), step.reduced * phase.share,
        )
        for phase in phases
        for step in phase.steps
        for source, target, shares in [step.messages(phase.lines.shape[1])]
        for _ in range(step.count)
    ]  # fmt: skip


@dataclass(slots=True, eq=False)
class _Progress:
    """One collective of one group under way."""

    instance: Instance
    num_bytes: float
    rounds: list[Round]
    sends: list[dict[int, list[int]]]
    """Of each round, rank -> its messages."""
    missing: list[dict[int, int]]
    """Of each round, rank -> messages that it has not received."""
    at: dict[int, int]
    """Rank -> the round whose messages it has sent; -1: none yet."""
    undelivered: int
    unfinished: int
    routes: list[list[list[int]]] = field(default_factory=list)


class MessageGame(Game):
    """Every rank is a class of its own."""

    def __post_init__(self) -> None:
        if self.machine.chunks != 1:
            raise TimingError(f"links: {self.machine.links} plays collectives in one chunk, not {self.machine.chunks}")
        self.free = [0.0] * self.links.count
        self.rounds: dict[tuple[str, int, int], _Schedule] = {}

    def begin(self, instance: Instance) -> None:
        transfer = self.plan.graph.transfers[instance.transfer]
        key = (transfer.kind, id(transfer.groups), instance.group.group)
        if key not in self.rounds:
            group = transfer.groups[instance.group.group]
            phases = (
                lay_out_pairs((group,))
                if transfer.are_pairs
                else lay_out(self.machine, kind_of(transfer), np.array([group], np.int64))
            )
            self.rounds[key] = _Schedule.of(self.links, list_rounds(phases))
        schedule = self.rounds[key]
        ranks = transfer.groups[instance.group.group]
        progress = _Progress(
            instance, float(transfer.num_bytes), schedule.rounds, schedule.sends,
            [dict(row) for row in schedule.receives], dict.fromkeys(ranks, -1),
            sum(each.source.size for each in schedule.rounds), len(ranks), schedule.routes,
        )  # fmt: skip
        wait = self.machine.launch_ns + (self.machine.endpoint_ns or 0)
        for rank in ranks:
            self.at(self.now + wait, partial(self._send, progress, rank, 0))

    def _send(self, progress: _Progress, rank: int, place: int) -> None:
        """A rank begins a round; one in which it receives nothing is over at once."""
        while place < len(progress.rounds):
            progress.at[rank] = place
            each = progress.rounds[place]
            for message in progress.sends[place].get(rank, ()):
                size = float(each.share[message]) * progress.num_bytes
                self._hop(progress, place, message, int(each.target[message]), size, 0, self.now)
            missing = progress.missing[place].get(rank)
            if missing is not None:
                if not missing:
                    self._go_on(progress, rank, place)
                return
            place += 1
        progress.unfinished -= 1
        self._end_if_all(progress)

    def _hop(
        self, progress: _Progress, place: int, message: int, target: int, size: float, hop: int, tail: float
    ) -> None:
        """The head of a message is before its next link; tail: when all of it has come so far."""
        route = progress.routes[place][message]
        link = route[hop]
        slot = link % self.links.slots
        latency, sending = self.latencies[slot], size / self.rates[slot]
        start = max(self.now, self.free[link])
        self.free[link] = start + sending
        all_here = max(tail, start + sending) + latency
        if hop + 1 == len(route):
            self.at(all_here, partial(self._receive, progress, place, target))
            return
        onward = start + latency if self.machine.links == CUT_THROUGH else all_here
        self.at(onward, partial(self._hop, progress, place, message, target, size, hop + 1, all_here))

    def _receive(self, progress: _Progress, place: int, rank: int) -> None:
        progress.undelivered -= 1
        missing = progress.missing[place]
        missing[rank] -= 1
        if not missing[rank] and progress.at[rank] == place:
            self._go_on(progress, rank, place)
        self._end_if_all(progress)

    def _go_on(self, progress: _Progress, rank: int, place: int) -> None:
        """To the next round, behind the reduction."""
        memory = self.machine.memory_bytes_per_ns
        reducing = 3 * progress.rounds[place].reduced * progress.num_bytes / memory if memory else 0.0
        self.at(self.now + reducing + (self.machine.endpoint_ns or 0), partial(self._send, progress, rank, place + 1))

    def _end_if_all(self, progress: _Progress) -> None:
        if not progress.undelivered and not progress.unfinished and progress.instance.ended < 0:
            self.end_instance(progress.instance)


@dataclass(frozen=True, slots=True, eq=False)
class _Schedule:
    """Rounds with what is the same in all executions."""

    rounds: list[Round]
    sends: list[dict[int, list[int]]]
    receives: list[dict[int, int]]
    routes: list[list[list[int]]]
    """Of each round and message, its links."""

    @classmethod
    def of(cls, links: Links, rounds: list[Round]) -> "_Schedule":
        sends: list[dict[int, list[int]]] = []
        receives: list[dict[int, int]] = []
        routes: list[list[list[int]]] = []
        for each in rounds:
            sending: dict[int, list[int]] = {}
            receiving: dict[int, int] = {}
            ways: list[list[int]] = [[] for _ in range(each.source.size)]
            for message, (source, target) in enumerate(zip(each.source.tolist(), each.target.tolist(), strict=True)):
                sending.setdefault(source, []).append(message)
                receiving[target] = receiving.get(target, 0) + 1
            found = links.route(each.source, each.target)
            for message, link in zip(found.message.tolist(), found.link.tolist(), strict=True):
                ways[message].append(link)
            sends.append(sending)
            receives.append(receiving)
            routes.append(ways)
        return cls(rounds, sends, receives, routes)
