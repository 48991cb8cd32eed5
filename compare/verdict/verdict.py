"""The verdict on every collective: peel its causes off, then fill the contract.

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
from compare.verdict.inflation import NOTHING, in_tick_loop, last_hop_bytes, widened_bytes
from compare.verdict.operand_traffic import OperandTraffic, is_integer, senders, split_by_operand


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One collective and what its bytes were for; `None` where its executions are unknown."""

    collective: Collective
    inherent_bytes: int | None
    inflated_bytes: int | None
    induced_bytes: int | None
    causes: Mapping[str, int]
    """cause -> bytes, summing to inflated + induced."""
    serves: tuple[int, ...] = ()
    """Numbers of the contract rows that it serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdicts in program order, and for each contract row the bytes that served it."""

    verdicts: tuple[Verdict, ...]
    served_bytes: tuple[int, ...]
    uncounted: frozenset[int] = frozenset()
    """Numbers of the rows that a collective of unknown executions serves: what they lack is unknown, too."""


@dataclass(slots=True)
class _Account:
    """What one collective's bytes were for, while its shares are judged."""

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
    """Hold a program's collectives, in program order, against a contract.

    `axes` are the mesh's, outermost first, name -> size; `roles` says which parameters of the program are
    `weight`, `cache` or `input` (by number; one not named counts as a weight unless it holds integers).
    """
    parts = [traffic for row in collectives for traffic in split_by_operand(row, sizes=axes, roles=roles or {})]
    served = match_contract(parts, contract)
    rows = served.rows
    counted = [traffic.collective.executions is not None for traffic in parts]
    uncounted = {row for row, known in zip(rows, counted, strict=True) if row is not None and not known}
    counted_over = {"bubble": _idle_parts(parts, rows, contract)}
    counted_over["wrap"] = _last_hops(parts, rows, contract, idle=counted_over["bubble"])
    left = [row.step_wire_bytes for row in contract]
    accounts = {id(row): _Account() for row in collectives if row.executions is not None}
    halves = dict.fromkeys(range(len(contract)), 0)
    for number in _filling_order(parts, served, contract):
        traffic, row = parts[number], rows[number]
        account = accounts.get(id(traffic.collective))
        if account is None:
            continue
        if row is None:
            _add(account.induced, induced_cause(traffic), traffic.whole)
        else:
            own = {cause: found[number] for cause, found in counted_over.items() if number in found}
            free = min(left[row], halves[row]) if number in served.completing else left[row]
            inherent = _peel_and_fill(traffic, contract[row], counted=own, free=free, row=row, account=account)
            left[row] -= inherent
            # A gather completes what was scattered, once.
            halves[row] += -inherent if number in served.completing else inherent * is_scatter(traffic)
    return Judgement(
        verdicts=tuple(_verdict(row, accounts.get(id(row))) for row in collectives),
        served_bytes=tuple(row.step_wire_bytes - rest for row, rest in zip(contract, left, strict=True)),
        uncounted=frozenset(uncounted),
    )


def _filling_order(
    parts: Sequence[OperandTraffic], served: ContractMatch, contract: Sequence[ContractRow]
) -> list[int]:
    """Collectives of the row's own kind fill it first, then those that stand in for them; each in program order.

    Else a stray gather that comes before the layer's own all-reduce would take its place.  A gather that completes a
    scatter comes after it, wherever in a loop's body it stands.
    """

    def stands_in(number: int) -> int:
        row = served.rows[number]
        if row is None or parts[number].collective.kind == contract[row].kind:
            return 0
        return 2 if number in served.completing else 1

    return sorted(range(len(parts)), key=stands_in)


def _peel_and_fill(
    traffic: OperandTraffic,
    asked: ContractRow,
    *,
    counted: Mapping[str, Fraction],
    free: int,
    row: int,
    account: _Account,
) -> int:
    """Take the causes off, fill the row with what is left, and name what overflows; the bytes that fill the row.

    counted: cause -> the part of the share that it has by a count over all shares of the row.
    free: the bytes of the row that are still to be filled by it.
    """
    remaining, peeled = traffic.step, dict[str, Fraction]()
    for cause in INFLATED:
        part = counted.get(cause.name) or (cause.measure(traffic, asked) if cause.measure else NOTHING)
        if taken := remaining * part:
            peeled[cause.name] = taken
            remaining -= taken
    inherent = min(round_half_up(remaining), free, traffic.whole)
    if round_half_up(remaining) > free:
        cause_name = _overflow(traffic, asked)
        peeled[cause_name] = peeled.get(cause_name, NOTHING) + remaining - inherent
    if not peeled:  # only rounding can be left over
        inherent = min(traffic.whole, free)
        peeled = {_overflow(traffic, asked): Fraction(traffic.whole - inherent)}
    account.inherent += inherent
    account.serves.append(row)
    for name, amount in _whole(peeled, total=traffic.whole - inherent).items():
        _add(account.inflated, name, amount)
    return inherent


