"""Read the algorithm by which the compiler executes a collective.

It names an emitter and a strategy in `collective_algorithm_config`, and each ring where a SparseCore executes it.
The names were collected from programs for v4, v5e, v5p, v6e and tpu7x; `docs/model.md` says how each is modelled.
"""

import re
from dataclasses import dataclass

RING, BLOCK, DIRECT = "ring", "block", "direct"
"""One ring through the group, in both directions; rings along the sides of the group's block, side after side;
every message directly to its target."""

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """How a collective is executed."""

    shape: str
    orders: tuple[Order, ...] = ()
    """Of a block: the order of sides of each part of the data, all parts at once; empty: every rotation."""
    sizes: tuple[tuple[int, int], ...] = ()
    """(side, size) where the text gives it: the compiler's side numbers are not x, y, z."""
    one_shot: tuple[bool, ...] = ()
    """Per phase: whether every full part goes around and is summed on arrival (fewer steps, more bytes); empty: in no
    phase."""
    note: str = ""
    """A note on an unknown name."""


_DIRECT_KINDS = {"collective-permute", "all-to-all", "ragged-all-to-all"}
_EMITTER = re.compile(r'"emitter":"([^"]*)"')
_STRATEGY = re.compile(r'"strategy":"([^"]*)"')
_MULTISTEP = re.compile(r"\bis_multistep:([01](?:,[01])*)")
_LISTS = r"((?:\{[\d ]+\},?)+)"
_SIZES, _ORDERS = re.compile(rf"\bcores:{_LISTS}"), re.compile(rf"\bdim_used:{_LISTS}")
_RING_DIM = re.compile(r'ring_dim":"ICI_RING_DIM_([XYZ])')

_IN_STEPS = {"", "RotatedPincerEmitter", "AsyncPincerEmitter", "SingleInputAllReduceScatterFusion"}
_AT_ONCE = {"SinglePhaseRingSumEmitter", "InferenceShortRingSumEmitter", "BinomialSinglePhaseRingSumEmitter"}
_SHORT = {"RotatedPincerShortEmitter", "AsyncPincerShortEmitter"}
_STRAIGHT = {"AllToAllEmitter", "RaggedAllToAllEmitter", "NetRouterEmitter", "AllGatherWithNetRouterEmitter"}
_GATHER = re.compile(r"([123])DAllGather(?:On|Non)MajorDim(?:Imbalanced)?")
_SHAPES = {
    "": RING,
    "StrategyRing": RING,
    "UniDirection1DRingStrategy": RING,
    "StrategyND": BLOCK,
    "StrategySubgroupND": BLOCK,
    "UniDirectionNDRingStrategy": BLOCK,
}


def read_algorithm(kind: str, text: str) -> Algorithm:
    """Read it from the HLO line of the instruction that executes the collective, or of the collective itself.

    Missing or unknown names mean a ring; for permutes and all-to-alls, direct messages.
    """
    config = text.partition("collective_algorithm_config")[2]
    emitter, strategy = _first(_EMITTER, config), _first(_STRATEGY, config)
    if kind in _DIRECT_KINDS:
        return Algorithm(DIRECT, note=_unknown("emitter", emitter, {"", *_STRAIGHT}, "messages to each target"))
    if "collective_offload_config" in text:
        return _offloaded(text)
    if match := _GATHER.fullmatch(emitter):
        return Algorithm(RING if match[1] == "1" else BLOCK)
    if emitter in _STRAIGHT:
        return Algorithm(DIRECT)
    note = _unknown("emitter", emitter, {*_IN_STEPS, *_AT_ONCE, *_SHORT}) or _unknown("strategy", strategy, {*_SHAPES})
    shape = _SHAPES.get(strategy, RING)
    orders = _lists(_ORDERS, config) if shape == BLOCK else ()
    return Algorithm(shape, orders, _sizes(orders, _lists(_SIZES, config)), _steps(emitter, config), note)


def _steps(emitter: str, text: str) -> tuple[bool, ...]:
    if emitter in _AT_ONCE:
        return (True,)
    match = _MULTISTEP.search(text)
    return tuple(word == "0" for word in match[1].split(",")) if match and emitter in _SHORT else ()


def _sizes(orders: tuple[Order, ...], sizes: tuple[Order, ...]) -> tuple[tuple[int, int], ...]:
    """(side, size): the first phase of each order includes a chip's cores, so the smallest size of a side counts."""
    least: dict[int, int] = {}
    for order, said in zip(orders, sizes, strict=False):
        for side, size in zip(order, said, strict=False):
            least[side] = min(size, least.get(side, size))
    return tuple(sorted(least.items()))


def _offloaded(text: str) -> Algorithm:
    """On a SparseCore: the sides by name, for each part of the data."""
    rings = [tuple("XYZ".index(name) for name in _RING_DIM.findall(part)) for part in text.split('"phase_rings"')[1:]]
    orders = tuple(dict.fromkeys(order for order in rings if order))
    return Algorithm(BLOCK, orders) if orders and len(orders[0]) > 1 else Algorithm(RING)


def _lists(pattern: re.Pattern[str], text: str) -> tuple[Order, ...]:
    """`{8 4},{4 8}` as tuples of ints."""
    match = pattern.search(text)
    return tuple(tuple(map(int, row.split())) for row in re.findall(r"\{([\d ]+)\}", match[1])) if match else ()


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""


def _unknown(what: str, word: str, known: set[str], instead: str = "a ring") -> str:
    return "" if word in known else f"the {what} {word!r} is not known: taken for {instead}"
