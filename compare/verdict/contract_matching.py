"""Which row of the contract a share serves, if any: definitions, section 3."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile
from math import prod

from compare.contract.row import BOTH, FLOATS, INTEGERS, ContractRow
from compare.verdict.inflation import padding_bytes
from compare.verdict.operand_traffic import CACHE, WEIGHT, OperandTraffic, is_float, is_integer, senders

_EQUIVALENT = {
    "all-reduce": {"all-reduce", "reduce-scatter", "all-gather"},
    "reduce-scatter": {"reduce-scatter", "all-reduce"},
    "all-gather": {"all-gather", "all-reduce"},
    "collective-permute": {"collective-permute", "all-reduce", "all-gather"},
    "all-to-all": {"all-to-all", "ragged-all-to-all", "all-gather", "reduce-scatter", "all-reduce"},
    "collective-broadcast": {"collective-broadcast", "all-reduce", "all-gather"},
}
"""Kind of the row -> kinds that do its work.

An all-reduce is a reduce-scatter and an all-gather; a sum of parts that are zero elsewhere does what a gather
does; a masked sum, or a gather, does what a permute or a broadcast does.  Tokens also reach their experts where all
are gathered and each expert keeps its own, and return where the experts' parts are summed.  The permutes of a windowed
einsum do what the gather or scatter did that they came from, and those of a gather what a ring does.
"""

_FROM_ONE = {"collective-broadcast", "all-gather"}

_WINDOWED = {"all-gather", "reduce-scatter", "all-reduce", "all-to-all"}


_SUMS = ("all-reduce", "reduce-scatter")


@dataclass(frozen=True, slots=True)
class ContractMatch:
    """Which row of the contract each share serves."""

    rows: tuple[int | None, ...]
    """By the number of the share; `None`: none."""
    completing: frozenset[int]
    """The numbers of the gathers that serve the half of an all-reduce row that a scatter has left."""


def match_contract(shares: Sequence[OperandTraffic], contract: Sequence[ContractRow]) -> ContractMatch:
    """For each share the number of the contract row that it serves, or `None`."""
    found = [_row_of(traffic, contract) for traffic in shares]
    scatters = [(number, row) for number, row in enumerate(found) if row is not None and is_scatter(shares[number])]
    gathers = [number for number, traffic in enumerate(shares) if traffic.collective.scattered_by]
    completed = {
        number: row for number in gathers if (row := _completes(number, shares, scatters, contract)) is not None
    }
    return ContractMatch(tuple(completed.get(number, row) for number, row in enumerate(found)), frozenset(completed))


def _row_of(traffic: OperandTraffic, contract: Sequence[ContractRow]) -> int | None:
    """The row with its axes and scope (a, b) whose kind (c) and content (d, e) fit; its own kind first.

    A step of a collective over several slices, within them or between them, has the axes of the whole.
    """
    fits = [
        number
        for number, row in enumerate(contract)
        if _runs_over(traffic, row) and row.scope == traffic.operand.scope and _does_the_work(traffic, row)
    ]
    same = [number for number in fits if contract[number].kind == traffic.collective.kind]
    return next(iter(same or fits), None)


def _runs_over(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Over the row's axes, or over their part within slices or between them, as one step of several."""
    return row.axes in (traffic.collective.axes, traffic.collective.part_of)


def _does_the_work(traffic: OperandTraffic, row: ContractRow) -> bool:
    kind, windowed = traffic.collective.kind, traffic.collective.form == "windowed-einsum"
    able = (row.kind in _WINDOWED or row.hops > 0) if windowed else kind in _EQUIVALENT.get(row.kind, {row.kind})
    # An exchange of all the partial sums, which are added up where they come, is a scatter.
    able |= (
        kind == "all-to-all" and row.kind == "reduce-scatter" and traffic.collective.payload_bytes == row.payload_bytes
    )
    # Permutes that each bring what one member has to one other are a broadcast together; so is a gather of parts of
    # which all but one member's are empty.
    able |= kind == "collective-permute" and row.kind in _FROM_ONE and _from_one(traffic)
    able &= not _is_no_sum(traffic, row)
    # The last step of a sum over slices that stands in for a scatter: it serves, as a whole, in vain.
    able |= kind == "all-gather" and row.kind == "reduce-scatter" and traffic.collective.part_of == row.axes
    return able and not traffic.roles & {WEIGHT, CACHE} and _carries(traffic, row)


