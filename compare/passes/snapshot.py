"""The collectives in one text between two passes, and the properties that identify them."""

from collections.abc import Callable
from dataclasses import dataclass

from compare.hlo.counts.execution_counts import collective_instructions
from compare.hlo.devices.groups import ids_in
from compare.hlo.emission import megascale
from compare.hlo.emission.emission_form import chain_of, kind_of, starts_chain
from compare.hlo.emission.payload import carried_arrays, window_bytes
from compare.hlo.text.attributes import read_map
from compare.hlo.text.instruction import Computation, Instruction
from compare.hlo.text.module import Module, read

Groups = frozenset[tuple[int, ...]]

_TOKEN = "MegascaleRendezvousKeyName"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCollective:
    """One collective of one text."""

    name: str
    opcode: str
    """The opcode, without the `-start` of an asynchronous one."""
    kind: str
    """The kind, as in a row: an all-reduce of which each device keeps a shard is a reduce-scatter."""
    is_async: bool
    groups: Groups
    """Its groups, of a permute its pairs; of a transfer between slices none."""
    payload_bytes: int
    op_name: str
    channel: str
    rendezvous: str
    """The rendezvous name of a transfer between slices; empty for others."""
    operands: tuple[str, ...]
    loops: int
    """How many loops are around it."""
    num_devices: int
    """Devices of the program; compiling for several slices turns it into the program of one."""
    line: str


def read_snapshot(text: str) -> list[SnapshotCollective]:
    """Every collective of a text once, in text order.  `HloError` where the text can't be read."""
    module = read(text)
    items = collective_instructions(module)
    receives = megascale.pair_transfers(items)
    depth = _depths()
    rows = (item for item in items if item.opcode != "recv" and not _is_host(item) and not _carries_on(item))
    return [_seen(item, receives.get(item), module, depth) for item in rows]


def _seen(
    item: Instruction, receive: Instruction | None, module: Module, depth: Callable[[Computation], int]
) -> SnapshotCollective:
    is_send = item.opcode == "send"
    kind = megascale.kind_of(item) if is_send else kind_of(item)
    return SnapshotCollective(
        name=item.name,
        opcode=item.opcode.removesuffix("-start"),
        kind=kind,
        is_async=_is_async(item),
        groups=frozenset() if is_send else _groups(item, module),
        payload_bytes=sum(map(sum, window_bytes(item, carried_arrays(item, kind, receive)))),
        op_name=item.op_name,
        channel=item.attributes.get("channel_id", ""),
        rendezvous=_rendezvous(item) if is_send else "",
        operands=tuple(operand.name for operand in item.operands),
        loops=depth(item.computation),
        num_devices=module.num_devices or 0,
        line=item.text.strip(),
    )


def _rendezvous(item: Instruction) -> str:
    """The rendezvous name of a send and its receive; in early texts it is on the token between them."""
    tokens = (operand for operand in item.operands if operand.opcode == "after-all")
    names = (read_map(token.attributes.get("frontend_attributes", "{}")).get(_TOKEN, "") for token in tokens)
    return megascale.rendezvous(item) or next(names, "")


def _groups(item: Instruction, module: Module) -> Groups:
    if item.opcode.startswith("collective-permute"):
        return frozenset(ids_in(item, "source_target_pairs"))
    rows = ids_in(item, "replica_groups") if "replica_groups" in item.attributes else ()
    return frozenset(tuple(sorted(row)) for row in rows or (tuple(range(module.num_devices or 0)),))


def _is_host(item: Instruction) -> bool:
    return item.opcode == "send" and not megascale.is_wire(item)


def _carries_on(item: Instruction) -> bool:
    """True for a later part of an asynchronous fusion; the first part is the collective."""
    if chain_of(item) is None or starts_chain(item):
        return False
    return any(caller.opcode == "fusion" for caller in item.computation.callers)


def _is_async(item: Instruction) -> bool:
    """True for a collective with a separate start and done."""
    if item.opcode.endswith("-start") or item.opcode == "send" or chain_of(item) is not None:
        return True
    return any(caller.opcode.endswith("-start") for caller in item.computation.callers)


def _depths() -> Callable[[Computation], int]:
    """A function that counts the loops around a computation, along the deepest call path."""
    known: dict[str, int] = {}

    def depth(computation: Computation) -> int:
        if computation.name not in known:
            known[computation.name] = 0  # of one that leads back to itself, which no compiler writes
            known[computation.name] = max(
                (depth(call.computation) + (call.opcode == "while") for call in computation.callers), default=0
            )
        return known[computation.name]

    return depth


def original_name(rendezvous: str) -> str:
    """The name of a transfer's original collective: its rendezvous without the numeric suffix."""
    head, _, number = rendezvous.rpartition("_")
    return head if head and number.isdigit() else rendezvous
