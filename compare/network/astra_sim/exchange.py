"""Ring, direct exchange and halving-doubling as ASTRA-sim has them: packets that a rank prepares, sends and meets.

A rank prepares `width` packets when a phase starts, and one more for each message that it receives.  Preparing takes
the endpoint delay, and for a packet that is reduced three passes over its bytes.  Each packet that gets ready lets
the oldest packet go; the phase ends when all messages are sent and `width` packets are ready again.

Source: `Ring.cc`, `AllToAll.cc`, `HalvingDoubling.cc`, `PacketBundle.cc`, `MemBus.cc` (without a shared bus).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from compare.network.astra_sim.clock import Action, RankClock, Tag
from compare.network.machines.kinds import ALL_REDUCE, REDUCE_SCATTER


class Transport(Protocol):
    """Where a rank sends and receives."""

    def send(self, tag: Tag, source: int, target: int, num_bytes: int, sent: Action | None = None) -> None: ...
    def receive(self, tag: Tag, source: int, target: int, num_bytes: int, handler: Action) -> None: ...


@dataclass(frozen=True, slots=True)
class Costs:
    """What a rank does with a message, in ticks."""

    endpoint: int
    memory_bytes_per_ns: float | None

    def reduction(self, num_bytes: int) -> int:
        """Two reads and a write, each in whole ticks."""
        if self.memory_bytes_per_ns is None:
            return 0
        return 3 * int(num_bytes / (self.memory_bytes_per_ns * 1e9) * 1e9)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a rank runs a chunk with, and what it does at its end."""

    rank: int
    tag: Tag
    transport: Transport
    timer: RankClock
    costs: Costs
    leave: Action

    def send(self, target: int, num_bytes: int) -> None:
        self.transport.send(self.tag, self.rank, target, num_bytes)

    def receive(self, source: int, num_bytes: int, handler: Action) -> None:
        self.transport.receive(self.tag, source, self.rank, num_bytes, handler)

    def wait(self, done: Action) -> None:
        """The endpoint delay."""
        self.timer.after(self.costs.endpoint, done)

    def reduce(self, num_bytes: int, done: Action) -> None:
        """The endpoint delay, and a reduction."""
        ticks = self.costs.reduction(num_bytes)
        self.wait(lambda: self.timer.after(ticks, done))


@dataclass(frozen=True, slots=True)
class RankPosition:
    """A rank in a phase: its ring, and whom it talks to."""

    ring: tuple[int, ...]
    """The ranks, in the order of the ring."""
    index: int
    """Of this rank in it."""
    step: int
    """1, or -1 for a ring that turns the other way."""

    def at(self, distance: int) -> int:
        """The rank so many places further on."""
        return self.ring[(self.index + distance) % len(self.ring)]


@dataclass(frozen=True, slots=True)
class Packet:
    """One message: its bytes, and the two ranks of its exchange."""

    num_bytes: int
    target: int
    source: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What distinguishes the algorithms."""

    kind: str
    messages: int
    """That a rank sends."""
    width: int
    """Packets prepared at the start."""
    answers: int
    """Packets of a round that follow the first `width`: they are reduced where the round reduces."""
    packet: Callable[[int], Packet]
    """The n-th packet that a rank prepares."""
    turn: int | None = None
    """Of a direct all-reduce: messages left at which it waits until it has received as many."""

    def reduces(self, number: int) -> bool:
        """Whether preparing the n-th packet reduces it."""
        cycle, place = divmod(number, self.width + self.answers)
        return place >= self.width and (self.kind == REDUCE_SCATTER or (self.kind == ALL_REDUCE and cycle % 2 == 0))


class Exchange:
    """One rank in one phase."""

    def __init__(self, script: Script, endpoint: Endpoint) -> None:
        self._script, self._endpoint = script, endpoint
        self._prepared = 0
        self._received = 0
        self._ready = 0
        self._to_send = script.messages
        self._packets: deque[Packet] = deque()

    def start(self) -> None:
        for _ in range(self._script.width):
            self._prepare()

    def _prepare(self) -> None:
        number = self._prepared
        self._prepared += 1
        packet = self._script.packet(number)
        self._packets.append(packet)
        if self._script.reduces(number):
            self._endpoint.reduce(packet.num_bytes, self._get_ready)
        else:
            self._endpoint.wait(self._get_ready)

    def _receive(self) -> None:
        self._received += 1
        self._prepare()

    def _get_ready(self) -> None:
        self._ready += 1
        turn = self._script.turn
        if turn is not None and self._to_send <= turn:
            if self._received < turn:
                return
            for _ in range(self._script.width):
                self._send()
        else:
            self._send()
        if self._to_send == 0 and self._ready == self._script.width:
            self._endpoint.leave()

    def _send(self) -> None:
        if not self._packets or self._to_send == 0 or self._ready == 0:
            return
        packet = self._packets.popleft()
        self._endpoint.send(packet.target, packet.num_bytes)
        self._endpoint.receive(packet.source, packet.num_bytes, self._receive)
        self._to_send -= 1
        self._ready -= 1
