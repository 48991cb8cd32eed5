"""The collectives in one text of a program on its way through the compiler, and what tells them apart."""

from collections.abc import Callable
from dataclasses import dataclass

from compare.hlo.counts.execution_counts import collective_instructions
from compare.hlo.devices.numbering import ids_in
from compare.hlo.emission import megascale
from compare.hlo.emission.emission_form import chain_of, kind_of, starts_chain
from compare.hlo.emission.payload import carried_arrays, payload_bytes
from compare.hlo.text.attributes import read_map
from compare.hlo.text.instruction import Computation, Instruction
from compare.hlo.text.module import Module, read

Groups = frozenset[tuple[int, ...]]

_TOKEN = "MegascaleRendezvousKeyName"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCollective:
    """A collective as it stands in one text."""

    name: str
    opcode: str
    """Without the `-start` of an asynchronous one."""
    kind: str
    """As a row has it: an all-reduce of which each device keeps a part is a reduce-scatter."""
    is_async: bool
    groups: Groups
    """Its groups, of a permute its pairs; of a transfer between slices none."""
    payload_bytes: int
    op_name: str
    channel: str
    rendezvous: str
    """Of a transfer between slices, what it has in common with its other end."""
    operands: tuple[str, ...]
    loops: int
    """How many loops it stands in."""
    num_devices: int
    """Of the whole program: of several slices, it becomes that of one on the way."""
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
        payload_bytes=sum(payload_bytes(item, array) for array in carried_arrays(item, kind, receive)),
        op_name=item.op_name,
        channel=item.attributes.get("channel_id", ""),
        rendezvous=_rendezvous(item) if is_send else "",
        operands=tuple(operand.name for operand in item.operands),
        loops=depth(item.computation),
        num_devices=module.num_devices or 0,
        line=item.text.strip(),
    )


def _rendezvous(item: Instruction) -> str:
    """What a send has in common with its receive; before that is told of them, what the token between them is told."""
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
    """Whether it is a later part of an asynchronous fusion, whose first part is the collective."""
    if chain_of(item) is None or starts_chain(item):
        return False
    return any(caller.opcode == "fusion" for caller in item.computation.callers)


def _is_async(item: Instruction) -> bool:
    """Whether it is begun in one place and ended in another."""
    if item.opcode.endswith("-start") or item.opcode == "send" or chain_of(item) is not None:
        return True
    return any(caller.opcode.endswith("-start") for caller in item.computation.callers)


def _depths() -> Callable[[Computation], int]:
    """A count of the loops around a computation, by the way that is in most of them; each is counted once."""
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
    """The name that a transfer's collective had before it was one: its rendezvous, without a number behind it."""
    head, _, number = rendezvous.rpartition("_")
    return head if head and number.isdigit() else rendezvous
