"""A graph as the files of a Chakra trace: one a rank, byte for byte by the contract in docs/network.md.

Ranks that share a table of nodes differ only in names of groups and in partners, so everything else of a node is
serialized once.  A message's fields may be serialized apart and joined in the order of their numbers: protobuf says so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from compare.chakra import schema
from compare.chakra.framing import frame
from compare.hlo.devices.groups import Groups
from compare.hlo.proto.messages import Message
from compare.network.graph.graph import COLLECTIVE, COMPUTE, PS, RECEIVE, SEND, Graph, NodeTable, Transfer
from compare.timeline.errors import TimingError

Value = str | int
Attributes = Sequence[tuple[str, Value]]
"""Names and values of attributes: strings, and whole numbers as uint64."""

MOST_GROUPS = 499
"""ASTRA-sim's tags of messages begin again after 500 groups."""
MOST_EXECUTIONS = 1_000_000
"""Of a group, times chunks: so many tags a group has."""
MOST_TAG = 500_000_000
_NODE_TYPE = {COMPUTE: schema.COMPUTE, COLLECTIVE: schema.COLLECTIVE, SEND: schema.SEND, RECEIVE: schema.RECEIVE}


def write_files(
    graph: Graph, *, metadata: Attributes, chunks: int = 1, facts: Mapping[str, Attributes] | None = None
) -> Iterator[bytes]:
    """The file of rank 0, of rank 1, …

    facts: attributes of the nodes of a collective, by its row.  `TimingError` where ASTRA-sim would mistake one group
    or message for another.
    """
    groups = number_groups(graph)
    _check_counts(graph, groups, chunks=chunks)
    head = schema.GlobalMetadata(version=schema.VERSION, attr=[_attribute(*each) for each in metadata])
    start = frame(head.SerializeToString())
    writers = [_TableWriter(graph, table, groups, facts or {}) for table in graph.tables]
    places = _list_places(graph, groups)
    for rank in range(graph.num_ranks):
        yield start + writers[int(graph.table_of[rank])].write(rank, places)


def number_groups(graph: Graph) -> dict[tuple[int, ...], int]:
    """The id of each list of ranks, from 1, by first appearance: in the order of executions, then in the collective."""
    ids: dict[tuple[int, ...], int] = {}
    for groups in _list_alike(graph).values():
        for group in groups:
            ids.setdefault(group, len(ids) + 1)
    return ids


def _list_alike(graph: Graph) -> dict[int, Groups]:
    """The groups of collectives, those that transfers share once, by their identity."""
    return {id(each.groups): each.groups for each in graph.transfers if not each.are_pairs}


def _check_counts(graph: Graph, groups: Mapping[tuple[int, ...], int], *, chunks: int) -> None:
    if len(groups) > MOST_GROUPS:
        raise TimingError(
            f"{graph.name} has {len(groups)} groups of ranks; ASTRA-sim tells at most {MOST_GROUPS} from each other"
        )
    executions = Counter(id(each.groups) for each in graph.transfers)
    counts: Counter[tuple[int, ...]] = Counter()
    for key, alike in _list_alike(graph).items():
        counts.update(dict.fromkeys(alike, executions[key]))
    most = max(counts.values(), default=0)
    if most * chunks > MOST_EXECUTIONS:
        raise TimingError(
            f"{graph.name} runs {most:,} collectives of {chunks} chunks in one group; ASTRA-sim tells at most "
            f"{MOST_EXECUTIONS:,} chunks of a group from each other"
        )
    if graph.transfers and graph.transfers[-1].key >= MOST_TAG:
        raise TimingError(f"{graph.name} communicates {graph.transfers[-1].key:,} times; tags end at {MOST_TAG:,}")


_Places = Mapping[tuple[int, int], Mapping[int, int]]
"""By op and the identity of a transfer's groups: of each rank the id of its group, or its partner."""


