"""Messages on wires: the two network models of ASTRA-sim's analytical backend, and which receive a message meets.

Source: `CongestionUnawareNetworkApi`, `MultiDimTopology::send`, `BasicTopology::compute_communication_delay`;
`congestion_aware/network/Link.cpp`, `Ring::route`, `Switch::route`; `CommonNetworkApi` for the meeting of send and
receive.
"""

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Protocol

from compare.network.astra_sim.clock import Action, Clock, Tag
from compare.network.machines.kinds import RING, SWITCH
from compare.network.machines.machine import Dim, Machine
from compare.timeline.errors import TimingError

Key = tuple[Tag, int, int, int]
"""Tag, sender, receiver, bytes."""

_ASKING = 8192
"""Bytes."""


class Wires(Protocol):
    """Carries a message, and says when it has arrived."""

    def carry(self, source: int, target: int, num_bytes: int, arrive: Action) -> None: ...


class FreeWires:
    """Every message as if alone: hops × latency + bytes ÷ bandwidth, of the first dim in which the two ranks differ."""

    def __init__(self, machine: Machine, clock: Clock) -> None:
        self._machine = machine
        self._clock = clock
        self._delays: dict[tuple[int, int, int], int] = {}

    def carry(self, source: int, target: int, num_bytes: int, arrive: Action) -> None:
        key = source, target, num_bytes
        if key not in self._delays:
            self._delays[key] = self._delay(source, target, num_bytes)
        self._clock.after(self._delays[key], arrive)

    def _delay(self, source: int, target: int, num_bytes: int) -> int:
        places = zip(
            self._machine.dims, self._machine.coordinates(source), self._machine.coordinates(target), strict=True
        )
        for dim, here, there in places:
            if here != there:
                return message_ticks(dim, dim.hops(here, there), num_bytes)
        raise TimingError(f"rank {source} sends to itself, which ASTRA-sim refuses")


class SharedWires:
    """One link after the other, each with one message at a time, first come first served; one dim only."""

    def __init__(self, machine: Machine, clock: Clock) -> None:
        if len(machine.dims) != 1:
            raise TimingError(
                f"congestion-aware ASTRA-sim has one dim, and this machine {len(machine.dims)}; leave out --aware"
            )
        self._dim = machine.dims[0]
        if self._dim.kind == RING and self._dim.size == 2:
            raise TimingError("congestion-aware ASTRA-sim refuses a ring of 2")
        self._clock = clock
        self._waiting: dict[tuple[int, int], deque[tuple[list[int], int, Action]]] = {}

    def carry(self, source: int, target: int, num_bytes: int, arrive: Action) -> None:
        self._leave(find_route(self._dim, source, target), num_bytes, arrive)

    def _leave(self, route: list[int], num_bytes: int, arrive: Action) -> None:
        link = route[0], route[1]
        if link in self._waiting:  # busy
            self._waiting[link].append((route, num_bytes, arrive))
        else:
            self._transmit(link, route, num_bytes, arrive)

    def _transmit(self, link: tuple[int, int], route: list[int], num_bytes: int, arrive: Action) -> None:
        self._waiting.setdefault(link, deque())
        rest = route[1:]
        reach = arrive if len(rest) == 1 else lambda: self._leave(rest, num_bytes, arrive)
        self._clock.after(message_ticks(self._dim, 1, num_bytes), reach)
        self._clock.after(int(num_bytes / self._dim.bytes_per_ns), lambda: self._free(link))

    def _free(self, link: tuple[int, int]) -> None:
        waiting = self._waiting[link]
        if waiting:
            self._transmit(link, *waiting.popleft())
        else:
            del self._waiting[link]


def lay_wires(machine: Machine, clock: Clock, *, aware: bool) -> Wires:
    """By the backend: `aware` is the one whose links carry one message at a time."""
    return SharedWires(machine, clock) if aware else FreeWires(machine, clock)


def message_ticks(dim: Dim, hops: int, num_bytes: int) -> int:
    """Of one message, from send to arrival, in whole ticks."""
    return int(hops * dim.latency_ns + num_bytes / dim.bytes_per_ns)


