"""A collective as Chakra files, `<prefix>.<place in the group>.et`: sends, receives and reductions."""

from pathlib import Path

from compare.chakra import schema
from compare.chakra.nodes import NodeReader, TraceNode
from compare.network.astra_sim.custom import CustomFiles, CustomNode
from compare.network.graph.graph import COMPUTE, RECEIVE, SEND
from compare.timeline.errors import TimingError
from meshes.process.one_line import quote

_OPS = {schema.COMPUTE: COMPUTE, schema.SEND: SEND, schema.RECEIVE: RECEIVE}
_TICKS = 1000
"""Of a microsecond."""


def read_custom(value: object, folder: Path, key: str) -> CustomFiles:
    """The files of a prefix, which is looked for from the folder.  `TimingError` where there are none."""
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], str):
        raise TimingError(f"{key}: a list of one prefix of Chakra files, not {quote(value)}")
    prefix = folder / value[0]
    reader = NodeReader()
    files: list[tuple[CustomNode, ...]] = []
    while (path := prefix.with_name(f"{prefix.name}.{len(files)}.et")).is_file():
        files.append(_read_nodes(path, reader))
    if not files:
        raise TimingError(f"{key}: {path} is not there; the prefix is looked for from the folder of the trace")
    return tuple(files)


def _read_nodes(path: Path, reader: NodeReader) -> tuple[CustomNode, ...]:
    nodes = reader.read(path).nodes
    place = {node.id: position for position, node in enumerate(nodes)}
    return tuple(_read_node(node, [place[dep] for dep in node.deps], path) for node in nodes)


def _read_node(node: TraceNode, deps: list[int], path: Path) -> CustomNode:
    op = _OPS.get(node.type)
    if op is None:
        raise TimingError(f"{path}, {node.words}: a {schema.NODE_TYPES[node.type]}, not simulated in a collective")
    if op == COMPUTE:
        return CustomNode(op, tuple(deps), ticks=max(node.duration * _TICKS, 1))
    numbers = node.numbers
    other = numbers["comm_dst" if op == SEND else "comm_src"]
    return CustomNode(op, tuple(deps), place=other, tag=numbers["comm_tag"], num_bytes=numbers["comm_size"])
