"""How much of a share that serves a row is more than the row asks: one measure for each inflated cause.

Each takes a share and its row and returns the part (0 … 1) of what the causes before it have left.
"""

from fractions import Fraction
from math import prod

from compare.contract.row import ContractRow
from compare.hlo.text.shapes import BITS
from compare.verdict.operand_traffic import OperandTraffic, is_integer, senders

NOTHING, ALL = Fraction(0), Fraction(1)


def wrap_bytes(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """The pairs last stage → first of a shift: a roll closes the ring, a pipeline does not."""
    if row.scope != "pipeline.shift" or traffic.collective.kind != "collective-permute":
        return NOTHING
    sent = _by_pair(traffic)
    total = sum(sent.values(), NOTHING)
    return (
        sum((amount for pair, amount in sent.items() if _wraps(traffic, row, *pair)), NOTHING) / total
        if total
        else NOTHING
    )


def replicated_bytes(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """What devices send that the row does not name; or what a stand-in sends beyond what the row's own kind would."""
    if row.kind == "collective-permute" and traffic.collective.kind in ("all-reduce", "all-gather"):
        return _beyond_permute(traffic, row)
    return 1 - _bytes_of_row_devices(traffic, row) * _bytes_of_stand_in(traffic, row)


def _bytes_of_row_devices(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """The part that the row's own devices send."""
    sent = _by_device(traffic, row) if row.devices is not None else {}
    total = sum(sent.values(), NOTHING)
    if row.devices is None or not total:
        return ALL
    return sum((amount for device, amount in sent.items() if device in row.devices), NOTHING) / total


def _bytes_of_stand_in(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """The part that does the row's work.

    Of a sum for a scatter, gather or broadcast it is a half; of a gather for a broadcast, what one member gives; of one
    after a scatter, nothing.
    """
    kind = traffic.collective.kind
    if kind == "all-reduce" and row.kind in ("reduce-scatter", "all-gather", "collective-broadcast"):
        return ALL / 2
    if kind == "all-gather" and row.kind == "reduce-scatter":
        return NOTHING
    if kind == "all-gather" and row.kind == "collective-broadcast":
        return ALL / prod(traffic.sizes[axis] for axis in row.axes.split(","))
    return ALL


def widened_bytes(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Elements that are wider than the row's: float32 where the model is bfloat16, say."""
    own = Fraction(BITS[traffic.operand.dtype], 8)
    asked = row.integer_bytes if is_integer(traffic.operand.dtype) else row.float_bytes
    return max(NOTHING, 1 - Fraction(asked) / own)


def padding_bytes(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Elements beyond a dim's own size, where it was rounded up to a multiple of its shards."""
    kept = ALL
    for size, shards in row.dims:
        padded = -(-size // shards) * shards
        if padded != size and {padded, padded // shards} & set(traffic.operand.shape):
            kept *= Fraction(size, padded)
    return 1 - kept


def accumulator_bytes(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Permutes of a windowed einsum that send an initial accumulator, a constant."""
    return ALL if traffic.collective.form == "windowed-einsum" and traffic.operand.constant else NOTHING


def last_hop_bytes(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Of a ring that is a loop of as many hops as there are ranks, the last: it brings each rank its own part again."""
    loops, ranks = traffic.collective.loops, row.hops + 1
    around = bool(row.hops and loops) and traffic.collective.form != "windowed-einsum"
    return Fraction(1, ranks) if around and loops[-1].trip_count == ranks else NOTHING


def in_tick_loop(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it stands in the loop over the pipeline's ticks: the outermost one, of m + pp − 1 trips."""
    loops = traffic.collective.loops
    return row.idle_ticks > 0 and bool(loops) and loops[0].trip_count == row.ticks


def _by_pair(traffic: OperandTraffic) -> dict[tuple[int, int], Fraction]:
    """(source, target) -> bytes in one step; pairs that stay where they are move nothing."""
    sent = senders(traffic)
    groups = traffic.collective.mesh_groups or traffic.collective.groups
    pairs = [(source, target) for source, target in groups if source != target]
    return {pair: sent.get(pair[0], NOTHING) for pair in pairs}


def _wraps(traffic: OperandTraffic, row: ContractRow, source: int, target: int) -> bool:
    last = traffic.sizes[row.axes] - 1
    return traffic.coordinate(source, row.axes) == last and traffic.coordinate(target, row.axes) == 0


def _by_device(traffic: OperandTraffic, row: ContractRow) -> dict[int, Fraction]:
    """Device -> bytes in one step, without those that `wrap_bytes` has taken."""
    if row.scope != "pipeline.shift" or traffic.collective.kind != "collective-permute":
        return senders(traffic)
    sent: dict[int, Fraction] = {}
    for (source, target), amount in _by_pair(traffic).items():
        if not _wraps(traffic, row, source, target):
            sent[source] = sent.get(source, NOTHING) + amount
    return sent


def _beyond_permute(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Its wire beyond what the row's permute sends of the same payload; a gather sends just what a ring does."""
    if row.hops:
        return ALL / 2 if traffic.collective.kind == "all-reduce" else NOTHING
    own = sum(traffic.collective.device_bytes, NOTHING) / max(len(traffic.collective.device_bytes), 1)
    permute = traffic.collective.payload_bytes * Fraction(row.wire_bytes, row.payload_bytes)
    return max(NOTHING, 1 - permute / own) if own else NOTHING