def find_route(dim: Dim, source: int, target: int) -> list[int]:
    """The devices that a message visits; the switch is device `size`, and half way round a ring it goes upwards."""
    if source == target:
        raise TimingError(f"rank {source} sends to itself, which ASTRA-sim refuses")
    if dim.kind == SWITCH:
        return [source, dim.size, target]
    if dim.kind != RING:
        return [source, target]
    ahead = (target - source) % dim.size
    step = -1 if dim.size - ahead < ahead else 1
    hops = min(ahead, dim.size - ahead)
    return [(source + step * hop) % dim.size for hop in range(hops + 1)]


class Mailbox:
    """Sends and receives meet in their order, for each tag, pair and size."""

    def __init__(self, wires: Wires, clock: Clock) -> None:
        self._wires = wires
        self._clock = clock
        self._sends: defaultdict[Key, int] = defaultdict(int)
        self._receives: defaultdict[Key, int] = defaultdict(int)
        self._handlers: dict[tuple[Key, int], Action] = {}
        self._arrived: set[tuple[Key, int]] = set()

    def send(self, tag: Tag, source: int, target: int, num_bytes: int, sent: Action | None = None) -> None:
        """Raises `TimingError` for a message without bytes, at which ASTRA-sim aborts."""
        if num_bytes < 1:
            raise TimingError(f"a message of 0 bytes from rank {source} to rank {target}, at which ASTRA-sim aborts")
        key = tag, source, target, num_bytes
        place = key, self._sends[key]
        self._sends[key] += 1
        self._wires.carry(source, target, num_bytes, lambda: self._arrive(place, sent))

    def receive(self, tag: Tag, source: int, target: int, num_bytes: int, handler: Action) -> None:
        key = tag, source, target, num_bytes
        place = key, self._receives[key]
        self._receives[key] += 1
        if place in self._arrived:
            self._arrived.remove(place)
            self._clock.after(0, handler)
        else:
            self._handlers[place] = handler

    def _arrive(self, place: tuple[Key, int], sent: Action | None) -> None:
        if sent:
            sent()
        handler: Callable[[], None] | None = self._handlers.pop(place, None)
        if handler:
            handler()
        else:
            self._arrived.add(place)


class Handshake:
    """A mailbox in which a sender waits for 8,192 bytes from its receiver, who waits until they have arrived.

    Source: `Sys::rendezvous_sim_send`, `Sys::rendezvous_sim_recv`.
    """

    def __init__(self, transport: Mailbox) -> None:
        self._transport = transport

    def send(self, tag: Tag, source: int, target: int, num_bytes: int, sent: Action | None = None) -> None:
        self._transport.receive(
            _ask(tag), target, source, _ASKING, lambda: self._transport.send(tag, source, target, num_bytes, sent)
        )

    def receive(self, tag: Tag, source: int, target: int, num_bytes: int, handler: Action) -> None:
        self._transport.send(
            _ask(tag), target, source, _ASKING, lambda: self._transport.receive(tag, source, target, num_bytes, handler)
        )


def _ask(tag: Tag) -> Tag:
    """Of the message that a receiver sends first."""
    return -10 - tag[0], tag[1]


class Mirror:
    """The mailbox of a machine whose ranks all do the same at the same ticks: what a rank sends, it also receives.

    One rank then stands for all.  True of rings, direct exchanges and halving-doubling over whole dims without
    contention; not of trees.
    """

    def __init__(self, wires: Wires, clock: Clock) -> None:
        self._wires = wires
        self._clock = clock
        self._arrivals: deque[tuple[int, int, int]] = deque()

    def send(self, tag: Tag, source: int, target: int, num_bytes: int, sent: Action | None = None) -> None:
        """Kept until the rank posts its receive, which follows at once."""
        if num_bytes < 1:
            raise TimingError(f"a message of 0 bytes from rank {source} to rank {target}, at which ASTRA-sim aborts")
        self._arrivals.append((source, target, num_bytes))

    def receive(self, tag: Tag, source: int, target: int, num_bytes: int, handler: Action) -> None:
        sender, receiver, sent_bytes = self._arrivals.popleft()
        self._wires.carry(sender, receiver, sent_bytes, handler)
