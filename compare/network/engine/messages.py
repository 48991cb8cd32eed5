"""The same graph message by message: every link has a queue, first come first served; no classes, no fair shares.

`cut-through`: a message's head goes on after a hop's latency, and its bytes follow; it holds each link for its bytes.
`store-and-forward`: it goes on when all of it has come.  A rank sends the messages of a round when it has received
those of the round before, so that ranks of one collective need not march in step.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from compare.network.algorithms import Phase, Step, lay_out, lay_out_pairs
from compare.network.engine.graph_layout import Plan, kind_of
from compare.network.engine.graph_simulator import GraphSimulator, PhasedInstance
from compare.network.engine.links import Links
from compare.network.machines.kinds import CUT_THROUGH
from compare.network.machines.machine import Machine
from compare.timeline.errors import TimingError

Message = tuple[int, float, tuple[int, ...]]
"""(target, bytes per byte of a rank's input, links of the way)."""


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """Messages between ranks; a rank sends its own when it has received those of the round before."""

    sends: Mapping[int, Sequence[Message]]
    """Of each rank."""
    receives: Mapping[int, int]
    """Of each rank, how many."""
    reduced: float
    """Bytes that a rank reduces behind them, per byte of its input."""

    @property
    def num_messages(self) -> int:
        return sum(self.receives.values())


def list_rounds(links: Links, phases: Sequence[Phase]) -> list[Round]:
    """All messages of one collective of a group, or of one pair; identical rounds are one object."""
    return [each for phase in phases for step in phase.steps for each in [_make_round(links, phase, step)] * step.count]


def _make_round(links: Links, phase: Phase, step: Step) -> Round:
    source, target, shares = step.messages(phase.lines.shape[1])
    sources, targets = phase.lines[:, source].reshape(-1), phase.lines[:, target].reshape(-1)
    ways: list[list[int]] = [[] for _ in range(sources.size)]
    routes = links.route(sources, targets)
    for message, link in zip(routes.message.tolist(), routes.link.tolist(), strict=True):
        ways[message].append(link)
    sends: dict[int, list[Message]] = {}
    columns = sources.tolist(), targets.tolist(), np.tile(shares * phase.share, len(phase.lines)).tolist(), ways
    for rank, to, share, way in zip(*columns, strict=True):
        sends.setdefault(rank, []).append((to, share, tuple(way)))
    return Round(sends, Counter(targets.tolist()), step.reduced * phase.share)


@dataclass(slots=True, eq=False)
class _Progress:
    """One collective of one group under way."""

    instance: PhasedInstance
    num_bytes: float
    rounds: Sequence[Round]
    missing: list[dict[int, int]]
    """Of each round, rank -> messages that it has not received."""
    at: dict[int, int]
    """Rank -> the round whose messages it has sent; -1: none yet."""
    undelivered: int
    unfinished: int


class MessageSimulator(GraphSimulator):
    """Every rank is a class of its own."""

    def __init__(self, plan: Plan, machine: Machine, *, eager: bool, scale_compute: float):
        super().__init__(plan, machine, eager=eager, scale_compute=scale_compute)
        if self.machine.chunks != 1:
            raise TimingError(
                f"links: {self.machine.links} simulates collectives in one chunk, not {self.machine.chunks}"
            )
        self.rates: list[float] = self.links.rates.tolist()
        self.latencies: list[float] = self.links.latencies.tolist()
        self.free = [0.0] * self.links.count
        self.rounds: dict[tuple[str, int, int], list[Round]] = {}

    def send(self, instance: PhasedInstance) -> None:
        transfer = self.plan.graph.transfers[instance.transfer]
        key = (transfer.kind, id(transfer.groups), instance.group.group)
        if key not in self.rounds:
            group = transfer.groups[instance.group.group]
            phases = (
                lay_out_pairs((group,))
                if transfer.are_pairs
                else lay_out(self.machine, kind_of(transfer), np.array([group], np.int64))
            )
            self.rounds[key] = list_rounds(self.links, phases)
        rounds, ranks = self.rounds[key], transfer.groups[instance.group.group]
        progress = _Progress(
            instance,
            float(transfer.num_bytes),
            rounds,
            [dict(each.receives) for each in rounds],
            dict.fromkeys(ranks, -1),
            sum(each.num_messages for each in rounds),
            len(ranks),
        )
        wait = self.machine.launch_ns + (self.machine.endpoint_ns or 0)
        for rank in ranks:
            self.at(self.now + wait, partial(self._send, progress, rank, 0))

    def _send(self, progress: _Progress, rank: int, place: int) -> None:
        """A rank begins a round; one in which it receives nothing is over at once."""
        while place < len(progress.rounds):
            progress.at[rank] = place
            for target, share, route in progress.rounds[place].sends.get(rank, ()):
                self._hop(progress, place, target, share * progress.num_bytes, route, self.now)
            missing = progress.missing[place].get(rank)
            if missing is not None:
                if not missing:
                    self._go_on(progress, rank, place)
                return
            place += 1
        progress.unfinished -= 1
        self._end_if_all(progress)

    def _hop(
        self, progress: _Progress, place: int, target: int, size: float, route: tuple[int, ...], tail: float
    ) -> None:
        """The head of a message is before the rest of its way; tail: when all of it has come so far."""
        link, rest = route[0], route[1:]
        slot = link % self.links.slots
        latency, sending = self.latencies[slot], size / self.rates[slot]
        start = max(self.now, self.free[link])
        self.free[link] = start + sending
        all_here = max(tail, start + sending) + latency
        if not rest:
            self.at(all_here, partial(self._receive, progress, place, target))
            return
        onward = start + latency if self.machine.links == CUT_THROUGH else all_here
        self.at(onward, partial(self._hop, progress, place, target, size, rest, all_here))

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
