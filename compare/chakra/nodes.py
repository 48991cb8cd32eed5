"""The nodes of one file: read, checked against the schema and against each other."""

import graphlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

from google.protobuf.message import DecodeError

from compare.chakra import schema
from compare.chakra.framing import MOST_BYTES, unframe
from compare.hlo.proto.messages import Message
from compare.timeline.errors import TimingError
from meshes.process.one_line import quote

_PIECE = 1 << 20
MOST_NODES = 4_000_000
"""Of one file."""
_LARGEST = 2**62
"""Of ids and sizes."""
_LONGEST = 10**12
"""Of `duration_micros`: in ps it has 64 bits."""
_INTEGERS = ("comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "comm_priority", "num_ops", "tensor_size")
_NEEDS = {
    schema.COLLECTIVE: ("comm_type", "comm_size"),
    schema.SEND: ("comm_size", "comm_dst", "comm_tag"),
    schema.RECEIVE: ("comm_size", "comm_src", "comm_tag"),
}


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node as its file has it, whatever the rank."""

    id: int
    name: str
    type: int
    deps: tuple[int, ...]
    """Ids, of either kind of dependency, ascending."""
    duration: int
    """`duration_micros`."""
    numbers: Mapping[str, int]
    """Attributes that are whole numbers, of those that are simulated."""
    group: str = ""
    """`pg_name`."""
    dims: tuple[bool, ...] = ()
    """`involved_dim`."""
    is_cpu_op: bool = False
    missing: tuple[int, ...] = ()
    """Ids of nodes that it depends on, and that its file lacks: what a converter cuts out of a longer trace."""

    @property
    def words(self) -> str:
        return f"node {self.id} {quote(self.name)}"


class NodeReader:
    """Reads files; a message that many ranks share is parsed once."""

    def __init__(self) -> None:
        self._parsed: dict[bytes, TraceNode] = {}

    def read(self, path: Path) -> "TraceFile":
        """`OSError` where it can't be opened; `TimingError`, one line that names file and node, where it is damaged."""
        try:
            with path.open("rb") as file:
                # In pieces: one read of MOST_BYTES reserves as much memory for the smallest of files.
                data = b"".join(islice(iter(partial(file.read, _PIECE), b""), MOST_BYTES // _PIECE + 1))
            if len(data) > MOST_BYTES:
                raise ValueError(f"is larger than {MOST_BYTES:,} bytes")
            messages = unframe(data)
            metadata = _read_metadata(next(messages, None))
            nodes = _set_missing_apart(sorted(self._nodes(messages), key=lambda node: node.id))
            _check_order(nodes)
        except ValueError as error:
            raise TimingError(f"{path} {error}") from None
        return TraceFile(path, metadata, nodes)

    def _nodes(self, messages: Iterator[bytes]) -> Iterator[TraceNode]:
        for count, message in enumerate(messages):
            if count == MOST_NODES:
                raise ValueError(f"has more than {MOST_NODES:,} nodes")
            node = self._parsed.get(message)
            if node is None:
                try:
                    node = _read_node(schema.Node.FromString(message))
                except DecodeError:
                    raise ValueError(f"is damaged: message {count + 1:,} is no node") from None
                self._parsed[message] = node
            yield node


@dataclass(frozen=True, slots=True)
class TraceFile:
    """The file of one rank."""

    path: Path
    metadata: Mapping[str, str]
    """Attributes that are strings."""
    nodes: list[TraceNode]
    """By ascending id, at least one."""


def _read_metadata(message: bytes | None) -> dict[str, str]:
    if message is None:
        raise ValueError("is empty: a Chakra trace begins with its metadata")
    try:
        head = schema.GlobalMetadata.FromString(message)
    except DecodeError:
        raise ValueError("is no Chakra trace: it does not begin with metadata") from None
    return {each.name: each.string_val for each in head.attr if each.WhichOneof("value") == "string_val"}


def _read_node(message: Message) -> TraceNode:
    words = f"node {message.id} {quote(message.name)}"
    if not 0 <= message.type < len(schema.NODE_TYPES):
        raise ValueError(f"{words} has the unknown type {message.type}")
    numbers: dict[str, int] = {}
    group, is_cpu_op = "", False
    dims: tuple[bool, ...] = ()
    for attribute in message.attr:
        name, kind = attribute.name, attribute.WhichOneof("value")
        value = getattr(attribute, kind or "doc_string")
        if name in _INTEGERS:
            if kind not in schema.INTEGERS:
                raise ValueError(f"{words}: {name} is no whole number, but {kind or 'nothing'}")
            numbers[name] = value
        elif name == "is_cpu_op":
            is_cpu_op = bool(value)
        elif name == "pg_name":
            group = str(value)
        elif name in ("involved_dim", "involve_dims") and kind == "bool_list":
            dims = tuple(value.values)
    for name in () if is_cpu_op else _NEEDS.get(message.type, ()):  # the host's call has nothing but its length
        if name not in numbers:
            raise ValueError(f"{words} is a {schema.NODE_TYPES[message.type]} without {name}")
        if not 0 <= numbers[name] <= _LARGEST:
            raise ValueError(f"{words}: {name} is {numbers[name]}")
    for name in ("num_ops", "tensor_size"):
        if numbers.get(name, 0) < 0:
            raise ValueError(f"{words}: {name} is {numbers[name]}, less than nothing")
    if message.id > _LARGEST or message.duration_micros > _LONGEST:
        raise ValueError(f"{words}, which takes {message.duration_micros} us: numbers that are too large")
    return TraceNode(
        id=message.id,
        name=message.name,
        type=message.type,
        deps=tuple(sorted({*message.ctrl_deps, *message.data_deps})),
        duration=message.duration_micros,
        numbers=numbers,
        group=group,
        dims=dims,
        is_cpu_op=is_cpu_op,
    )


def _set_missing_apart(nodes: list[TraceNode]) -> list[TraceNode]:
    known = {node.id for node in nodes}
    return [
        node
        if known.issuperset(node.deps)
        else replace(
            node,
            deps=tuple(dep for dep in node.deps if dep in known),
            missing=tuple(dep for dep in node.deps if dep not in known),
        )
        for node in nodes
    ]


def _check_order(nodes: list[TraceNode]) -> None:
    """Unique ids, and no cycle."""
    if not nodes:
        raise ValueError("has no node")
    for before, node in pairwise(nodes):
        if before.id == node.id:
            raise ValueError(f"has two nodes {node.id}: {quote(before.name)} and {quote(node.name)}")
    if all(node.deps[-1] < node.id for node in nodes if node.deps):
        return
    try:
        graphlib.TopologicalSorter({node.id: node.deps for node in nodes}).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1]
        shown = " -> ".join(map(str, circle[:6])) + (" -> …" if len(circle) > 6 else "")
        raise ValueError(f"has nodes that wait for each other: {shown}") from None
