"""The causes of traffic that satisfies a row which is full: idle ticks, a closed ring, or more of the same."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from compare.contract.row import ContractRow
from compare.verdict.inflation import NOTHING, closes_ring
from compare.verdict.operand_traffic import OperandTraffic


def spare_bubble(row: ContractRow, operands: Sequence[OperandTraffic]) -> Fraction:
    """The bytes of the idle ticks of a row: unrolled, some of them may be missing, and none be counted as such.

    operands: all that serve the row.  Where they are copies, each of all busy ticks and of some idle ones, or of none,
        these are the idle ones.
    """
    busy = row.ticks - row.idle_ticks
    if busy <= 0:
        return NOTHING
    times = sum(traffic.collective.executions or 0 for traffic in operands)
    if any(traffic.collective.loops for traffic in operands):
        times = 0
    # Unrolled, with 4 busy ticks of 5: 8 shifts are two in each busy tick, and none is idle; 10 are two in every tick,
    # of which two are idle.
    for copies in range(1, times // busy + 1):
        if times % copies == 0 and times <= copies * row.ticks:
            sent = sum((traffic.exact_step_bytes for traffic in operands), NOTHING)
            return sent * (times - copies * busy) / times
    return Fraction(row.step_wire_bytes * row.idle_ticks, busy)


def overflow_causes(
    traffic: OperandTraffic,
    row: ContractRow,
    amount: Fraction,
    *,
    counted: Mapping[str, Fraction],
    free: int,
    spare: Fraction,
) -> dict[str, Fraction]:
    """Cause -> bytes of what goes beyond the row.

    counted: the causes that were counted over all operands of the row, and taken off.
    free: bytes of the row that were not served before: without any, this traffic is all more of the same.
    spare: bytes of idle ticks that no operand of the row was found to have.
    """
    if row.scope == "pipeline.shift" and (bubble := min(amount, _idle(traffic, amount, free=free, spare=spare))):
        rest = {_more_of_the_same(traffic, row): amount - bubble} if bubble < amount else {}
        return {"bubble": bubble, **rest}
    if traffic.collective.form == "windowed-einsum":
        return {"windowed-einsum": amount}  # hops beyond those that the row needs
    if row.hops and traffic.collective.kind == row.kind and _goes_around(traffic, row, counted=counted, free=free):
        return {"wrap": amount}
    return {_more_of_the_same(traffic, row): amount}


def _idle(traffic: OperandTraffic, amount: Fraction, *, free: int, spare: Fraction) -> Fraction:
    """Of a shift: in a loop of other than the plan's ticks, all ticks beyond those of the microbatches; unrolled, as
    many as the plan's, of which the compiler may have taken away the first or the last."""
    if not spare:
        return NOTHING
    if traffic.collective.loops:
        return amount if free else NOTHING
    return spare


def _goes_around(traffic: OperandTraffic, row: ContractRow, *, counted: Mapping[str, Fraction], free: int) -> bool:
    """Whether it brings a rank its own part again: by its data, or as a loop's trip beyond those that the row needs."""
    # In a loop a hop's number is its trip, so that `closes_ring` cannot see the last one.  It went around if the row
    # had room for the others and `wrap` was not yet taken off.
    in_loop = traffic.operand.earlier_hops is None and "wrap" not in counted and free > 0
    return closes_ring(traffic, row) or in_loop


def _more_of_the_same(traffic: OperandTraffic, row: ContractRow) -> str:
    return "replicated" if traffic.collective.kind != row.kind else "other"
