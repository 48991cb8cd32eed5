"""The messages of each algorithm, as ASTRA-sim sends them: those of `compare.network.algorithms`, in whole bytes.

Source: the constructors and `process_max_count` of `Ring.cc`, `AllToAll.cc` and `HalvingDoubling.cc`.
"""

from functools import lru_cache

from compare.network.algorithms import Step, list_steps
from compare.network.astra_sim.exchange import Packet, RankPosition, Script
from compare.network.machines.kinds import ALL_GATHER, ALL_REDUCE, DIRECT, HALVING_DOUBLING, RING
from compare.network.machines.machine import Algorithm
from compare.timeline.errors import TimingError


def make_script(algorithm: Algorithm, kind: str, num_bytes: int, position: RankPosition, *, listed: bool) -> Script:
    """The script of a rank; `listed` is a ring over listed ranks, not over a dim.

    Raises `TimingError` for what ASTRA-sim cannot simulate.
    """
    size = len(position.ring)
    steps = _list_steps(algorithm, kind, size)
    if algorithm.in_one_dim == HALVING_DOUBLING:
        return _halving_doubling(kind, num_bytes, position, steps)
    share = num_bytes if kind == ALL_GATHER else num_bytes // size
    if algorithm.in_one_dim == DIRECT:
        return _direct(kind, share, position, steps, listed=listed)
    return _ring(kind, share, position, steps)


@lru_cache(maxsize=1024)
def _list_steps(algorithm: Algorithm, kind: str, size: int) -> tuple[Step, ...]:
    if algorithm.in_one_dim not in (RING, DIRECT, HALVING_DOUBLING):
        raise TimingError(f"ASTRA-sim has no algorithm {algorithm.in_one_dim!r}: its rings go one way")
    return tuple(list_steps(Algorithm(algorithm.in_one_dim, algorithm.window), kind, size))


def _ring(kind: str, share: int, position: RankPosition, steps: tuple[Step, ...]) -> Script:
    """What a step sends together goes in messages of one share, one after another."""
    packet = Packet(share, position.at(position.step), position.at(-position.step))
    parts = 1 if kind == ALL_GATHER else len(position.ring)
    messages = sum(step.count * round(parts * float(step.share[0])) for step in steps)
    return Script(kind=kind, messages=messages, width=1, answers=len(position.ring) - 1, packet=lambda _: packet)


def _direct(kind: str, share: int, position: RankPosition, steps: tuple[Step, ...], *, listed: bool) -> Script:
    distances = [distance for step in steps for distance in step.target.tolist()]
    others, width = len(position.ring) - 1, steps[0].target.size

    def packet(number: int) -> Packet:
        distance = position.step * distances[number % others]
        return Packet(share, position.at(distance), position.at(-distance))

    return Script(
        kind=kind,
        messages=len(distances),
        width=width,
        answers=others * width if listed else width,
        packet=packet,
        turn=others if kind == ALL_REDUCE else None,
    )


def _halving_doubling(kind: str, num_bytes: int, position: RankPosition, steps: tuple[Step, ...]) -> Script:
    """An all-reduce comes back from twice the half of what its last halving left."""
    size = len(position.ring)
    levels = size.bit_length() - 1
    sizes = [_cut_bytes(num_bytes, float(step.share[0]), size) for step in steps]
    if kind == ALL_REDUCE:
        sizes[levels:] = [sizes[levels - 1] // 2 * 2 << level for level in range(levels)]

    def packet(number: int) -> Packet:
        step = min(number, len(steps) - 1)  # the last one prepared is not sent
        partner = position.ring[steps[step].target[position.index]]
        return Packet(sizes[step], partner, partner)

    return Script(kind=kind, messages=len(steps), width=1, answers=levels - 1, packet=packet)


def _cut_bytes(num_bytes: int, share: float, size: int) -> int:
    """share: a whole number of parts of `size`."""
    return num_bytes * round(share * size) // size
