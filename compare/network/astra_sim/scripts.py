"""The messages of each algorithm, as ASTRA-sim sends them.

Source: the constructors and `process_max_count` of `Ring.cc`, `AllToAll.cc` and `HalvingDoubling.cc`.
"""

from compare.network.astra_sim.exchange import Packet, Script, Seat
from compare.network.machines.machine import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    DIRECT,
    HALVING_DOUBLING,
    RING,
    Algorithm,
)
from compare.timeline.errors import TimingError


def make_script(algorithm: Algorithm, kind: str, num_bytes: int, seat: Seat, *, listed: bool) -> Script:
    """The script of a rank; `listed` is a ring over listed ranks, not over a dim.

    Raises `TimingError` for what ASTRA-sim cannot play.
    """
    name = algorithm.in_one_dim
    if name == RING:
        return _ring(kind, num_bytes, seat)
    if name == DIRECT:
        return _direct(kind, num_bytes, seat, algorithm.window, listed=listed)
    if name == HALVING_DOUBLING:
        return _halving_doubling(kind, num_bytes, seat)
    raise TimingError(f"ASTRA-sim has no algorithm {algorithm.name!r}: its rings go one way")


def _share(kind: str, num_bytes: int, size: int) -> int:
    """Bytes of a message: an all-gather sends whole shards, the others one part of `size`."""
    return num_bytes if kind == ALL_GATHER else num_bytes // size


def _ring(kind: str, num_bytes: int, seat: Seat) -> Script:
    size = len(seat.ring)
    packet = Packet(_share(kind, num_bytes, size), seat.at(seat.step), seat.at(-seat.step))
    steps = {ALL_REDUCE: 2 * (size - 1), ALL_TO_ALL: size * (size - 1) // 2}
    return Script(
        kind=kind, messages=steps.get(kind, size - 1), width=1, answers=size - 1, packet=lambda _: packet
    )  # fmt: skip


def _direct(kind: str, num_bytes: int, seat: Seat, window: int | None, *, listed: bool) -> Script:
    others = len(seat.ring) - 1
    width = others if window is None else min(window, others)
    share = _share(kind, num_bytes, len(seat.ring))

    def packet(number: int) -> Packet:
        distance = seat.step * (number % others + 1)
        return Packet(share, seat.at(distance), seat.at(-distance))

    both = kind == ALL_REDUCE
    return Script(
        kind=kind,
        messages=2 * others if both else others,
        width=width,
        answers=others * width if listed else width,
        packet=packet,
        turn=others if both else None,
    )


def _halving_doubling(kind: str, num_bytes: int, seat: Seat) -> Script:
    size = len(seat.ring)
    levels = size.bit_length() - 1
    if size != 1 << levels:
        raise TimingError(f"halving-doubling over {size} ranks: the number of ranks is a power of two")
    if kind == ALL_TO_ALL:
        raise TimingError("halving-doubling makes no all-to-all")
    steps = _doubling(num_bytes, levels) if kind == ALL_GATHER else _halving(num_bytes, levels)
    if kind == ALL_REDUCE:
        steps += [(steps[-1][0] // 2 * 2 << level, size >> level + 1) for level in range(levels)]

    def packet(number: int) -> Packet:
        share, distance = steps[min(number, len(steps) - 1)]  # the last one prepared is not sent
        up = seat.index // distance % 2 == 0
        partner = seat.at(distance if up else -distance)
        return Packet(share, partner, partner)

    return Script(kind=kind, messages=len(steps), width=1, answers=levels - 1, packet=packet)


def _halving(num_bytes: int, levels: int) -> list[tuple[int, int]]:
    """Bytes and distance of each step: halves, to ranks ever further away."""
    return [(num_bytes >> level + 1, 1 << level) for level in range(levels)]


def _doubling(num_bytes: int, levels: int) -> list[tuple[int, int]]:
    """Bytes and distance of each step: doubles, to ranks ever nearer."""
    return [(num_bytes << level, 1 << levels - 1 - level) for level in range(levels)]