def _is_no_sum(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Of a row that adds partial sums up over tp: whether a gather cannot stand in for it.

    What brings the operand of a product together sums nothing; and a gather that makes a sum whole makes as much.
    """
    if row.kind not in _SUMS or row.axes != "tp" or traffic.collective.axes != row.axes:
        return False
    if traffic.operand.feeds_product:
        return True
    gathers = traffic.collective.kind == "all-gather" or traffic.operand.zero_elsewhere
    return gathers and row.kind == "all-reduce" and not _is_whole(traffic, row)


def _is_whole(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it has the elements of one execution of the row, padding apart; of `embed` also of one microbatch."""
    asked = Fraction(row.payload_bytes, row.float_bytes)
    elements = prod(traffic.operand.shape) * (1 - padding_bytes(traffic, row))
    return elements == asked or (row.scope == "embed" and elements * (row.ticks - row.idle_ticks) == asked)


def _from_one(traffic: OperandTraffic) -> bool:
    """Whether of each group of its axes at most one member sends, and to one other.

    The program of one slice stands for all: a pair in it is not of those slices that take another branch.
    """
    within = traffic.collective.axes.split(",")
    groups, sending = traffic.collective.mesh_groups or traffic.collective.groups, senders(traffic)
    sources = [
        tuple(traffic.coordinate(source, axis) for axis in traffic.sizes if axis not in within)
        for source, target in groups
        if source != target and (source in sending or not sending)
    ]
    return len(sources) == len(set(sources))


def _carries(traffic: OperandTraffic, row: ContractRow) -> bool:
    dtype = traffic.operand.dtype
    able = {FLOATS: is_float(dtype), INTEGERS: is_integer(dtype), BOTH: is_float(dtype) or is_integer(dtype)}
    # What is chosen among is no part of the choice: whole logits serve nothing, the winners of the shards do.
    whole_logits = row.scope == "sample" and traffic.operand.payload_bytes > row.payload_bytes
    return able[row.carries] and not whole_logits and not _is_logits(traffic, row)


def _is_logits(traffic: OperandTraffic, row: ContractRow) -> bool:
    """At the head: a dim of the vocabulary's size, in more than hidden states are: merged, those may have it, too."""
    elements, hidden = prod(traffic.operand.shape), row.payload_bytes // row.float_bytes
    return bool(row.vocab) and row.vocab in traffic.operand.shape and elements > hidden


def is_scatter(traffic: OperandTraffic) -> bool:
    """Whether it is a reduce-scatter, or a hop of one that is a windowed einsum."""
    return traffic.collective.kind == "reduce-scatter" or traffic.collective.form == "windowed-einsum"


def _completes(
    number: int, shares: Sequence[OperandTraffic], scatters: Sequence[tuple[int, int]], contract: Sequence[ContractRow]
) -> int | None:
    """The all-reduce row whose other half a gather serves, whatever its scope, for it gathers what was scattered.

    Residual adds and norms may stand between, so that there may be several: that of the last scatter before it counts.
    scatters: the numbers of those that serve a row, and the row's.
    """
    gather = shares[number]
    if gather.collective.kind != "all-gather" or gather.roles & {WEIGHT, CACHE}:
        return None
    able = [
        (_nearness(number, scatter, shares), row)
        for scatter, row in scatters
        if shares[scatter].collective.name in gather.collective.scattered_by and contract[row].kind == "all-reduce"
        and _runs_over(gather, contract[row]) and _carries(gather, contract[row]) and _is_whole(gather, contract[row])
    ]  # fmt: skip
    return max(able)[1] if able else None


def _nearness(gather: int, scatter: int, shares: Sequence[OperandTraffic]) -> tuple[int, bool, int]:
    """How near before the gather a scatter stands, the nearest the greatest: in the same loop, and there cyclically."""
    around = zip(shares[gather].collective.loops, shares[scatter].collective.loops, strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0].name == pair[1].name, around))
    return shared, scatter < gather, scatter
