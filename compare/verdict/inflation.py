"""How much of an operand's traffic exceeds the row that it satisfies: one measure for each inflated cause.

Each takes the traffic and its row, and returns a fraction from 0 to 1 of the bytes that earlier causes have left.
"""

from fractions import Fraction
from math import prod

from compare.contract.row import FLOATS, ContractRow
from compare.hlo.text.shapes import BITS
from compare.verdict.operand_traffic import SUMS, OperandTraffic, is_integer, senders

NOTHING, ALL = Fraction(0), Fraction(1)


def wrap_fraction(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """The pairs last stage → first of a shift: a roll closes the ring, a pipeline does not need that."""
    if row.scope != "pipeline.shift" or traffic.collective.kind != "collective-permute":
        return NOTHING
    sent = _by_pair(traffic)
    total = sum(sent.values(), NOTHING)
    return (
        sum((amount for pair, amount in sent.items() if _wraps(traffic, row, *pair)), NOTHING) / total
        if total
        else NOTHING
    )


def replicated_fraction(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Bytes sent by devices that the row does not name, or by another kind beyond what the row's own kind sends."""
    if row.kind == "collective-permute" and traffic.collective.kind in ("all-reduce", "all-gather"):
        return _beyond_permute(traffic, row)
    return 1 - _fraction_of_row_devices(traffic, row) * _fraction_of_substitute(traffic, row)


def _fraction_of_row_devices(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """The fraction that is sent by the devices of the row."""
    sent = _by_device(traffic, row) if row.devices is not None else {}
    total = sum(sent.values(), NOTHING)
    if row.devices is None or not total:
        return ALL
    return sum((amount for device, amount in sent.items() if device in row.devices), NOTHING) / total


def _fraction_of_substitute(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """The fraction that satisfies the row, where the collective is of another kind.

    All-reduce for a scatter, gather or broadcast: a half.  All-gather for a broadcast: one member's part; for a
    scatter: nothing.  All-gather of all partial sums, added up where they come: what the sum sends.
    """
    kind = traffic.collective.kind
    if traffic.operand.added_up and kind == "all-gather" and row.kind in ("all-reduce", "reduce-scatter"):
        sent = 2 if row.kind == "all-reduce" else 1
        return min(ALL, Fraction(sent, prod(traffic.sizes.get(axis, 1) for axis in row.axes.split(","))))
    if kind == "all-reduce" and row.kind in ("reduce-scatter", "all-gather", "collective-broadcast"):
        return ALL / 2
    if kind == "all-gather" and row.kind == "reduce-scatter":
        return NOTHING
    if kind == "all-gather" and row.kind == "collective-broadcast":
        return ALL / prod(traffic.sizes[axis] for axis in row.axes.split(","))
    return ALL


def widened_fraction(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Bytes of elements that are wider than the row's, such as float32 in a bfloat16 model."""
    operand_bytes = Fraction(BITS[traffic.operand.dtype], 8)
    # `sample` moves ids of s32, which are as wide as the plan's ids.  In a row of floats s32 holds quantized numbers,
    # and counts as wider than the two bytes of the plan's floats.
    is_id = row.carries != FLOATS and is_integer(traffic.operand.dtype)  # else it is a number that was quantized
    row_bytes = row.integer_bytes if is_id else row.float_bytes
    return max(NOTHING, 1 - Fraction(row_bytes) / operand_bytes)


def padding_fraction(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Elements added where a dim was rounded up to a multiple of its shards."""
    unpadded = ALL
    for size, shards in row.dims:
        padded = -(-size // shards) * shards
        # A dim of 10 over 4 shards is padded to 12, and appears as 12, or as 3 in a shard.
        if padded != size and {padded, padded // shards} & set(traffic.operand.shape):
            unpadded *= Fraction(size, padded)
    return 1 - unpadded


def uncombined_fraction(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Of a sum of experts' outputs that has a dim of k experts beside the row's elements: all but one of the k.

    Not where k parts are as many executions of the row, such as microbatches that are summed together, nor where they
    are parts of a wider token: k is then the number of tokens by chance.
    """
    if row.scope != "layer.moe.combine" or row.kind not in SUMS or traffic.collective.kind not in SUMS:
        return NOTHING
    if row.token_width and row.token_width not in traffic.operand.shape:
        return NOTHING
    # Sixteen times the row's elements, [16,8,4], are 16 experts summed one by one where the row runs twice, and 16
    # microbatches summed at once where it runs 16 times.
    experts = Fraction(prod(traffic.operand.shape) * row.float_bytes, row.payload_bytes)
    one_each = (traffic.collective.executions or 0) * experts <= row.executions
    return NOTHING if one_each or experts not in traffic.operand.shape or experts == 1 else 1 - 1 / experts


def accumulator_fraction(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Permutes of a windowed einsum that send the initial accumulator, a constant."""
    return ALL if traffic.collective.form == "windowed-einsum" and traffic.operand.constant else NOTHING


def last_hop_fraction(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """The last hop of a ring: it returns each rank its own part.

    Unrolled, it is a permute of what has come through all others; else one trip of a loop of as many as ranks.
    """
    loops, ranks = traffic.collective.loops, row.hops + 1
    if closes_ring(traffic, row):
        return ALL
    # A ring of four in a loop of four trips brings everybody its own part in the last one; nothing in the loop's body
    # tells that trip from the others.
    is_ring_loop = bool(row.hops and loops) and traffic.collective.form != "windowed-einsum"
    return Fraction(1, ranks) if is_ring_loop and loops[-1].trip_count == ranks else NOTHING


def closes_ring(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it moves what has already been to every other rank; a windowed einsum has a cause of its own."""
    earlier = traffic.operand.earlier_hops
    is_plain = traffic.collective.form != "windowed-einsum"
    return is_plain and row.hops > 0 and earlier is not None and earlier >= row.hops


def in_tick_loop(traffic: OperandTraffic, row: ContractRow) -> bool:
    """Whether it is in the loop over the pipeline's ticks: the outermost one, of m + pp − 1 trips."""
    loops = traffic.collective.loops
    return row.idle_ticks > 0 and bool(loops) and loops[0].trip_count == row.ticks


def _by_pair(traffic: OperandTraffic) -> dict[tuple[int, int], Fraction]:
    """(source, target) -> bytes in one step; pairs of a device with itself move nothing."""
    sent = senders(traffic)
    groups = traffic.collective.mesh_groups or traffic.collective.groups
    pairs = [(source, target) for source, target in groups if source != target]
    return {pair: sent.get(pair[0], NOTHING) for pair in pairs}


def _wraps(traffic: OperandTraffic, row: ContractRow, source: int, target: int) -> bool:
    last = traffic.sizes[row.axes] - 1
    return traffic.coordinate(source, row.axes) == last and traffic.coordinate(target, row.axes) == 0


def _by_device(traffic: OperandTraffic, row: ContractRow) -> dict[int, Fraction]:
    """Device -> bytes in one step, without those that `wrap_fraction` counts."""
    if row.scope != "pipeline.shift" or traffic.collective.kind != "collective-permute":
        return senders(traffic)
    sent: dict[int, Fraction] = {}
    for (source, target), amount in _by_pair(traffic).items():
        if not _wraps(traffic, row, source, target):
            sent[source] = sent.get(source, NOTHING) + amount
    return sent


def _beyond_permute(traffic: OperandTraffic, row: ContractRow) -> Fraction:
    """Its wire bytes beyond those of the row's permute of the same array; a gather sends as much as a ring.

    The array is the operand: of an all-gather one member's part of the payload.
    """
    if row.hops:
        return ALL / 2 if traffic.collective.kind == "all-reduce" else NOTHING
    wire_bytes = sum(traffic.collective.device_bytes, NOTHING) / max(len(traffic.collective.device_bytes), 1)
    members = max(map(len, traffic.collective.groups), default=1) if traffic.collective.kind == "all-gather" else 1
    permute = Fraction(traffic.collective.payload_bytes, members) * Fraction(row.wire_bytes, row.payload_bytes)
    return max(NOTHING, 1 - permute / wire_bytes) if wire_bytes else NOTHING
