"""Who meets whom: the members of each collective, and the two ends of each message, over all files of a trace."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from compare.chakra import schema
from compare.chakra.nodes import TraceFile, TraceNode
from compare.hlo.devices.groups import Groups
from compare.network.graph.graph import PERMUTE, Transfer
from compare.network.machines.kinds import KINDS
from compare.timeline.arrays import Ints
from compare.timeline.errors import TimingError
from meshes.process.one_line import quote

_OWN_NAME = re.compile(r"(.*)\.(\d{1,9})", re.DOTALL)


class Member(NamedTuple):
    """A communicating node of a rank."""

    rank: int
    position: int
    """In its table."""
    node: TraceNode


@dataclass(slots=True)
class Meeting:
    """One execution of a collective over one group, or one message."""

    kind: str
    ranks: tuple[int, ...]
    """Of the group, in its order; of a message the sender, then the receiver."""
    group: int
    """Its id; 0 of a message."""
    members: list[Member] = field(default_factory=list)


class Meetings:
    """Those of a trace.  `TimingError` where a member is missing, or says something else than the others."""

    def __init__(
        self, groups: Mapping[int, tuple[int, ...]], files: Sequence[TraceFile], sizes: tuple[int, ...] = ()
    ) -> None:
        """sizes: of the machine's dims, the fastest first."""
        self._files, self._sizes = files, sizes
        self._groups = {0: tuple(range(len(files))), **groups}
        self._members = {number: frozenset(ranks) for number, ranks in self._groups.items()}
        self._collectives: dict[int, tuple[str, int]] = {}
        self._by_key: dict[tuple[object, ...], Meeting] = {}
        for rank, file in enumerate(files):
            self._counts: Counter[tuple[object, ...]] = Counter()
            """Of the present rank."""
            for position, node in enumerate(file.nodes):
                if node.is_cpu_op:
                    continue
                if node.type == schema.COLLECTIVE:
                    self._add_collective(Member(rank, position, node))
                elif node.type in (schema.SEND, schema.RECEIVE):
                    self._add_message(Member(rank, position, node))
        for meeting in self._by_key.values():
            self._check(meeting)

    @property
    def found(self) -> list[Meeting]:
        """In the order of the first rank that takes part."""
        return list(self._by_key.values())

    def _add_collective(self, member: Member) -> None:
        # All ranks of a group share one node object (`NodeReader`), which is looked at once.
        word = id(member.node)
        if word not in self._collectives:
            self._collectives[word] = self._read_collective(member)
        kind, number = self._collectives[word]
        if member.rank not in self._members[number]:
            raise self._error(member, f"its rank is not in group {number}")
        if not number and not all(member.node.dims):
            ranks = self._list_part(member)
            self._meet(member, kind, ranks, 0, ("dims", member.node.dims, ranks[0]))
            return
        self._meet(member, kind, self._groups[number], number, ("group", number))

    def _list_part(self, member: Member) -> tuple[int, ...]:
        """The ranks that differ from a member in the dims of its `involved_dim` alone."""
        dims = member.node.dims
        if not self._sizes:
            raise self._error(member, "involved_dim over a part of the dims, which no machine says; name a group")
        if len(dims) < len(self._sizes) or not any(dims[: len(self._sizes)]):
            raise self._error(
                member,
                f"involved_dim says {len(dims)} dims, {sum(dims)} of them true, and the machine has "
                f"{len(self._sizes)}: it ends nowhere in ASTRA-sim",
            )
        ranks, stride = [member.rank], 1
        for size, is_in in zip(self._sizes, dims, strict=False):
            if is_in:
                ranks = [rank + stride * (place - rank // stride % size) for place in range(size) for rank in ranks]
            stride *= size
        return tuple(sorted(ranks))

    def _add_message(self, member: Member) -> None:
        node, rank = member.node, member.rank
        own, other = ("comm_src", "comm_dst") if node.type == schema.SEND else ("comm_dst", "comm_src")
        if node.numbers.get(own, rank) != rank:
            raise self._error(member, f"{own} is rank {node.numbers[own]}")
        if not 0 <= node.numbers[other] < len(self._files) or node.numbers[other] == rank:
            raise self._error(member, f"{other} is {node.numbers[other]}, which is no other rank of {len(self._files)}")
        if not node.numbers["comm_size"]:
            raise self._error(member, "a message has 1 byte or more")
        ranks = (rank, node.numbers[other]) if node.type == schema.SEND else (node.numbers[other], rank)
        self._meet(member, PERMUTE, ranks, 0, ("pair", *ranks, node.numbers["comm_tag"], node.type))

    def _meet(self, member: Member, kind: str, ranks: tuple[int, ...], number: int, key: tuple[object, ...]) -> None:
        self._counts[key] += 1
        place = (*(key[:-1] if kind == PERMUTE else key), self._counts[key])
        meeting = self._by_key.get(place)
        if meeting is None:
            meeting = self._by_key[place] = Meeting(kind, ranks, number)
        elif meeting.kind != kind:
            first = meeting.members[0]
            raise self._error(
                member,
                f"it is of {kind}, and {first.node.words} of rank {first.rank} in its place of {meeting.kind}",
            )
        meeting.members.append(member)

    def _read_collective(self, member: Member) -> tuple[str, int]:
        """(kind, group's id)."""
        node = member.node
        kind = schema.COMM_TYPES.get(node.numbers["comm_type"], "")
        if kind not in (*KINDS, schema.BROADCAST):
            raise self._error(member, f"comm_type {node.numbers['comm_type']} ({kind or 'unknown'}) is not simulated")
        if node.group in ("", "0"):
            return kind, 0
        number = int(node.group) if node.group.isdecimal() else 0
        if not number or number not in self._groups:
            raise self._error(member, f"pg_name {quote(node.group)} is no group of groups.json")
        if member.rank in self._members[number] and len(self._groups[number]) < 2:
            raise self._error(member, f"group {node.group} has one rank, which has nobody to talk to")
        return kind, number

    def _check(self, meeting: Meeting) -> None:
        first = meeting.members[0]
        present = {member.rank for member in meeting.members}
        for rank in meeting.ranks:
            if rank not in present:
                what = "nothing that meets it" if meeting.kind == PERMUTE else f"no {meeting.kind} in its place"
                raise self._error(first, f"rank {rank} has {what}")
        for member in meeting.members:
            if member.node is first.node:
                continue
            sizes = member.node.numbers["comm_size"], first.node.numbers["comm_size"]
            if sizes[0] != sizes[1]:
                raise self._error(
                    member,
                    f"{sizes[0]:,} bytes, and {first.node.words} of rank {first.rank}, which it meets, {sizes[1]:,}",
                )

    def _error(self, member: Member, problem: str) -> TimingError:
        return TimingError(f"{self._files[member.rank].path}, rank {member.rank}, {member.node.words}: {problem}")


Slots = dict[tuple[int, int], int]
"""The transfer of each communicating node, by table and position."""


def join_transfers(
    meetings: Sequence[Meeting], table_of: Ints, *, own_names: bool
) -> tuple[tuple[Transfer, ...], Slots] | None:
    """The transfers over all ranks: meetings at the same nodes of the same tables are one.

    own_names: whether a node's name ends in the number of its execution, as in our own traces.  `None` where a rank
    would be twice in one transfer, so that ranks cannot share their tables.
    """
    tables: list[int] = table_of.tolist()
    root: Slots = {}
    parent: list[int] = []

    def find(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for meeting in meetings:
        numbers = []
        for slot in dict.fromkeys((tables[member.rank], member.position) for member in meeting.members):
            if slot not in root:
                root[slot] = len(parent)
                parent.append(root[slot])
            numbers.append(find(root[slot]))
        for number in numbers:
            parent[find(number)] = find(numbers[0])
    parts: dict[tuple[str, int], list[Meeting]] = {}
    for meeting in meetings:
        member = meeting.members[0]
        match = _OWN_NAME.fullmatch(member.node.name) if own_names else None
        key = (match[1], int(match[2])) if match else ("", find(root[tables[member.rank], member.position]))
        parts.setdefault(key, []).append(meeting)
    transfers: list[Transfer] = []
    slots: Slots = {}
    groups_of: dict[Groups, Groups] = {}
    in_order = sorted(parts.items(), key=lambda part: part[0][1]) if own_names else parts.items()
    for (name, number), part in in_order:
        members = [member for meeting in part for member in meeting.members]
        if len({(member.rank, member.node.type) for member in members}) < len(members):
            return None
        first = members[0].node
        if len({(each.kind, each.members[0].node.numbers["comm_size"]) for each in part}) > 1:
            return None
        groups = tuple(meeting.ranks for meeting in sorted(part, key=lambda each: (each.group, each.ranks)))
        slots |= dict.fromkeys(((tables[member.rank], member.position) for member in members), len(transfers))
        transfers.append(
            Transfer(
                key=number if name else len(transfers),
                kind=part[0].kind,
                num_bytes=first.numbers["comm_size"],
                groups=groups_of.setdefault(groups, groups),
                collective=name,
                priority=first.numbers.get("comm_priority", 0),
            )
        )
    return tuple(transfers), slots
