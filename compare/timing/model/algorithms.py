"""By which algorithm the compiler says that it carries a collective out.

It names an emitter and a strategy in `collective_algorithm_config`, and the rings one by one where a SparseCore does
it.  The names were collected from programs for v4, v5e, v5p, v6e and tpu7x; `docs/model.md` says how each is taken.
"""

import re
from dataclasses import dataclass

RING, BLOCK, DIRECT = "ring", "block", "direct"
"""One closed way through the group, in both directions; rings along the sides of the group's block, one side after the
other; every message straight to its target."""

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Algorithm:
    """How a collective is carried out."""

    shape: str
    orders: tuple[Order, ...] = ()
    """Of a block: the orders of sides that parts of the data take at once; none: every turn of the sides."""
    sizes: tuple[tuple[int, int], ...] = ()
    """How long each of these sides is, where the text says so: the compiler does not number them by x, y, z."""
    at_once: tuple[bool, ...] = ()
    """Of each phase: whether everybody's whole part goes round and is summed where it arrives.  Fewer steps, more
    bytes.  None: no phase."""
    note: str = ""
    """What of its spelling was not known."""


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
    "": RING, "StrategyRing": RING, "UniDirection1DRingStrategy": RING,
    "StrategyND": BLOCK, "StrategySubgroupND": BLOCK, "UniDirectionNDRingStrategy": BLOCK,
}  # fmt: skip


def read_algorithm(kind: str, text: str) -> Algorithm:
    """Read it from the line of the instruction that carries the collective out, or of the collective itself.

    What the line does not say, or says in a word that is not known, is a ring; of what goes to one target, direct.
    """
    said = text.partition("collective_algorithm_config")[2]
    emitter, strategy = _first(_EMITTER, said), _first(_STRATEGY, said)
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
    orders = _lists(_ORDERS, said) if shape == BLOCK else ()
    return Algorithm(shape, orders, _sizes(orders, _lists(_SIZES, said)), _steps(emitter, said), note)


def _steps(emitter: str, text: str) -> tuple[bool, ...]:
    if emitter in _AT_ONCE:
        return (True,)
    match = _MULTISTEP.search(text)
    return tuple(word == "0" for word in match[1].split(",")) if match and emitter in _SHORT else ()


def _sizes(orders: tuple[Order, ...], sizes: tuple[Order, ...]) -> tuple[tuple[int, int], ...]:
    """The first phase of each order counts the cores of a chip in: the least of what is said of a side is its own."""
    least: dict[int, int] = {}
    for order, said in zip(orders, sizes, strict=False):
        for side, size in zip(order, said, strict=False):
            least[side] = min(size, least.get(side, size))
    return tuple(sorted(least.items()))


def _offloaded(text: str) -> Algorithm:
    """Of a SparseCore: for each part of the data the sides by name."""
    rings = [tuple("XYZ".index(name) for name in _RING_DIM.findall(part)) for part in text.split('"phase_rings"')[1:]]
    orders = tuple(dict.fromkeys(order for order in rings if order))
    return Algorithm(BLOCK, orders) if orders and len(orders[0]) > 1 else Algorithm(RING)


def _lists(pattern: re.Pattern[str], text: str) -> tuple[Order, ...]:
    """`{8 4},{4 8}` as numbers, each list once."""
    found = pattern.search(text)
    return tuple(tuple(map(int, row.split())) for row in re.findall(r"\{([\d ]+)\}", found[1])) if found else ()


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""


def _unknown(what: str, word: str, known: set[str], instead: str = "a ring") -> str:
    return "" if word in known else f"the {what} {word!r} is not known: taken for {instead}"
