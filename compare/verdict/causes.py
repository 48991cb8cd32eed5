"""Why bytes are there that nobody needed: one table, cause → test → sentence → remedy.

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
from compare.verdict.operand_traffic import CACHE, WEIGHT, OperandTraffic, is_float

KIBIBYTE = 1024


class Words(NamedTuple):
    """What a cause means, and what usually removes it."""

    sentence: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflated:
    """More of something that the plan asks for."""

    name: str
    measure: Callable[[OperandTraffic, ContractRow], Fraction] | None
    """`None` where the judge counts over all shares of a row: see `verdict`."""
    sentence: str
    remedy: str
    without: Mapping[str, Words] = field(default_factory=dict)
    """An axis -> what is said instead on a mesh that does not split it: words name only what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Induced:
    """Something that the plan does not ask for."""

    name: str
    holds: Callable[[OperandTraffic], bool]
    sentence: str
    remedy: str
    without: Mapping[str, Words] = field(default_factory=dict)


INFLATED = (
    Inflated(
        name="wrap", measure=inflation.wrap_bytes,
        sentence="the hop that closes a ring brings what nobody uses: the last stage's state to the first, or a rank "
                 "its own keys and values again",
        remedy="shift by padding instead of rolling, so that only forward pairs remain; end a ring of n after n − 1 "
               "hops",
        without={
            "cp": Words(
                "the hop that closes the ring brings the last stage's state to the first, which has no use for it",
                "shift by padding instead of rolling, so that only forward pairs remain",
            ),
            "pp": Words(
                "the hop that closes the ring brings each rank its own keys and values again",
                "end a ring of n after n − 1 hops",
            ),
        },
    ),
    Inflated(
        name="bubble", measure=None,
        sentence="stages that have nothing to do in the pipeline's first and last ticks communicate all the same",
        remedy="more microbatches make the share smaller; a stage-active `cond` removes it",
    ),
    Inflated(
        name="replicated", measure=inflation.replicated_bytes,
        sentence="devices get more of the result than they need: idle stages compute and communicate it too, or all of "
                 "it goes to all of them, where a part for each would do",
        remedy="guard it with the stage's index, or pin the result split; or accept it, where it costs no time while "
               "the others wait",
        without={
            "pp": Words(
                "devices get more of the result than they need: all of it goes to all of them, where a part for each "
                "would do",
                "pin the result split",
            ),
        },
    ),
    Inflated(
        name="dtype", measure=inflation.widened_bytes,
        sentence="the elements on the wire are wider than the model's",
        remedy="convert to the model's dtype before the collective, not after it",
    ),
    Inflated(
        name="padding", measure=inflation.padding_bytes,
        sentence="a dim that its shards do not divide was rounded up, and the rounding travels too",
        remedy="choose a number of shards that divides the dim",
    ),
    Inflated(
        name="windowed-einsum", measure=inflation.accumulator_bytes,
        sentence="the compiler overlaps a matmul with permutes, and sends more hops than the gather or scatter needs",
        remedy="none in the program: it is the compiler's; a threshold flag of XLA switches the form off",
    ),
    Inflated(
        name="other", measure=None,
        sentence="it serves the plan, and sends more than the plan asks, for no reason that is known here",
        remedy="read the HLO line",
    ),
)  # fmt: skip

_MOVES = ("all-to-all", "ragged-all-to-all", "collective-permute")
_GATHERS = ("all-gather", "all-reduce", "reduce-scatter")

INDUCED = (
    Induced(
        name="loop-predicate",
        holds=lambda traffic: traffic.operand.steers_loop or _is_decision(traffic),
        sentence="devices agree on whether a loop or branch goes on",
        remedy="make the loop's bound a constant of the program",
    ),
    Induced(
        name="compiler-sync",
        holds=lambda traffic: traffic.collective.payload_bytes <= KIBIBYTE and not traffic.collective.from_parameters,
        sentence="a few bytes that depend on no input: the compiler lines devices up",
        remedy="none: it is the compiler's",
    ),
    Induced(
        name="weight-gather",
        holds=lambda traffic: WEIGHT in traffic.roles,
        sentence="a weight that the plan keeps split is moved between devices before it is used",
        remedy="pin the activations on both sides of the matmul, so that the split weight is used in place",
    ),
    Induced(
        name="cache-gather",
        holds=lambda traffic: CACHE in traffic.roles,
        sentence="the cache that the plan keeps split is moved between devices before it is used",
        remedy="pin what is read from the cache, and update it in a form that keeps the split dim whole",
    ),
    Induced(
        name="logits-gather",
        holds=lambda traffic: traffic.operand.scope in ("head", "sample") and is_float(traffic.operand.dtype),
        sentence="whole logits travel, where the winner of each shard would do",
        remedy="pin the logits over the vocabulary, and choose the winner of each shard first",
    ),
    Induced(
        name="output-replication",
        holds=lambda traffic: traffic.collective.reaches_root,
        sentence="an output of the program is made whole on every device",
        remedy="give the output the sharding that it has inside the program",
    ),
    Induced(
        name="layout-change",
        holds=lambda traffic: traffic.collective.kind in _MOVES,
        sentence="a tensor changes from one split to another between two operations that disagree",
        remedy="pin both operations to one split",
    ),
    Induced(
        name="full-replication",
        holds=lambda traffic: traffic.every_axis,
        sentence="a tensor is made whole on every device of the mesh",
        remedy="pin it; or write the operation so that it keeps the split dim apart (no merge of split dims)",
    ),
    Induced(
        name="activation-gather",
        holds=lambda traffic: traffic.collective.kind in _GATHERS,
        sentence="a split activation is made whole along an axis that the plan keeps split",
        remedy="pin it; or write the operation so that it keeps the split dim apart (no merge of split dims)",
    ),
    Induced(
        name="other",
        holds=lambda traffic: True,
        sentence="it serves nothing in the plan, for no reason that is known here",
        remedy="read the HLO line",
    ),
)  # fmt: skip


def _is_decision(traffic: OperandTraffic) -> bool:
    """Whether it carries one predicate of each device; more of them are a mask, which is data."""
    members = max(map(len, traffic.collective.groups), default=1)
    return traffic.operand.dtype == "pred" and prod(traffic.operand.shape) <= members


def induced_cause(traffic: OperandTraffic) -> str:
    """The first cause of the table that holds."""
    return next(cause.name for cause in INDUCED if cause.holds(traffic))


def describe_cause(cause: str, *, induced: bool, axes: Collection[str] | None) -> Words:
    """What a cause means, and what usually removes it, on a mesh that splits these axes; None: on any."""
    found = _find(cause, induced=induced)
    missing = [axis for axis in found.without if axes is not None and axis not in axes]
    return found.without[missing[0]] if missing else Words(found.sentence, found.remedy)


def _find(cause: str, *, induced: bool) -> Inflated | Induced:
    table: tuple[Inflated | Induced, ...] = INDUCED if induced else INFLATED
    return next(row for row in table if row.name == cause)
