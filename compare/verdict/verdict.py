"""The verdict on every collective: subtract known overheads (inflated), then credit the rest to contract rows.

Takes contract *rows*, not a `Case`: rows written by hand judge any program.  Bytes are conserved, as
integers: inherent + inflated + induced = step_wire_bytes for each row.  Definitions: section 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from compare.contract.row import ContractRow, round_half_up
from compare.hlo.collective import Collective
from compare.verdict.causes import INFLATED, induced_cause
from compare.verdict.contract_matching import ContractMatch, is_scatter, match_contract
from compare.verdict.inflation import NOTHING, in_tick_loop, last_hop_fraction, widened_fraction
from compare.verdict.operand_traffic import SUMS, OperandTraffic, is_integer, senders, split_by_operand
from compare.verdict.overflow import overflow_causes, spare_bubble
from compare.verdict.row_elements import count_elements

_FAR = 1 << 30
"""Of a sum whose result goes into a product or another collective first, or is not followed to the end of its scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One collective and the verdict on its bytes; `None` where its executions are unknown."""

    collective: Collective
    inherent_bytes: int | None
    inflated_bytes: int | None
    induced_bytes: int | None
    causes: Mapping[str, int]
    """cause -> bytes, summing to inflated + induced."""
    serves: tuple[int, ...] = ()
    """Indices of the contract rows that it satisfies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdicts in program order, and for each contract row the bytes that satisfy it."""

    verdicts: tuple[Verdict, ...]
    served_bytes: tuple[int, ...]
    uncounted: frozenset[int] = frozenset()
    """Indices of the rows that a collective of unknown executions satisfies: their unserved bytes are unknown, too."""


@dataclass(slots=True)
class _Account:
    """The verdict on one collective's bytes, while its operands are judged."""

    inherent: int = 0
    inflated: dict[str, int] = field(default_factory=dict)
    induced: dict[str, int] = field(default_factory=dict)
    serves: list[int] = field(default_factory=list)


