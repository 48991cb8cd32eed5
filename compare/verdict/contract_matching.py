"""Which row of the contract each operand of a collective satisfies, if any: definitions, section 3."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import prod

from compare.contract.row import TABLES, ContractRow
from compare.verdict.operand_traffic import CACHE, SUMS, WEIGHT, OperandTraffic, senders
from compare.verdict.permutes import (
    carries_one_part,
    carries_whole_sum,
    is_hand_written,
    make_together,
    without_loose_permutes,
)
from compare.verdict.row_elements import (
    carries_numbers_of,
    count_elements,
    find_parts,
    is_plain_permute,
    joins_as,
)

_EQUIVALENT = {
    "all-reduce": {"all-reduce", "reduce-scatter", "all-gather"},
    "reduce-scatter": {"reduce-scatter", "all-reduce"},
    "all-gather": {"all-gather", "all-reduce"},
    "collective-permute": {"collective-permute", "all-reduce", "all-gather"},
    "all-to-all": {"all-to-all", "ragged-all-to-all", "all-gather", "reduce-scatter", "all-reduce"},
    "collective-broadcast": {"collective-broadcast", "all-reduce", "all-gather"},
}
"""Kind of the row -> kinds that satisfy it.

An all-reduce is a reduce-scatter and an all-gather; a sum of parts that are zero elsewhere does what a gather
does; a masked sum, or a gather, does what a permute or a broadcast does.  A gather of all tokens, of which each expert
keeps its own, does what the dispatch does, and a sum of the experts' parts what the combine does.  The permutes of a
windowed einsum replace the gather or scatter that they came from; those of a gather also replace a ring.
"""

_FROM_ONE = {"collective-broadcast", "all-gather"}

_WINDOWED = {"all-gather", "reduce-scatter", "all-reduce", "all-to-all"}


_SCATTERING_KINDS = ("reduce-scatter", "all-to-all")
"""Kinds that make a reduce-scatter, where they serve a sum."""


@dataclass(frozen=True, slots=True)
class ContractMatch:
    """Which row of the contract each operand satisfies."""

    rows: tuple[int | None, ...]
    """Per operand the index of its contract row, or `None`."""
    completing: frozenset[int]
    """Indices of the gathers that satisfy the second half of an all-reduce row, after a reduce-scatter."""


def match_contract(operands: Sequence[OperandTraffic], contract: Sequence[ContractRow]) -> ContractMatch:
    """For each operand the index of the contract row that it satisfies, or `None`."""
    matches = _keep_parts([_row_of(traffic, contract) for traffic in operands], operands, contract)
    scatters = [
        (index, row)
        for index, row in enumerate(matches)
        if row is not None and is_scatter(operands[index], contract[row])
    ]
    gathers = [index for index, traffic in enumerate(operands) if traffic.collective.scattered_by]
    completed = {
        index: row for index in gathers if (row := _completed_row(index, operands, scatters, contract)) is not None
    }
    for row in set(completed.values()):
        # Permutes that gather what was scattered count as that gather only together: one of three hops brings no one
        # all.
        hops = [index for index, of in completed.items() if of == row and is_plain_permute(operands[index])]
        if not make_together([operands[index] for index in hops], contract[row]):
            completed = {index: of for index, of in completed.items() if index not in hops}
    return ContractMatch(tuple(completed.get(index, row) for index, row in enumerate(matches)), frozenset(completed))


def _keep_parts(
    matches: Sequence[int | None], operands: Sequence[OperandTraffic], contract: Sequence[ContractRow]
) -> list[int | None]:
    """The same without those that have too few elements to be their row's, alone or together."""
    kept = list(matches)
    for row in {row for row in matches if row is not None and not contract[row].of_weights}:
        candidates = [(index, operands[index]) for index, served in enumerate(matches) if served == row]
        found = find_parts(without_loose_permutes(candidates, contract[row]), contract[row])
        for index, _ in candidates:
            if index not in found:
                kept[index] = None
    return kept


def _row_of(traffic: OperandTraffic, contract: Sequence[ContractRow]) -> int | None:
    """The row that meets the five conditions of docs/definitions.md, section 3; a row of its own kind first.

    A step of a collective over several slices, within them or between them, counts with the axes of that collective.
    """
    # A gathered weight serves no row of activations, in whatever scope: it would hide that the plan keeps it split.
    if WEIGHT in traffic.roles:
        return _row_of_weights(traffic, contract)
    candidates = [
        index
        for index, row in enumerate(contract)
        if _runs_over(traffic, row) and row.scope == traffic.operand.scope and _can_satisfy(traffic, row)
    ]
    same_kind = [index for index in candidates if contract[index].kind == traffic.collective.kind]
    return next(iter(same_kind or candidates), None)


