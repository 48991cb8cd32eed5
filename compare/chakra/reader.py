"""A folder of Chakra files as a graph: ranks that run alike share a table, and partners meet in transfers.

Collectives of a group meet by their order on each rank, sends and receives by pair, tag and order, as in ASTRA-sim.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from compare.chakra import schema
from compare.chakra.meetings import Meetings, join_transfers
from compare.chakra.nodes import NodeReader, TraceFile, TraceNode
from compare.network.graph.graph import (
    BESIDE,
    COLLECTIVE,
    COMPUTE,
    HOST,
    PERMUTE,
    PS,
    RECEIVE,
    REMOTE,
    SEND,
    Graph,
    NodeTable,
    NodeTableBuilder,
)
from compare.timeline.arrays import Ints
from compare.timeline.errors import TimingError
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

GROUPS = "groups.json"
UNITS, TICK_IS_PS = "wirediff.units", "tick=ps"
_FILE = re.compile(r"(.*)\.(\d{1,6})\.et", re.DOTALL)
_OPS = {schema.COLLECTIVE: COLLECTIVE, schema.SEND: SEND, schema.RECEIVE: RECEIVE}
_MEMORY = (schema.MEM_LOAD, schema.MEM_STORE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A folder that was read."""

    graph: Graph
    tick_ps: int
    """The tick of its durations and of the machine beside it: 1 in our own, 1000 elsewhere."""
    metadata: Mapping[str, str]
    """Of rank 0."""
    unnamed: frozenset[int]
    """Transfers over all ranks that no group is named of."""
    notes: tuple[str, ...]
    """What our own engine does not simulate as it stands, each with the first rank and node."""
    faults: tuple[str, ...]
    """The same of ASTRA-sim: where it ends without a number."""


@dataclass(frozen=True, slots=True)
class TraceFolder:
    """The files of a folder."""

    name: str
    files: list[TraceFile]
    groups: Mapping[int, tuple[int, ...]]


def read_folder(folder: Path) -> TraceFolder:
    """`OSError` where something is not there; `TimingError`, one line with the file, where it is damaged."""
    name, paths = find_files(folder)
    groups = read_groups(folder / GROUPS, num_ranks=len(paths))
    reader = NodeReader()
    return TraceFolder(name, [reader.read(path) for path in paths], groups)


def build_trace(folder: TraceFolder, *, sizes: tuple[int, ...] = (), replays: bool = False) -> Trace:
    """sizes: of the machine's dims, by which collectives over some of them find their members.  replays: whether all
    nodes last as their file says, and nobody meets.

    `TimingError`, one line with file, rank and node, where members of a collective or ends of a message do not meet.
    """
    files = folder.files
    own = files[0].metadata.get(UNITS) == TICK_IS_PS
    tick_ps = 1 if own else PS
    meetings = Meetings(folder.groups, [] if replays else files, sizes)
    tables, table_of = _share_tables(files)
    joined = join_transfers(meetings.found, table_of, own_names=own)
    if joined is None:  # ranks that look alike meet at different points: each has a table of its own
        table_of = np.arange(len(files))
        tables = list(range(len(files)))
        joined = join_transfers(meetings.found, table_of, own_names=False)
        assert joined is not None
    transfers, slots = joined
    built = tuple(
        _replay_table(files[rank].nodes, tick_ps=tick_ps)
        if replays
        else _build_table(files[rank].nodes, index, slots, tick_ps=tick_ps)
        for index, rank in enumerate(tables)
    )
    graph = Graph(name=folder.name, num_ranks=len(files), tables=built, table_of=table_of, transfers=transfers)
    unnamed = frozenset(
        slots[int(table_of[meeting.members[0].rank]), meeting.members[0].position]
        for meeting in meetings.found
        if meeting.kind != PERMUTE and not meeting.group
    )
    return Trace(
        graph=graph,
        tick_ps=tick_ps,
        metadata=files[0].metadata,
        unnamed=unnamed,
        notes=_first_of_each(files, _missing_of) + (() if replays else _first_of_each(files, _note_of)),
        faults=_first_of_each(files, _missing_of) + _first_of_each(files, _fault_of),
    )


def find_files(folder: Path) -> tuple[str, list[Path]]:
    """The prefix of a folder's traces, and the files of ranks 0, 1, …"""
    by_prefix: dict[str, dict[int, Path]] = {}
    for path in sorted(folder.iterdir()):
        if match := _FILE.fullmatch(path.name):
            ranks = by_prefix.setdefault(match[1], {})
            rank = int(match[2])
            if rank in ranks:
                raise TimingError(f"{folder} has rank {rank} twice: {ranks[rank].name} and {path.name}")
            ranks[rank] = path
    if len(by_prefix) != 1:
        several = f"those of several: {', '.join(map(quote, list(by_prefix)[:3]))}" if by_prefix else "none"
        raise TimingError(f"{folder} has not the files of one trace, like name.0.et, but {several}")
    ((prefix, ranks),) = by_prefix.items()
    for rank in range(len(ranks)):
        if rank not in ranks:
            raise TimingError(f"{folder} has no {prefix}.{rank}.et, but {len(ranks)} ranks up to {max(ranks)}")
    return prefix, [ranks[rank] for rank in range(len(ranks))]