def judge(
    collectives: Sequence[Collective],
    contract: Sequence[ContractRow],
    *,
    axes: Mapping[str, int],
    roles: Mapping[int, str] | None = None,
) -> Judgement:
    """Judge a program's collectives, in program order, by a contract.

    `axes` are the mesh's, outermost first, name -> size; `roles` says which parameters of the program are
    `weight`, `cache` or `input` (by number; an unnamed one counts as a weight unless it holds integers).
    """
    vocab = max((row.vocab for row in contract), default=0)
    token_width = max((row.token_width for row in contract), default=0)
    operands = [
        traffic
        for row in collectives
        for traffic in split_by_operand(row, sizes=axes, roles=roles or {}, vocab=vocab, token_width=token_width)
    ]
    match = match_contract(operands, contract)
    rows = match.rows
    is_counted = [traffic.collective.executions is not None for traffic in operands]
    uncounted = {row for row, known in zip(rows, is_counted, strict=True) if row is not None and not known}
    counted_over = {"bubble": _idle_parts(operands, rows, contract)}
    counted_over["wrap"] = _last_hops(operands, rows, contract, idle=counted_over["bubble"])
    idle_rows = {rows[index] for index in counted_over["bubble"]}
    spare = [
        NOTHING
        if number in idle_rows
        else spare_bubble(row, [traffic for traffic, served in zip(operands, rows, strict=True) if served == number])
        for number, row in enumerate(contract)
    ]
    remaining = [row.step_wire_bytes for row in contract]
    accounts = {id(row): _Account() for row in collectives if row.executions is not None}
    scattered_bytes = dict.fromkeys(range(len(contract)), 0)
    completed = {row for index in match.completing if (row := rows[index]) is not None}
    for_scatters = {row: contract[row].step_wire_bytes // 2 for row in completed}
    for index in _filling_order(operands, match, contract):
        traffic, row = operands[index], rows[index]
        account = accounts.get(id(traffic.collective))
        if account is None:
            continue
        if row is None:
            _add(account.induced, induced_cause(traffic), traffic.step_bytes)
        else:
            counted = {cause: fractions[index] for cause, fractions in counted_over.items() if index in fractions}
            scatters = index not in match.completing and is_scatter(traffic, contract[row])
            free = min(remaining[row], scattered_bytes[row]) if index in match.completing else remaining[row]
            if scatters:  # the other half of a row that a gather completes is the gather's
                free = min(free, for_scatters.get(row, free))
            fill = _split_inflated_inherent(traffic, contract[row], counted=counted, free=free, spare=spare[row])
            inherent = fill.inherent
            _book(account, fill, row=row)
            spare[row] = max(NOTHING, spare[row] - fill.overflow.get("bubble", NOTHING))
            remaining[row] -= inherent
            # An all-gather may complete an all-reduce row only up to the bytes already reduce-scattered.
            scattered_bytes[row] += -inherent if index in match.completing else inherent * scatters
            if scatters and row in for_scatters:
                for_scatters[row] -= inherent
    return Judgement(
        verdicts=tuple(_verdict(row, accounts.get(id(row))) for row in collectives),
        served_bytes=tuple(row.step_wire_bytes - unserved for row, unserved in zip(contract, remaining, strict=True)),
        uncounted=frozenset(uncounted),
    )


def _filling_order(
    operands: Sequence[OperandTraffic], match: ContractMatch, contract: Sequence[ContractRow]
) -> list[int]:
    """Indices: collectives of the row's own kind fill it first, then those of other kinds.

    Otherwise a stray gather before the layer's own all-reduce would fill its row.  A gather that completes a scatter
    comes after it, wherever it is in a loop's body.  Of sums that are alike, those of no more elements than the row's
    come first, then those whose result is nearest to the end of the scope; all others in program order.
    """

    def fill_priority(index: int) -> tuple[int, bool, int]:
        traffic, row = operands[index], match.rows[index]
        if row is None:
            return 0, False, 0
        # A stray gather stands before the layer's own all-reduce in the text, and would else take its bytes.
        kind = 0 if traffic.collective.kind == contract[row].kind else 2 if index in match.completing else 1
        if traffic.collective.kind not in SUMS or contract[row].kind not in SUMS:
            return kind, False, 0
        # Two sums of [8,4096] in `layer.mlp.down`: one of the activation before the matmul, in f32, and the one of its
        # output, two steps before the scope ends, which is what the plan asks for.
        steps = traffic.operand.steps_to_end
        return kind, count_elements(traffic, contract[row]) > contract[row].elements, _FAR if steps is None else steps

    return sorted(range(len(operands)), key=fill_priority)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fill:
    """How one operand fills its row."""

    inherent: int
    inflated: Mapping[str, int]
    overflow: Mapping[str, Fraction]
    """Of what is inflated, that which was left when the row was full."""


def _split_inflated_inherent(
    traffic: OperandTraffic, row: ContractRow, *, counted: Mapping[str, Fraction], free: int, spare: Fraction
) -> _Fill:
    """Subtract the overhead of each cause, and credit the rest to the row.

    counted: cause -> fraction of this traffic, for causes that are counted over all operands of the row.
    free: bytes of the row that it may still fill.
    spare: bytes of idle ticks that were not counted in any operand of the row.
    """
    remaining, inflated_parts = traffic.exact_step_bytes, dict[str, Fraction]()
    for cause in INFLATED:
        part = counted.get(cause.name) or (cause.measure(traffic, row) if cause.measure else NOTHING)
        if taken := remaining * part:
            inflated_parts[cause.name] = taken
            remaining -= taken
    inherent, overflow = min(round_half_up(remaining), free, traffic.step_bytes), dict[str, Fraction]()
    if round_half_up(remaining) > free:
        overflow = overflow_causes(traffic, row, remaining - inherent, counted=counted, free=free, spare=spare)
    elif not inflated_parts:  # only rounding can be left over
        inherent = min(traffic.step_bytes, free)
        left = Fraction(traffic.step_bytes - inherent)
        overflow = overflow_causes(traffic, row, left, counted=counted, free=free, spare=spare)
    for name, amount in overflow.items():
        inflated_parts[name] = inflated_parts.get(name, NOTHING) + amount
    inflated = _round_parts(inflated_parts, total=traffic.step_bytes - inherent)
    return _Fill(inherent=inherent, inflated=inflated, overflow=overflow)


def _book(account: _Account, fill: _Fill, *, row: int) -> None:
    account.inherent += fill.inherent
    account.serves.append(row)
    for name, amount in fill.inflated.items():
        _add(account.inflated, name, amount)


def _round_parts(parts: Mapping[str, Fraction], *, total: int) -> dict[str, int]:
    """Round each part; the last takes the rounding error, so that they add up to `total`."""
    rounded, rest = {}, total
    for name, amount in list(parts.items())[:-1]:
        rounded[name] = min(round_half_up(amount), rest)
        rest -= rounded[name]
    return {**rounded, list(parts)[-1]: rest}


def _idle_parts(
    operands: Sequence[OperandTraffic], rows: Sequence[int | None], contract: Sequence[ContractRow]
) -> dict[int, Fraction]:
    """For each operand that satisfies a row, the fraction of its executions in idle ticks.

    Where the shift is in a loop of ticks, nothing outside that loop belongs to a tick; where it is in none, ticks are
    unrolled, and a loop of as many trips is another loop.
    """
    idle: dict[int, Fraction] = {}
    unrolled: dict[tuple[int, str], list[int]] = {}
    loops = _tick_loops(operands, rows, contract)
    for index, (traffic, row) in enumerate(zip(operands, rows, strict=True)):
        if row is None or traffic.collective.in_exact_branch or not contract[row].idle_ticks:
            continue
        # A loop of two trips inside of unrolled ticks is the windowed einsum of a layer, though the plan has two ticks.
        if in_tick_loop(traffic, contract[row]) and (loops is None or traffic.collective.loops[0].name in loops):
            idle[index] = Fraction(contract[row].idle_ticks, contract[row].ticks)
        elif not loops and (kind := _tick_group(traffic, contract[row])):
            unrolled.setdefault((row, kind), []).append(index)
    for (row, _), indices in unrolled.items():
        idle |= _idle_unrolled([(index, operands[index]) for index in indices], contract[row])
    return idle


def _tick_loops(
    operands: Sequence[OperandTraffic], rows: Sequence[int | None], contract: Sequence[ContractRow]
) -> frozenset[str] | None:
    """Names of the loops over ticks, from the collectives that shift; `None` without a shift: any loop may be one."""
    shifts = [
        (traffic, contract[row])
        for traffic, row in zip(operands, rows, strict=True)
        if row is not None and contract[row].scope == "pipeline.shift"
    ]
    if not shifts:
        return None
    return frozenset(traffic.collective.loops[0].name for traffic, row in shifts if in_tick_loop(traffic, row))


def _tick_group(traffic: OperandTraffic, row: ContractRow) -> str:
    """Grouping key for operands that occur exactly once per unrolled tick; empty: not counted.

    The two gathers of one sampling, ids and values, are not two ticks; nor are the scatter and the gather of one sum,
    nor the hops of its windowed einsum.
    """
    # With one microbatch a row that runs once can still come as two collectives, which are not two ticks: ids and
    # values of one sampling, the scatter and the gather of one sum, the hops of one einsum.
    once = row.executions == 1
    if once and traffic.collective.form == "windowed-einsum":
        return ""
    return ("integers" if is_integer(traffic.operand.dtype) else "floats") + (traffic.collective.kind if once else "")


def _last_hops(
    operands: Sequence[OperandTraffic],
    rows: Sequence[int | None],
    contract: Sequence[ContractRow],
    *,
    idle: Mapping[int, Fraction],
) -> dict[int, Fraction]:
    """For each operand of a ring in a loop, the fraction of its last hop, where the row does not need that hop.

    A loop of as many trips may also be over layers, around an unrolled ring: then too little is left without that hop.
    """
    last_hops: dict[int, Fraction] = {}
    for index, row in enumerate(contract):
        ring = [
            operand
            for operand, served in enumerate(rows)
            if served == index and row.hops and operands[operand].collective.kind == row.kind
        ]
        parts = {n: part for n in ring if (part := last_hop_fraction(operands[n], row))}
        left = sum(
            (
                operands[n].exact_step_bytes
                * (1 - parts.get(n, NOTHING))
                * (1 - idle.get(n, NOTHING))
                * (1 - widened_fraction(operands[n], row))
                for n in ring
            ),
            NOTHING,
        )
        # Six permutes in a loop over four layers, on four ranks, are an unrolled ring of three hops in each layer.
        # Without a fourth of them too little is left: that loop is not the ring.
        if round_half_up(left) >= row.step_wire_bytes:
            last_hops |= parts
    return last_hops


def _idle_unrolled(operands: Sequence[tuple[int, OperandTraffic]], row: ContractRow) -> dict[int, Fraction]:
    """Of k·(m+pp−1) executions the last k·(pp−1), in program order; none where they are no such multiple.

    None either where the sending devices differ: then each tick is sent only by the stages that are active in it.
    """
    total = sum(traffic.collective.executions or 0 for _, traffic in operands)
    # 80 sums of 16 layers in 5 ticks: the last 16 are in the tick that holds no microbatch.  Where not all send alike,
    # the stages without a microbatch send nothing.
    if not total or total % row.ticks or len({frozenset(senders(traffic)) for _, traffic in operands}) > 1:
        return {}
    rest, idle = total // row.ticks * row.idle_ticks, {}
    for index, traffic in reversed(operands):
        times = traffic.collective.executions or 0
        taken = min(times, rest)
        if taken:
            idle[index] = Fraction(taken, times)
        rest -= taken
    return idle


def _add(table: dict[str, int], name: str, amount: int) -> None:
    if amount:
        table[name] = table.get(name, 0) + amount


def _verdict(row: Collective, account: _Account | None) -> Verdict:
    if account is None:
        return Verdict(collective=row, inherent_bytes=None, inflated_bytes=None, induced_bytes=None, causes={})
    return Verdict(
        collective=row,
        inherent_bytes=account.inherent,
        inflated_bytes=sum(account.inflated.values()),
        induced_bytes=sum(account.induced.values()),
        causes={
            name: account.inflated.get(name, 0) + account.induced.get(name, 0)
            for name in dict.fromkeys([*account.inflated, *account.induced])
        },
        serves=tuple(dict.fromkeys(account.serves)),
    )