def _row_of_weights(traffic: OperandTraffic, contract: Sequence[ContractRow]) -> int | None:
    """The row that puts such weights together, wherever in the model they are used: that of its own size (a table),
    then of its own scope, then the first.  A scope may be a neighbour's: it does not make a table of a weight.
    """
    if traffic.collective.kind == "all-reduce" and not traffic.operand.zero_elsewhere:
        # The maximum of a weight that is split over dp is a number of it, and no gather.
        return None  # a statistic of weights
    rows = [
        index
        for index, row in enumerate(contract)
        if row.of_weights
        and CACHE not in traffic.roles
        and _runs_over(traffic, row)
        and _is_equivalent_kind(traffic, row)
        and _carries(traffic, row)
    ]
    whole = [index for index in rows if contract[index].payload_bytes == traffic.operand.payload_bytes]
    of_scope = [index for index in rows if contract[index].scope == traffic.operand.scope]
    both = [index for index in whole if index in of_scope]
    others = [index for index in of_scope if contract[index].scope not in TABLES]
    return next(iter(both or whole or others or rows), None)


def _runs_over(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it runs over the row's axes, or is one step, within or between slices, of a collective that does."""
    return row.axes in (traffic.collective.axes, traffic.collective.part_of)


def _can_satisfy(traffic: OperandTraffic, row: ContractRow) -> bool:
    kind_fits = (
        _is_equivalent_kind(traffic, row)
        or _is_scatter_by_exchange(traffic, row)
        or is_hand_written(traffic, row)  # of enough of them, which `_keep_parts` counts
        or _is_broadcast(traffic, row)
        or is_added_up(traffic, row)
    ) and not _cannot_be_sum(traffic, row)
    return (
        (kind_fits or _is_last_step_of_sum(traffic, row))
        and joins_as(traffic, row)
        and not row.of_weights
        and not traffic.roles & {WEIGHT, CACHE}
        and _carries(traffic, row)
    )


def _is_equivalent_kind(traffic: OperandTraffic, row: ContractRow) -> bool:
    if traffic.collective.form == "windowed-einsum":
        return row.kind in _WINDOWED or row.hops > 0
    return traffic.collective.kind in _EQUIVALENT.get(row.kind, {row.kind})


def _is_scatter_by_exchange(traffic: OperandTraffic, row: ContractRow) -> bool:
    """An all-to-all of all partial sums, added up by the receiver, is a reduce-scatter: the first half of a sum."""
    is_step = traffic.collective.axes != row.axes  # over slices: what becomes of it is not looked at
    is_sum = row.kind in SUMS and (traffic.operand.added_up or is_step)
    return is_sum and traffic.collective.kind == "all-to-all" and traffic.collective.payload_bytes == row.payload_bytes


def is_added_up(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it gathers all partial results, which are added up where they come: more bytes than a sum sends."""
    members = prod(traffic.sizes.get(axis, 1) for axis in row.axes.split(","))
    whole = count_elements(traffic, row) == members * row.elements
    return traffic.operand.added_up and row.kind in SUMS and traffic.collective.kind == "all-gather" and whole


def _is_broadcast(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Permutes that each send from one member of a group to one other are a broadcast together; so is a gather to which
    only one member contributes data."""
    return traffic.collective.kind == "collective-permute" and row.kind in _FROM_ONE and _has_one_sender(traffic)


def _is_last_step_of_sum(traffic: OperandTraffic, row: ContractRow) -> bool:
    """The last step of a sum over slices, in place of a scatter: it matches the row; all of its bytes are inflated."""
    kinds = (traffic.collective.kind, row.kind)
    return kinds == ("all-gather", "reduce-scatter") and traffic.collective.part_of == row.axes


def _cannot_be_sum(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether this gather cannot satisfy a row that sums partial results over tp.

    A gather of an operand of a matmul sums nothing; any other must give as many elements as the row's sum.
    """
    # Over tp a gather can stand on either side of a matmul: of its operand [T, F], which replaces no sum, or of its
    # output [T, D], which does.
    if row.kind not in SUMS or row.axes != "tp" or traffic.collective.axes != row.axes:
        return False
    if traffic.operand.feeds_product:
        return True
    gathers = traffic.collective.kind == "all-gather" or traffic.operand.zero_elsewhere
    return (
        gathers and row.kind == "all-reduce" and not _has_all_elements(traffic, row) and not is_added_up(traffic, row)
    )


def _has_all_elements(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it has as many elements as one execution of the row, padding apart; in `embed` also one microbatch's."""
    elements = count_elements(traffic, row)
    # Before a pipeline the embedding is looked up for the whole batch, or for one microbatch in each busy tick.
    return elements == row.elements or (
        row.scope == "embed" and elements * (row.ticks - row.idle_ticks) == row.elements
    )


def _has_one_sender(traffic: OperandTraffic) -> bool:
    """Whether in each group of its axes at most one member sends, and to one other.

    One slice's program represents all slices: a pair does not count for slices that take another branch.
    """
    axes = traffic.collective.axes.split(",")
    groups, sending = traffic.collective.mesh_groups or traffic.collective.groups, senders(traffic)
    sources = [
        tuple(traffic.coordinate(source, axis) for axis in traffic.sizes if axis not in axes)
        for source, target in groups
        if source != target and (source in sending or not sending)
    ]
    return len(sources) == len(set(sources))


def _carries(traffic: OperandTraffic, row: ContractRow) -> bool:
    # Gathering full logits does not satisfy the sample row; gathering each shard's winner does.
    whole_logits = row.scope == "sample" and traffic.operand.payload_bytes > row.payload_bytes
    return carries_numbers_of(traffic, row) and not whole_logits and not _is_logits(traffic, row)


def _is_logits(traffic: OperandTraffic, row: ContractRow) -> bool:
    """At the head: a dim of the vocabulary's size, and more elements than hidden states (merged dims may equal it)."""
    # tiny has a vocabulary of 512, and lays 8 · 128 hidden states out as [2,512]: the dim alone does not tell.
    elements, hidden = prod(traffic.operand.shape), row.payload_bytes // row.float_bytes
    return bool(row.vocab) and row.vocab in traffic.operand.shape and elements > hidden


def is_scatter(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it is a reduce-scatter, the all-to-all or a permute of one, or a hop of a windowed einsum."""
    if is_plain_permute(traffic):
        return traffic.operand.added_up and not carries_whole_sum(traffic, row)
    return traffic.collective.kind in _SCATTERING_KINDS or traffic.collective.form == "windowed-einsum"


def _completed_row(
    index: int, operands: Sequence[OperandTraffic], scatters: Sequence[tuple[int, int]], contract: Sequence[ContractRow]
) -> int | None:
    """The all-reduce row whose second half this gather satisfies, whatever its scope: it gathers what was scattered.

    Residual adds and norms may lie between, so that several rows fit: the last scatter before the gather decides.
    scatters: (index of the operand, index of the row that it satisfies).
    """
    gather = operands[index]
    is_hop = is_plain_permute(gather) and not gather.operand.added_up
    if not (gather.collective.kind == "all-gather" or is_hop) or gather.roles & {WEIGHT, CACHE}:
        return None
    candidates = [
        (_nearness(index, scatter, operands), row)
        for scatter, row in scatters
        if operands[scatter].collective.name in gather.collective.scattered_by
        and contract[row].kind == "all-reduce"
        and _runs_over(gather, contract[row])
        and _carries(gather, contract[row])
        and _gathers_all_elements(gather, contract[row])
    ]
    return max(candidates)[1] if candidates else None


def _gathers_all_elements(gather: OperandTraffic, row: ContractRow) -> bool:
    """All, or as one hop of several one member's part."""
    return carries_one_part(gather, row) if is_plain_permute(gather) else _has_all_elements(gather, row)


def _nearness(gather: int, scatter: int, operands: Sequence[OperandTraffic]) -> tuple[int, bool, int]:
    """Sort key, largest for the nearest scatter before the gather: by shared loops, then by order, cyclically."""
    loop_pairs = zip(operands[gather].collective.loops, operands[scatter].collective.loops, strict=False)
    # A layer's gather completes a scatter of its own loop, `out`, before one outside of it, `first`.  In a loop's body
    # the scatter that stands behind the gather ran in the trip before.
    shared = sum(1 for _ in takewhile(lambda pair: pair[0].name == pair[1].name, loop_pairs))
    return shared, scatter < gather, scatter