def _list_places(graph: Graph, ids: Mapping[tuple[int, ...], int]) -> _Places:
    places: dict[tuple[int, int], dict[int, int]] = {}
    for key, groups in _list_alike(graph).items():
        places[COLLECTIVE, key] = {rank: ids[group] for group in groups for rank in group}
    for key, pairs in {id(each.groups): each.groups for each in graph.transfers if each.are_pairs}.items():
        places[SEND, key] = {source: target for source, target in pairs}
        places[RECEIVE, key] = {target: source for source, target in pairs}
    return places


class _TableWriter:
    """The nodes of one table: for each the bytes before and after what depends on the rank."""

    def __init__(
        self, graph: Graph, table: NodeTable, groups: Mapping[tuple[int, ...], int], facts: Mapping[str, Attributes]
    ) -> None:
        self._parts: list[bytes | tuple[int, Transfer, bytes, bytes]] = []
        self._framed: dict[tuple[int, int], bytes] = {}
        still: list[bytes] = []
        ids = table.ids.tolist()
        for node in range(table.size):
            op = int(table.ops[node])
            deps = [ids[dep] for dep in table.deps_of(node).tolist()]
            before, after = _node_bytes(graph, table, node, deps, facts)
            if op == COMPUTE:
                still.append(frame(before + after))
                continue
            if still:
                self._parts.append(b"".join(still))
                still = []
            self._parts.append((op, graph.transfers[int(table.transfers[node])], before, after))
        self._parts.append(b"".join(still))

    def write(self, rank: int, places: _Places) -> bytes:
        written = []
        for index, part in enumerate(self._parts):
            if isinstance(part, bytes):
                written.append(part)
                continue
            op, transfer, before, after = part
            place = places[op, id(transfer.groups)][rank]
            key = index, place
            if key not in self._framed:
                self._framed[key] = frame(before + _place_bytes(op, place) + after)
            written.append(self._framed[key])
        return b"".join(written)


def _node_bytes(
    graph: Graph, table: NodeTable, node: int, deps: Sequence[int], facts: Mapping[str, Attributes]
) -> tuple[bytes, bytes]:
    """A node's message up to the group or partner, and behind it."""
    op = int(table.ops[node])
    begin = schema.Node(
        id=int(table.ids[node]),
        name=table.names[node],
        type=_NODE_TYPE[op],
        data_deps=deps,
        duration_micros=int(table.duration_ps[node]) // PS,
        attr=[schema.Attribute(name="is_cpu_op", bool_val=False)],
    ).SerializeToString()
    if op == COMPUTE:
        return begin, b""
    transfer = graph.transfers[int(table.transfers[node])]
    size = schema.Attribute(name="comm_size", int64_val=int(table.num_bytes[node]))
    tag = schema.Attribute(name="comm_tag", int32_val=transfer.key)
    if op == COLLECTIVE:
        before, after = [schema.Attribute(name="comm_type", int64_val=_comm_type(transfer)), size], []
    else:
        before, after = [size], [tag]
    own = [_attribute(*each) for each in facts.get(transfer.collective, ())]
    return begin + _serialize(before), _serialize([*after, *own])


def _comm_type(transfer: Transfer) -> int:
    if transfer.kind not in schema.COMM_TYPE_OF:
        raise TimingError(f"{transfer.collective}: Chakra has no {transfer.kind}")
    return schema.COMM_TYPE_OF[transfer.kind]


def _place_bytes(op: int, place: int) -> bytes:
    """The attribute that names the group or the partner."""
    if op == COLLECTIVE:
        return _serialize([schema.Attribute(name="pg_name", string_val=str(place))])
    return _serialize([schema.Attribute(name="comm_dst" if op == SEND else "comm_src", int32_val=place)])


def _serialize(attributes: Sequence[Message]) -> bytes:
    data: bytes = schema.Node(attr=attributes).SerializeToString()
    return data


def _attribute(name: str, value: Value) -> Message:
    if isinstance(value, str):
        return schema.Attribute(name=name, string_val=value)
    return schema.Attribute(name=name, uint64_val=value)
