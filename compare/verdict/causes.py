"""The causes of bytes beyond the plan: one table, cause → predicate → sentence → remedy.

`INFLATED` is in peeling order, `INDUCED` in the order of judgement.  The report, the docs and the
remedies read this table; definitions are in docs/definitions.md, section 4.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import NamedTuple

from compare.contract.row import ContractRow
from compare.verdict import inflation
from compare.verdict.operand_traffic import CACHE, SUMS, WEIGHT, OperandTraffic, is_float

KIBIBYTE = 1024


class Words(NamedTuple):
    """What a cause means, and what usually removes it."""

    sentence: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflated:
    """A cause of inflated bytes: traffic that satisfies a row of the plan, but exceeds it."""

    name: str
    measure: Callable[[OperandTraffic, ContractRow], Fraction] | None
    """`None` where it is measured over all operands that satisfy a row: see `verdict`."""
    sentence: str
    remedy: str
    without: Mapping[str, Words] = field(default_factory=dict)
    """Axis -> sentence and remedy for a mesh that does not split it, so that they name no missing axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Induced:
    """A cause of induced bytes: traffic that the plan does not require."""

    name: str
    holds: Callable[[OperandTraffic], bool]
    sentence: str
    remedy: str
    without: Mapping[str, Words] = field(default_factory=dict)


INFLATED = (
    Inflated(
        name="wrap",
        measure=inflation.wrap_fraction,
        sentence="the hop that closes a ring is not needed: it returns the last stage's state to the first, or a "
        "rank's own keys and values to it",
        remedy="shift by padding instead of rolling, so that only forward pairs remain; stop a ring of n ranks after "
        "n − 1 hops",
        without={
            "cp": Words(
                "the hop that closes the ring is not needed: it returns the last stage's state to the first",
                "shift by padding instead of rolling, so that only forward pairs remain",
            ),
            "pp": Words(
                "the hop that closes the ring is not needed: it returns each rank's own keys and values to it",
                "stop a ring of n ranks after n − 1 hops",
            ),
        },
    ),
    Inflated(
        name="bubble",
        measure=None,
        sentence="pipeline stages that are idle in the first and last ticks still communicate",
        remedy="more microbatches reduce its share; a `cond` on whether the stage is active removes it",
    ),
    Inflated(
        name="replicated",
        measure=inflation.replicated_fraction,
        sentence="devices receive more of the result than they need: stages that do not need it compute and "
        "communicate it too, or every device gets all of it where a shard would do",
        remedy="guard it with the stage's index, or constrain the result to be sharded; or accept it where it costs no "
        "time because the other stages wait anyway",
        without={
            "pp": Words(
                "devices receive more of the result than they need: every device gets all of it where a shard would do",
                "constrain the result to be sharded",
            ),
        },
    ),
    Inflated(
        name="dtype",
        measure=inflation.widened_fraction,
        sentence="the elements on the wire are wider than the model's",
        remedy="convert to the model's dtype before the collective, not after it",
    ),
    Inflated(
        name="padding",
        measure=inflation.padding_fraction,
        sentence="a dim that its number of shards does not divide is padded, and the padding is sent too",
        remedy="choose a number of shards that divides the dim",
    ),
    Inflated(
        name="uncombined",
        measure=inflation.uncombined_fraction,
        sentence="the output of each expert is summed over devices by itself, and a token's are combined afterwards",
        remedy="combine first: put the gates' weights into the hidden activation, and let the last matmul contract "
        "the experts, too",
    ),
    Inflated(
        name="windowed-einsum",
        measure=inflation.accumulator_fraction,
        sentence="the compiler overlaps a matmul with permutes, in more hops than the gather or scatter needs",
        remedy="none in the program: the compiler decides; an XLA threshold flag turns windowed einsum off",
    ),
    Inflated(
        name="other",
        measure=None,
        sentence="it satisfies the plan but sends more than the plan requires; the cause is unknown",
        remedy="read the HLO line",
    ),
)

_RESHARDING_KINDS = ("all-to-all", "ragged-all-to-all", "collective-permute")
_REMAINING_KINDS = ("all-gather", "all-reduce", "reduce-scatter")

