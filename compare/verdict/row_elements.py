"""Whether a collective can be one of a row: it has the elements of the row, and joins them as the row does.

A statistic over the axis of a sum is no part of that sum, though it is in its scope: docs/definitions.md, section 3.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import prod

from compare.contract.row import BOTH, FLOATS, INTEGERS, ContractRow
from compare.verdict.inflation import padding_fraction
from compare.verdict.operand_traffic import SUMS, OperandTraffic, is_float, is_integer

EXCHANGES = ("all-to-all", "ragged-all-to-all")
_CHOOSES = ("maximum", "minimum")


def joins_as(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it joins its members' parts as the row does: a sum adds, and an exchange's stand-in does, too.

    A row that only moves data has a sum in its place where the parts are zero elsewhere; `sample` also a choice.  An
    unknown reducer is believed to be the row's.
    """
    reducer = traffic.collective.reducer
    if row.kind in SUMS:
        return not reducer or reducer in ([name for name, _ in row.sums] or ["add"])
    if row.kind in EXCHANGES or traffic.collective.kind != "all-reduce" or traffic.collective.axes != row.axes:
        return reducer in ("", "add", "or")
    # A mean over stages has the shape of the state that they shift, and adds real parts; a masked sum adds zeros to
    # one.
    return traffic.operand.zero_elsewhere or (row.carries == BOTH and _may_choose(traffic))


def _may_choose(traffic: OperandTraffic) -> bool:
    """Of `sample`: whether it may be the maximum that chooses the winner, or the sum or minimum that finds its id."""
    return traffic.collective.reducer in _CHOOSES or is_integer(traffic.operand.dtype)


def carries_numbers_of(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it carries integers where the row moves ids, floats elsewhere, or numbers to which these were quantized.

    Quantized are integers of exactly the row's elements, or of parts of them: ids and masks have others.
    """
    dtype = traffic.operand.dtype
    return is_integer(dtype) or (row.carries != INTEGERS and is_float(dtype))


def count_elements(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Its elements, padding apart."""
    return prod(traffic.operand.shape) * (1 - padding_fraction(traffic, row))


def part_of_row(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """What one execution of it is of one of the row, by its elements: 1 is all or more, 0 that it cannot be one."""
    whole = _whole(traffic, row)
    is_quantized = row.carries == FLOATS and is_integer(traffic.operand.dtype)
    if traffic.collective.form == "windowed-einsum" or not whole:
        return Fraction(0 if is_quantized else 1)
    part = count_elements(traffic, row) / whole
    return Fraction(0) if is_quantized and part > 1 else min(part, Fraction(1))


def _whole(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """The elements that one execution of the row has in a collective of this kind; 0: any number."""
    kind, members = traffic.collective.kind, Fraction(prod(traffic.sizes.get(axis, 1) for axis in row.axes.split(",")))
    if traffic.collective.axes != row.axes:  # one step of several over slices: at least a member's part
        return row.elements / members
    if row.sums:
        reducer = traffic.collective.reducer
        return Fraction(min((elements for name, elements in row.sums if reducer in ("", name)), default=0))
    if row.kind in EXCHANGES:
        # An exchange by permutes has one for each other member, with that member's part.
        return row.elements if kind in (*EXCHANGES, "collective-permute") else Fraction(row.token_elements)
    if kind == "all-gather" and row.kind in ("collective-permute", "collective-broadcast"):
        return row.elements * members
    if kind == "all-reduce" and row.hops:
        return row.elements * members
    if row.carries == BOTH and kind == "all-reduce":
        return row.elements if traffic.operand.zero_elsewhere else row.elements / members  # of the winners, or of one
    return row.elements


def executions_of_row(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """How often a collective of this kind runs to make all of the row, if it carries all elements of an execution."""
    if row.hops and traffic.collective.kind != "collective-permute":
        return Fraction(row.executions, row.hops)  # a gather does what all hops do
    members = prod(traffic.sizes.get(axis, 1) for axis in row.axes.split(","))
    is_part = row.kind != "all-gather" or count_elements(traffic, row) * members <= row.elements  # else a broadcast
    if row.kind in (*EXCHANGES, *SUMS, "all-gather") and is_plain_permute(traffic) and is_part:
        return Fraction(row.executions * (members - 1), members)  # a member sends nothing to itself
    return Fraction(row.executions)


def is_plain_permute(traffic: OperandTraffic) -> bool:
    """Whether it is a permute, and no hop of a windowed einsum."""
    return traffic.collective.kind == "collective-permute" and traffic.collective.form != "windowed-einsum"


def find_parts(operands: Sequence[tuple[int, OperandTraffic]], row: ContractRow) -> frozenset[int]:
    """The indices of those that make the row: each does alone, or parts do together, larger parts first.

    Where all together do not, those of whole tokens are the row's.

    operands: with their indices, all that may serve the row but for their elements.
    """
    gathered = any(traffic.collective.kind == "all-gather" for _, traffic in operands)
    parts = [
        (part_of_row(traffic, row), index, traffic)
        for index, traffic in operands
        if not (row.carries == BOTH and gathered and _is_choice(traffic))
    ]
    whole = {index for part, index, _ in parts if part == 1}
    rest = sorted((entry for entry in parts if 0 < entry[0] < 1), key=lambda entry: -entry[0])
    covered = sum((_covered(*entry, row) for entry in parts if entry[0] == 1), Fraction(0))
    found = _fill(rest, row, so_far=Fraction(0))
    if covered < 1:
        found |= _fill(rest, row, so_far=covered) or {
            index for _, index, traffic in rest if not found and _has_whole_tokens(traffic, row)
        }
    return frozenset(whole | found)


def _has_whole_tokens(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it adds up some of the row's tokens, each whole: of a program that needs no others (its last layer's)."""
    # The last layer of a prefill sums only each sequence's last token, [4,1,2048]; a scale of every token, [4,512,1],
    # has as few elements and is a statistic.
    return bool(row.token_width) and row.token_width in traffic.operand.shape


def _is_choice(traffic: OperandTraffic) -> bool:
    """Of `sample`, whether it chooses among the winners; where these are gathered, it is a statistic of the logits."""
    # Where ids and values of all winners are gathered, a maximum in `sample` is that of a softmax.
    return traffic.collective.kind == "all-reduce" and not traffic.operand.zero_elsewhere


def _fill(parts: Sequence[tuple[Fraction, int, OperandTraffic]], row: ContractRow, *, so_far: Fraction) -> set[int]:
    """The parts, those of one size together, that make the row; none where all of them do not."""
    found: set[int] = set()
    for size in dict.fromkeys(part for part, _, _ in parts):
        if so_far >= 1:
            return found
        alike = [entry for entry in parts if entry[0] == size]
        so_far += sum((_covered(*entry, row) for entry in alike), Fraction(0))
        found |= {index for _, index, _ in alike}
    return found if so_far >= 1 else set()


def _covered(part: Fraction, index: int, traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """What it makes of all of the row in a step; one of unknown executions is believed to run as often as the row."""
    needed = executions_of_row(traffic, row)
    times = traffic.collective.executions
    return part if times is None or not needed else part * times / needed