def _overflow(traffic: OperandTraffic, row: ContractRow) -> str:
    """The cause of what serves a row that is full."""
    if row.scope == "pipeline.shift":
        return "bubble"  # unrolled ticks may lose their first or last shift
    if traffic.collective.form == "windowed-einsum":
        return "windowed-einsum"  # hops beyond those that the row needs
    if row.hops and traffic.collective.kind == row.kind:
        return "wrap"  # unrolled, a ring's last hop is one permute of several
    return "replicated" if traffic.collective.kind != row.kind else "other"


def _whole(parts: Mapping[str, Fraction], *, total: int) -> dict[str, int]:
    """Round each part; the last takes the rounding."""
    whole, rest = {}, total
    for name, amount in list(parts.items())[:-1]:
        whole[name] = min(round_half_up(amount), rest)
        rest -= whole[name]
    return {**whole, list(parts)[-1]: rest}


def _idle_parts(
    parts: Sequence[OperandTraffic], rows: Sequence[int | None], contract: Sequence[ContractRow]
) -> dict[int, Fraction]:
    """For each share that serves a row, the part of its executions that falls in idle ticks.

    Where the shift is in a loop of ticks, whatever is outside of that loop is no tick's; where it is in none, ticks are
    unrolled, and a loop of as many trips is of something else.
    """
    idle: dict[int, Fraction] = {}
    unrolled: dict[tuple[int, str], list[int]] = {}
    loops = _tick_loops(parts, rows, contract)
    for number, (traffic, row) in enumerate(zip(parts, rows, strict=True)):
        if row is None or traffic.collective.in_exact_branch or not contract[row].idle_ticks:
            continue
        if in_tick_loop(traffic, contract[row]) and (loops is None or traffic.collective.loops[0].name in loops):
            idle[number] = Fraction(contract[row].idle_ticks, contract[row].ticks)
        elif not loops and (kind := _counted_as(traffic, contract[row])):
            unrolled.setdefault((row, kind), []).append(number)
    for (row, _), numbers in unrolled.items():
        idle |= _idle_unrolled([(number, parts[number]) for number in numbers], contract[row])
    return idle


def _tick_loops(
    parts: Sequence[OperandTraffic], rows: Sequence[int | None], contract: Sequence[ContractRow]
) -> frozenset[str] | None:
    """The loops over ticks, by the collectives that shift; `None` where nothing shifts, and any loop may be one."""
    shifts = [(traffic, contract[row]) for traffic, row in zip(parts, rows, strict=True)
              if row is not None and contract[row].scope == "pipeline.shift"]  # fmt: skip
    if not shifts:
        return None
    return frozenset(traffic.collective.loops[0].name for traffic, row in shifts if in_tick_loop(traffic, row))


def _counted_as(traffic: OperandTraffic, row: ContractRow) -> str:
    """What is counted together when unrolled ticks are told by number: what comes once in each of them.

    The two gathers of one sampling, ids and values, are no two ticks of it; nor are the scatter and the gather that one
    sum of a step comes as, nor the hops of its windowed einsum, which are not counted at all.
    """
    once = row.executions == 1
    if once and traffic.collective.form == "windowed-einsum":
        return ""
    return ("integers" if is_integer(traffic.operand.dtype) else "floats") + (traffic.collective.kind if once else "")


def _last_hops(
    parts: Sequence[OperandTraffic],
    rows: Sequence[int | None],
    contract: Sequence[ContractRow],
    *,
    idle: Mapping[int, Fraction],
) -> dict[int, Fraction]:
    """For each share of a ring in a loop, the part that its last hop is, where the row has no use for that hop.

    A loop of as many trips may also be one of layers, around a ring of no loop: then all hops are needed, and the row
    takes them.
    """
    found: dict[int, Fraction] = {}
    for row, asked in enumerate(contract):
        own = [number for number, served in enumerate(rows)
               if served == row and asked.hops and parts[number].collective.kind == asked.kind]  # fmt: skip
        sent = sum(
            (parts[n].step * (1 - idle.get(n, NOTHING)) * (1 - widened_bytes(parts[n], asked)) for n in own), NOTHING
        )
        if round_half_up(sent) > asked.step_wire_bytes:
            found |= {n: part for n in own if (part := last_hop_bytes(parts[n], asked))}
    return found


def _idle_unrolled(parts: Sequence[tuple[int, OperandTraffic]], row: ContractRow) -> dict[int, Fraction]:
    """Of k·(m+pp−1) executions the last k·(pp−1), in program order; none where they do not add up so.

    None either where not all are sent by the same devices: then each tick is sent by the stages that it concerns.
    """
    total = sum(traffic.collective.executions or 0 for _, traffic in parts)
    if not total or total % row.ticks or len({frozenset(senders(traffic)) for _, traffic in parts}) > 1:
        return {}
    rest, idle = total // row.ticks * row.idle_ticks, {}
    for number, traffic in reversed(parts):
        times = traffic.collective.executions or 0
        taken = min(times, rest)
        if taken:
            idle[number] = Fraction(taken, times)
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
        causes={name: account.inflated.get(name, 0) + account.induced.get(name, 0)
                for name in [*account.inflated, *(set(account.induced) - set(account.inflated))]},
        serves=tuple(dict.fromkeys(account.serves)),
    )  # fmt: skip