INDUCED = (
    Induced(
        name="loop-predicate",
        # First, because a counter or predicate is a few bytes that may also depend on weights or come from nothing: it
        # would else be `weight-gather` or `compiler-sync`.
        holds=lambda traffic: traffic.operand.steers_loop or _is_decision(traffic),
        sentence="devices agree on the predicate of a loop or branch",
        remedy="make the trip count a constant of the program",
    ),
    Induced(
        name="compiler-sync",
        # libtpu's own flags are a few words; 2 KiB, though they depend on no argument, are told as data.
        holds=lambda traffic: traffic.collective.payload_bytes <= KIBIBYTE and not traffic.collective.from_parameters,
        sentence="a few bytes that depend on no input: a synchronization that the compiler inserted",
        remedy="none: the compiler inserts it",
    ),
    Induced(
        name="weight-gather",
        holds=lambda traffic: WEIGHT in traffic.roles,
        sentence="a weight that the plan keeps sharded is resharded or gathered before it is used",
        remedy="pin the activations on both sides of the matmul, so that the sharded weight is used in place",
    ),
    Induced(
        name="cache-gather",
        holds=lambda traffic: CACHE in traffic.roles,
        sentence="the cache that the plan keeps sharded is resharded or gathered before it is used",
        remedy="pin what is read from the cache, and update it without reshaping the sharded dim",
    ),
    Induced(
        name="logits-gather",
        holds=lambda traffic: (
            traffic.operand.scope in ("head", "sample") and is_float(traffic.operand.dtype) and _are_logits(traffic)
        ),
        sentence="full logits are communicated where the argmax of each shard would do",
        remedy="keep the logits sharded over the vocabulary, and take the argmax of each shard first",
    ),
    Induced(
        name="output-replication",
        holds=lambda traffic: traffic.collective.reaches_root,
        sentence="an output of the program is replicated on every device",
        remedy="give the output the sharding it has inside the program",
    ),
    Induced(
        name="layout-change",
        holds=lambda traffic: traffic.collective.kind in _RESHARDING_KINDS and not _is_hop(traffic),
        sentence="a tensor is resharded between two operations whose shardings differ",
        remedy="pin both operations to the same sharding",
    ),
    Induced(
        name="full-replication",
        holds=lambda traffic: traffic.every_axis and not _is_sum(traffic) and not _is_hop(traffic),
        sentence="a tensor is replicated on every device of the mesh",
        remedy="pin it; or write the operation so that it does not merge a sharded dim with another",
    ),
    Induced(
        name="activation-gather",
        holds=lambda traffic: traffic.collective.kind in _REMAINING_KINDS or _is_hop(traffic),
        sentence="a sharded activation is gathered or reduced along an axis that the plan keeps sharded",
        remedy="pin it; or write the operation so that it does not merge a sharded dim with another",
    ),
    Induced(
        name="other",
        holds=lambda traffic: True,
        sentence="it satisfies nothing in the plan; the cause is unknown",
        remedy="read the HLO line",
    ),
)


def _is_decision(traffic: OperandTraffic) -> bool:
    """Whether it carries one predicate per device; more than that is a mask, which is data."""
    members = max(map(len, traffic.collective.groups), default=1)
    # One predicate of each member decides something together; 256 of them are a mask, which is data.
    return traffic.operand.dtype == "pred" and prod(traffic.operand.shape) <= members


def _are_logits(traffic: OperandTraffic) -> bool:
    """A dim is the vocabulary's or a shard's, and it is no maximum or minimum: no softmax's sum, no hidden state."""
    if traffic.collective.reducer in ("maximum", "minimum"):
        return False
    # [4,128256] are whole logits and [4,32064] those of a shard over four; [4,1] in the same scope is the sum of a
    # softmax.
    shards = _shard_sizes(traffic.vocab, traffic.sizes)
    if traffic.collective.kind in _REMAINING_KINDS:
        # What is gathered or added up over an axis is not split over it: a dim of a smaller shard's size is a token's.
        over = traffic.collective.axes.split(",")
        others = {axis: size for axis, size in traffic.sizes.items() if axis not in over}
        shards -= {traffic.token_width} - _shard_sizes(traffic.vocab, others)
    return not traffic.vocab or bool(shards & set(traffic.operand.shape))


def _shard_sizes(vocab: int, sizes: Mapping[str, int]) -> set[int]:
    """The vocabulary's size, and those of a shard of it over at most these devices."""
    return {-(-vocab // n) for n in range(1, prod(sizes.values()) + 1)}


def _is_sum(traffic: OperandTraffic) -> bool:
    """Whether it adds parts up: not a gather, nor a sum of zeros and one part, which gathers."""
    return traffic.collective.kind in SUMS and not traffic.operand.zero_elsewhere


def _is_hop(traffic: OperandTraffic) -> bool:
    """Of a windowed einsum: a part of a gather or of a sum, which no device has whole."""
    return traffic.collective.form == "windowed-einsum"


def induced_cause(traffic: OperandTraffic) -> str:
    """The name of the first induced cause whose predicate holds."""
    return next(cause.name for cause in INDUCED if cause.holds(traffic))


def describe_cause(cause: str, *, induced: bool, axes: Collection[str] | None) -> Words:
    """What a cause means, and what usually removes it, on a mesh that splits these axes (`None`: on any mesh)."""
    row = _find(cause, induced=induced)
    missing = [axis for axis in row.without if axes is not None and axis not in axes]
    return row.without[missing[0]] if missing else Words(row.sentence, row.remedy)


def _find(cause: str, *, induced: bool) -> Inflated | Induced:
    table: tuple[Inflated | Induced, ...] = INDUCED if induced else INFLATED
    return next(row for row in table if row.name == cause)
