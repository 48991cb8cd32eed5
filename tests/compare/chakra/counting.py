"""What every file of a trace must hold, by the rows of the program's collectives alone."""

from collections import Counter
from collections.abc import Sequence

from compare.chakra.writer import number_groups, write_files
from compare.hlo.collective import Collective
from compare.network.graph.graph import Graph
from tests.compare.chakra.wire import Node, read_file

COMM_TYPES = {0: "all-reduce", 2: "all-gather", 5: "collective-broadcast", 6: "all-to-all", 7: "reduce-scatter"}
LIKE = {"ragged-all-to-all": "all-to-all"}


def check_trace(graph: Graph, rows: Sequence[Collective], ranks: Sequence[int]) -> int:
    """Every rank's file against the rows of known executions; ranks: of each device.  How many rows were held to it."""
    groups = {str(number): members for members, number in number_groups(graph).items()}
    exact = [row for row in rows if row.executions_are == "exact"]
    expected: list[Counter] = [Counter() for _ in ranks]
    for row in exact:
        _expect(row, ranks, expected)
    names = {row.name for row in exact}
    device_of = {rank: device for device, rank in enumerate(ranks)}
    for rank, data in enumerate(write_files(graph, metadata=[])):
        _, nodes = read_file(data)
        assert [node.id for node in nodes] == list(range(1, len(nodes) + 1))
        assert all(0 < dep < node.id for node in nodes for dep in node.deps)
        found = Counter(_describe(node, groups) for node in nodes if node.type != 4 and _row(node) in names)
        assert found == expected[device_of[rank]], f"rank {rank}"
    return len(exact)


def _row(node: Node) -> str:
    return node.name.rpartition(".")[0]


def _expect(row: Collective, ranks: Sequence[int], expected: list[Counter]) -> None:
    """Adds what each device has of one row: kind, bytes, partners, and how often."""
    for group in row.mesh_groups:
        members = tuple(ranks[device] for device in group)
        if len(set(members)) < 2 or not row.payload_bytes:
            continue
        if row.kind == "collective-permute":
            for device, what, other in ((group[0], "send", members[1]), (group[1], "receive", members[0])):
                if row.device_executions[device]:
                    expected[device][row.name, what, row.payload_bytes, other] += row.device_executions[device]
            continue
        size = row.payload_bytes // len(group) if row.kind == "all-gather" else row.payload_bytes
        for device in group:
            if row.device_executions[device]:
                kind = LIKE.get(row.kind, row.kind)
                expected[device][row.name, kind, size, members] += row.device_executions[device]


def _describe(node: Node, groups: dict[str, tuple[int, ...]]) -> tuple[object, ...]:
    if node.type == 7:
        return _row(node), COMM_TYPES[node["comm_type"]], node["comm_size"], groups[node["pg_name"]]
    assert node["comm_tag"] == int(node.name.rpartition(".")[2])
    if node.type == 5:
        return _row(node), "send", node["comm_size"], node["comm_dst"]
    return _row(node), "receive", node["comm_size"], node["comm_src"]