def read_groups(path: Path, *, num_ranks: int) -> dict[int, tuple[int, ...]]:
    """The ranks of each group; none where there is no such file."""
    try:
        table = read_json(path)
    except FileNotFoundError:
        return {}
    except MeshError as error:
        raise TimingError(f"{path} is {error}") from None
    if not isinstance(table, dict):
        raise TimingError(f'{path}: a table of groups was expected, like {{"1": [0, 1]}}')
    groups = {}
    for key, ranks in table.items():
        if not re.fullmatch(r"[1-9]\d{0,8}", key, re.ASCII):
            raise TimingError(f"{path}: {quote(key)} is no id of a group, which is a number from 1")
        if not isinstance(ranks, list) or not all(type(rank) is int and 0 <= rank < num_ranks for rank in ranks):
            raise TimingError(f"{path}: group {key} is no list of ranks from 0 to {num_ranks - 1}, but {quote(ranks)}")
        if len(set(ranks)) < len(ranks):
            raise TimingError(f"{path}: group {key} names a rank twice")
        groups[int(key)] = tuple(ranks)
    return groups


def _share_tables(files: Sequence[TraceFile]) -> tuple[list[int], Ints]:
    """(the first rank of each table, the table of each rank): ranks whose nodes differ in groups and partners alone."""
    numbers: dict[tuple[object, ...], int] = {}
    of_node: dict[int, int] = {}
    tables: dict[bytes, int] = {}
    first, table_of = [], []
    for rank, file in enumerate(files):
        words = list(map(id, file.nodes))  # of nodes that ranks share
        for node in itertools.compress(file.nodes, (word not in of_node for word in words)):
            known = node.numbers
            content = (
                node.id,
                node.name,
                node.type,
                node.deps,
                node.duration,
                node.is_cpu_op,
                known.get("comm_type"),
                known.get("comm_size"),
                known.get("num_ops"),
                known.get("tensor_size"),
            )
            of_node[id(node)] = numbers.setdefault(content, len(numbers))
        key = np.fromiter(map(of_node.__getitem__, words), np.int64, len(words)).tobytes()
        if key not in tables:
            tables[key] = len(tables)
            first.append(rank)
        table_of.append(tables[key])
    return first, np.array(table_of, np.int64)


def _build_table(
    nodes: Sequence[TraceNode], table: int, slots: Mapping[tuple[int, int], int], *, tick_ps: int
) -> NodeTable:
    """slots: the transfer of each communicating node, by table and position."""
    place = {node.id: position for position, node in enumerate(nodes)}
    builder = NodeTableBuilder()
    for position, node in enumerate(nodes):
        add = partial(builder.add, name=node.name, deps=[place[dep] for dep in node.deps], node_id=node.id)
        length = node.duration * PS * tick_ps
        if node.is_cpu_op and node.type in (schema.COMPUTE, *_OPS):
            add(HOST, duration_ps=length)
        elif node.type in _MEMORY:
            add(REMOTE, num_bytes=node.numbers.get("tensor_size", 0))
        elif node.type in _OPS:
            is_broadcast = schema.COMM_TYPES.get(node.numbers.get("comm_type", -1)) == schema.BROADCAST
            transfer, num_bytes = slots[table, position], node.numbers["comm_size"]
            duration_ps = length if is_broadcast else 0
            add(_OPS[node.type], transfer=transfer, num_bytes=num_bytes, duration_ps=duration_ps)
        elif node.type == schema.COMPUTE:
            rates = [float(node.numbers.get(name, np.nan)) for name in ("num_ops", "tensor_size")]
            add(COMPUTE, duration_ps=length, flops=rates[0], memory_bytes=rates[1])
        else:
            add(BESIDE)
    return builder.build()


def _replay_table(nodes: Sequence[TraceNode], *, tick_ps: int) -> NodeTable:
    """Every node lasts as its file says; what is none of a CPU's occupies what it would, but meets nobody."""
    place = {node.id: position for position, node in enumerate(nodes)}
    builder = NodeTableBuilder()
    for node in nodes:
        deps = [place[dep] for dep in node.deps]
        op = HOST if node.is_cpu_op else {schema.COMPUTE: COMPUTE, schema.RECEIVE: BESIDE}.get(node.type, REMOTE)
        builder.add(op, node.name, deps, duration_ps=node.duration * PS * tick_ps, node_id=node.id)
    return builder.build()


def _missing_of(node: TraceNode) -> str:
    return "it depends on a node that its file lacks, which our own engine takes as done" if node.missing else ""


def _note_of(node: TraceNode) -> str:
    if node.type == schema.COMPUTE or node.type in _OPS:
        return "a communication of the CPU is simulated as its work" if node.is_cpu_op and node.type in _OPS else ""
    return f"a {schema.NODE_TYPES[node.type]} takes no time here"


def _fault_of(node: TraceNode) -> str:
    what = schema.NODE_TYPES[node.type]
    if node.type == schema.METADATA:
        return f"a {what}, at which ASTRA-sim aborts"
    if node.is_cpu_op and node.type != schema.COMPUTE:
        return f"a {what} of the CPU, which is not simulated"
    if node.type in _MEMORY and "tensor_size" not in node.numbers:
        return f"a {what} without tensor_size, at which ASTRA-sim aborts"
    return ""


def _first_of_each(files: Sequence[TraceFile], say: Callable[[TraceNode], str]) -> tuple[str, ...]:
    """What is said of any node, with the first of each and the number of the others."""
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for rank, file in enumerate(files):
        for node in file.nodes:
            if what := say(node):
                first.setdefault(what, f"rank {rank}, {node.words}")
                counts[what] += 1
    return tuple(
        f"{where}{f' and {counts[what] - 1:,} more' if counts[what] > 1 else ''}: {what}"
        for what, where in first.items()
    )
