"""Collectives that a program writes as several permutes: which of them make one together.

docs/definitions.md, section 3: an exchange, a gather, a scatter of partial sums, or a whole sum.
"""

from collections.abc import Iterable, Sequence
from math import prod

from compare.contract.row import ContractRow
from compare.verdict.operand_traffic import SUMS, OperandTraffic
from compare.verdict.row_elements import EXCHANGES, count_elements, is_plain_permute

Pair = tuple[int, int]


def is_hand_written(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it may be one of the permutes that make the row: each carries one member's part, or all partial sums."""
    if not is_plain_permute(traffic):
        return False
    if row.kind in SUMS:
        return traffic.operand.added_up and (carries_one_part(traffic, row) or carries_whole_sum(traffic, row))
    return row.kind in EXCHANGES or (row.kind == "all-gather" and carries_one_part(traffic, row))


def carries_one_part(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it moves one member's part of the row's elements."""
    return count_elements(traffic, row) * prod(traffic.sizes[axis] for axis in row.axes.split(",")) == row.elements


def carries_whole_sum(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it moves all elements of an all-reduce to another member, which adds them to its own."""
    return row.kind == "all-reduce" and traffic.operand.added_up and count_elements(traffic, row) == row.elements


def without_loose_permutes(
    candidates: Sequence[tuple[int, OperandTraffic]], row: ContractRow
) -> list[tuple[int, OperandTraffic]]:
    """Without the permutes that do not make the row's collective together.

    Whole partial sums are the row's only where no other sum is: a permute whose result is added to something may also
    be a move of what was summed up before.
    """
    permutes = [traffic for _, traffic in candidates if is_hand_written(traffic, row)]
    whole_sums = [traffic for traffic in permutes if carries_whole_sum(traffic, row)]
    parts = [traffic for traffic in permutes if not carries_whole_sum(traffic, row)]
    loose = [] if make_together(parts, row) else parts
    # `total += ppermute(total)` makes a sum by doubling; beside the row's own all-reduce such an addition is a
    # residual's.
    if len(candidates) > len(permutes) or not make_together(whole_sums, row):
        loose += whole_sums
    names = {traffic.collective.name for traffic in loose}
    return [(index, traffic) for index, traffic in candidates if traffic.collective.name not in names]


def make_together(permutes: Sequence[OperandTraffic], row: ContractRow) -> bool:
    """Whether each member sends to each other; or, but in an exchange, each permute hands on what another one brought,
    and so comes to all members."""
    pairs = _pairs(permutes)
    if len(pairs) == len({source for source, _ in pairs}) * (_members(permutes, row) - 1):
        return True
    names = {traffic.collective.name for traffic in permutes}
    first = [
        traffic
        for traffic in permutes
        if traffic.operand.earlier_hops == 0 and not names & set(traffic.collective.scattered_by)
    ]
    # A ring gathers because hop after hop hands the part on.  Three permutes of three arrays to the next device, a
    # halo, have the same pairs, and each is a first hop.
    return row.kind not in EXCHANGES and len(first) <= 1 and _reach_all(permutes, row)


def _reach_all(permutes: Sequence[OperandTraffic], row: ContractRow) -> bool:
    """Whether what one member sends can come to each other one of its group, hop by hop."""
    targets: dict[int, set[int]] = {}
    for source, target in _pairs(permutes):
        targets.setdefault(source, set()).add(target)
    members = _members(permutes, row)
    return all(len(_reached_from(device, targets)) == members for device in targets)


def _members(permutes: Sequence[OperandTraffic], row: ContractRow) -> int:
    return prod(permutes[0].sizes[axis] for axis in row.axes.split(",")) if permutes else 0


def _pairs(permutes: Iterable[OperandTraffic]) -> set[Pair]:
    """(source, target) of all; what a device sends itself does not move."""
    return {
        (source, target)
        for traffic in permutes
        for source, target in traffic.collective.mesh_groups or traffic.collective.groups
        if source != target
    }


def _reached_from(device: int, targets: dict[int, set[int]]) -> set[int]:
    reached, todo = {device}, [device]
    while todo:
        fresh = targets.get(todo.pop(), set()) - reached
        reached |= fresh
        todo += fresh
    return reached
