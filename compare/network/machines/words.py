"""Words for dims and algorithms, as people and as ASTRA-sim's inputs write them."""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeGuard

from compare.network.machines.custom import collect_custom, read_custom
from compare.network.machines.kinds import ALGORITHMS, CUSTOM, DIM_KINDS, DIRECT
from compare.network.machines.machine import Algorithm, CustomAlgorithm, Machine
from compare.timeline.errors import TimingError
from meshes.process.one_line import quote

_NONE: Mapping[str, CustomAlgorithm] = MappingProxyType({})
_WORD = re.compile(r"([A-Za-z-]+?)(?::?([1-9]\d{0,8}))?", re.ASCII)


def parse_kind(word: str) -> str:
    """`ring`, `Ring` or `FullyConnected`.  Raises `TimingError` for an unknown kind of dim."""
    return _find(word, DIM_KINDS, "dim")


def parse_algorithm(word: str, custom: Mapping[str, CustomAlgorithm] = _NONE) -> Algorithm:
    """`ring`, `direct:3`, `halving-doubling`; ASTRA-sim's `direct3`, `halvingDoubling`; `custom:tree`, one of these."""
    name, colon, rest = word.strip().partition(":")
    if colon and name == CUSTOM:
        if rest not in custom:
            known = ", ".join(custom) or "none"
            raise TimingError(
                f"{quote(word)}: the machine's file has no table [{CUSTOM}.{rest[:40]}]; known are {known}"
            )
        return Algorithm(CUSTOM, custom=custom[rest])
    match = _WORD.fullmatch(word.strip())
    if not match:
        raise TimingError(
            f"unknown algorithm {quote(word)}; known are {', '.join(ALGORITHMS)}, and direct:3 with a window"
        )
    name = _find(match[1], ALGORITHMS, "algorithm")
    if match[2] and Algorithm(name).in_one_dim != DIRECT:
        raise TimingError(f"algorithm {quote(word)}: a window belongs to direct alone")
    return Algorithm(name, int(match[2]) if match[2] else None)


def choose_algorithm(word: str, machine: Machine) -> Algorithm:
    """As a command line names it: a word, a custom algorithm of the machine, or `custom:FILE.toml`.  `OSError` where
    that file can't be opened."""
    name, _, rest = word.strip().partition(":")
    if name == CUSTOM and rest.endswith(".toml"):
        return Algorithm(CUSTOM, custom=read_custom(Path(rest)))
    return parse_algorithm(word, collect_custom(machine))


def is_words(value: object) -> TypeGuard[list[str]]:
    """Whether it is a list of words."""
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _find(word: str, known: tuple[str, ...], what: str) -> str:
    by_letters = {name.replace("-", ""): name for name in known}
    name = by_letters.get(word.strip().lower().replace("-", ""))
    if name is None:
        raise TimingError(f"unknown {what} {quote(word)}; known are {', '.join(known)}")
    return name
