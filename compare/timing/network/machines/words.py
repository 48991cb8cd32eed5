"""Words for dims and algorithms, as people and as ASTRA-sim's inputs write them."""

import re

from compare.timing.errors import TimingError
from compare.timing.network.machines.machine import ALGORITHMS, DIM_KINDS, DIRECT, Algorithm
from meshes.process.one_line import quote

_WORD = re.compile(r"([A-Za-z-]+?)(?::?([1-9]\d{0,8}))?", re.ASCII)


def parse_kind(word: str) -> str:
    """`ring`, `Ring` or `FullyConnected`.  Raises `TimingError` for an unknown kind of dim."""
    return _find(word, DIM_KINDS, "dim")


def parse_algorithm(word: str) -> Algorithm:
    """`ring`, `direct:3`, `halving-doubling`; ASTRA-sim's `direct3`, `halvingDoubling`."""
    match = _WORD.fullmatch(word.strip())
    if not match:
        raise TimingError(
            f"unknown algorithm {quote(word)}; known are {', '.join(ALGORITHMS)}, and direct:3 with a window"
        )
    name = _find(match[1], ALGORITHMS, "algorithm")
    if match[2] and Algorithm(name).in_one_dim != DIRECT:
        raise TimingError(f"algorithm {quote(word)}: a window belongs to direct alone")
    return Algorithm(name, int(match[2]) if match[2] else None)


def _find(word: str, known: tuple[str, ...], what: str) -> str:
    by_letters = {name.replace("-", ""): name for name in known}
    name = by_letters.get(word.strip().lower().replace("-", ""))
    if name is None:
        raise TimingError(f"unknown {what} {quote(word)}; known are {', '.join(known)}")
    return name
