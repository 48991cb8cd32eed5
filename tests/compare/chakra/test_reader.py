"""Traces come in: our own come back as they were, others with either type of number; what is wrong is one line."""

import json
import tracemalloc

import pytest

from compare.chakra.writer import number_groups, write_files
from compare.cli.export import main
from compare.network.graph.graph import COLLECTIVE, COMPUTE, RECEIVE, SEND, list_partners
from compare.timeline.errors import TimingError
from tests.compare.chakra.files import (
    attribute,
    collective,
    compute,
    node,
    read_trace,
    receive,
    send,
    write_file,
    write_trace,
)
from tests.compare.chakra.wire import INT64
from tests.places import EXAMPLE

PAIR = {"1": [0, 1]}


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    place = tmp_path_factory.mktemp("export") / "traces"
    assert main([str(EXAMPLE), "--to", "chakra", "--cell", "tpu", "--out", str(place)]) == 0
    return sorted(path for path in place.iterdir() if path.is_dir())


def test_a_small_file_takes_little_memory(tmp_path):
    """Not the bytes of the largest that is allowed (1 GiB)."""
    folder = write_trace(tmp_path, [[compute(1, 5)]])
    tracemalloc.start()
    read_trace(folder)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 << 20


def test_our_own_traces_come_back_byte_for_byte(traces):
    assert len(traces) == 4
    for folder in traces:
        trace = read_trace(folder)
        assert trace.tick_ps == 1
        assert not trace.notes
        written = list(write_files(trace.graph, metadata=list(trace.metadata.items())))
        assert written == [(folder / f"{folder.name}.{rank}.et").read_bytes() for rank in range(8)]
        groups = {str(number): list(ranks) for ranks, number in number_groups(trace.graph).items()}
        assert groups == json.loads((folder / "groups.json").read_text())


def test_ranks_that_run_alike_share_a_table(traces):
    for folder in traces:
        assert read_trace(folder).graph.table_of.tolist() == [0, 1] * 4


def test_a_trace_of_others_has_ticks_of_1_ns_and_its_own_ids(tmp_path):
    nodes = [
        [compute(7, 3), collective(9, 0, 64, group="1", deps=[7]), send(12, 1, 5, 8, deps=[9])],
        [collective(1, 0, 64, group="1"), receive(2, 0, 5, 8), compute(3, 0, deps=[2, 1])],
    ]
    trace = read_trace(write_trace(tmp_path, nodes, groups=PAIR))
    graph = trace.graph
    assert trace.tick_ps == 1000
    first, second = graph.table(0), graph.table(1)
    assert (first.ids.tolist(), first.ops.tolist()) == ([7, 9, 12], [COMPUTE, COLLECTIVE, SEND])
    assert first.duration_ps.tolist() == [3_000_000, 0, 0]
    assert second.ops.tolist() == [COLLECTIVE, RECEIVE, COMPUTE]
    assert second.deps_of(2).tolist() == [0, 1]
    assert [(each.kind, each.num_bytes, each.groups) for each in graph.transfers] == [
        ("all-reduce", 64, ((0, 1),)),
        ("collective-permute", 8, ((0, 1),)),
    ]
    assert list(list_partners(graph, 0, 2)) == [1]


@pytest.mark.parametrize("name", ["num_ops", "tensor_size"])
def test_a_node_does_not_do_less_than_nothing(tmp_path, name):
    write_trace(tmp_path, [[node(1, 4, duration=5, attributes=[attribute(name, INT64, 2**64 - 7)])]])
    with pytest.raises(TimingError, match=rf"\.0\.et node 1 'n1': {name} is -7, less than nothing"):
        read_trace(tmp_path)


@pytest.mark.parametrize("value", [3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25])
def test_a_number_may_have_any_type_of_whole_number(tmp_path, value):
    """mlcommons writes int64 where others write uint64 or int32; fields 3 and 5 are floats, which no size is."""
    nodes = [[collective(1, 0, 64, size_field=value)] for _ in range(2)]
    write_trace(tmp_path, nodes)
    if value in (3, 5):
        with pytest.raises(TimingError, match=r"node 1 'n1': comm_size is no whole number, but (double|float)_val"):
            read_trace(tmp_path)
    else:
        assert [each.num_bytes for each in read_trace(tmp_path).graph.transfers] == [64]


def test_both_kinds_of_dependencies_count_and_all_is_a_group_without_a_name(tmp_path):
    nodes = [[compute(1, 1), compute(2, 1), node(3, 4, ctrl=[1], deps=[2]), collective(4, 2, 64, deps=[3])]] * 3
    graph = read_trace(write_trace(tmp_path, nodes)).graph
    assert graph.table(0).deps_of(2).tolist() == [0, 1]
    assert graph.transfers[0].groups == ((0, 1, 2),)
    assert len(graph.tables) == 1


def test_ranks_that_meet_at_different_points_have_tables_of_their_own(tmp_path):
    """Both list a collective of group 1 and one of group 2, or of 3: the second of one is the first of another."""
    groups = {"1": [0, 1], "2": [1, 2], "3": [2, 0]}
    order = (("1", "3"), ("2", "1"), ("3", "2"))
    nodes = [[collective(1, 0, 8, group=first), collective(2, 0, 8, group=second)] for first, second in order]
    graph = read_trace(write_trace(tmp_path, nodes, groups=groups)).graph
    assert graph.table_of.tolist() == [0, 1, 2]
    assert sorted(each.groups[0] for each in graph.transfers) == [(0, 1), (1, 2), (2, 0)]


def test_what_takes_no_time_here_is_said_by_rank_and_node(tmp_path):
    nodes = [[node(1, 1), node(2, 2), compute(3, 1, cpu=True)], [node(1, 2), compute(2, 1)]]
    assert read_trace(write_trace(tmp_path, nodes)).notes == (
        "rank 0, node 1 'n1': a METADATA_NODE takes no time here",
        "rank 0, node 2 'n2' and 1 more: a MEM_LOAD_NODE takes no time here",
    )


def test_a_dependency_on_a_node_that_the_file_lacks_is_said_and_taken_as_done(tmp_path):
    """As in traces that a converter cut out of a longer one: node 1 waits for node 3, which is in no file."""
    nodes = [[compute(1, 4, deps=[3]), compute(2, 5, deps=[1])], [compute(1, 4), compute(2, 5, deps=[1, 7, 8])]]
    trace = read_trace(write_trace(tmp_path, nodes))
    what = "it depends on a node that its file lacks, which our own engine takes as done"
    assert trace.notes == trace.faults == (f"rank 0, node 1 'n1' and 1 more: {what}",)
    for rank in (0, 1):
        table = trace.graph.table(rank)
        assert [table.deps_of(node).tolist() for node in range(2)] == [[], [0]]


BAD = [
    ([[compute(1, 1)], [compute(4, 1), compute(4, 2)]], r"w\.1\.et has two nodes 4: 'n4' and 'n4'"),
    ([[compute(1, 1, deps=[2]), compute(2, 1, deps=[1])]], r"w\.0\.et has nodes that wait for each other: \d -> \d"),
    ([[compute(1, 1, deps=[1])]], "wait for each other: 1 -> 1"),
    ([[compute(1, 1)], []], r"w\.1\.et has no node"),
    ([[node(1, 8)]], r"node 1 'n1' has the unknown type 8"),
    ([[node(1, 7)]], "node 1 'n1' is a COMM_COLL_NODE without comm_type"),
    (
        [[collective(1, 0, 8)], [collective(1, 7, 8)]],
        "rank 1, node 1 'n1': it is of reduce-scatter, and node 1 'n1' of rank 0",
    ),
    (
        [[collective(1, 0, 8)], [collective(1, 0, 9)]],
        "rank 1, node 1 'n1': 9 bytes, and node 1 'n1' of rank 0, which it",
    ),
    ([[collective(1, 0, 8)], [compute(1, 1)]], "rank 0, node 1 'n1': rank 1 has no all-reduce in its place"),
    ([[collective(1, 9, 8)]], r"comm_type 9 \(barrier\) is not simulated"),
    ([[collective(1, 0, 8, group="7")]], "pg_name '7' is no group of groups.json"),
    ([[collective(1, 0, 8, group="one")]], "pg_name 'one' is no group"),
    ([[send(1, 1, 5, 8)], [compute(1, 1)]], "rank 0, node 1 'n1': rank 1 has nothing that meets it"),
    ([[compute(1, 1)], [receive(1, 0, 5, 8)]], "rank 1, node 1 'n1': rank 0 has nothing that meets it"),
    ([[send(1, 1, 5, 8)], [receive(1, 0, 6, 8)]], "rank 0, node 1 'n1': rank 1 has nothing that meets it"),
    ([[send(1, 1, 5, 8)], [receive(1, 0, 5, 9)]], "rank 1, node 1 'n1': 9 bytes, and node 1 'n1' of rank 0"),
    ([[send(1, 0, 5, 8)]], "comm_dst is 0, which is no other rank"),
    ([[send(1, 4, 5, 8)]], "comm_dst is 4, which is no other rank of 1"),
    ([[send(1, 1, 5, 0)], [receive(1, 0, 5, 0)]], "a message has 1 byte or more"),
]


@pytest.mark.parametrize(("nodes", "problem"), BAD)
def test_what_is_wrong_names_file_and_node(tmp_path, nodes, problem):
    with pytest.raises(TimingError, match=problem) as caught:
        read_trace(write_trace(tmp_path, nodes, groups=PAIR))
    assert "\n" not in str(caught.value)


def test_a_rank_outside_of_its_group_or_alone_in_it(tmp_path):
    nodes = [[compute(1, 1)], [compute(1, 1)], [collective(1, 0, 8, group="1")]]
    with pytest.raises(TimingError, match="rank 2, node 1 'n1': its rank is not in group 1"):
        read_trace(write_trace(tmp_path, nodes, groups=PAIR))
    with pytest.raises(TimingError, match="group 1 has one rank"):
        read_trace(write_trace(tmp_path, nodes, groups={"1": [2]}))


@pytest.mark.parametrize("length", range(1, 62))
def test_a_cut_file_is_never_taken_for_a_whole_one(tmp_path, length):
    write_trace(tmp_path, [[compute(1, 1), compute(2, 1)]])
    path = tmp_path / "w.0.et"
    data = path.read_bytes()
    path.write_bytes(data[:length])
    if length == 8 + 27:  # behind node 1: a shorter file, but no damaged one
        assert read_trace(tmp_path).graph.num_nodes == 1
        return
    with pytest.raises(TimingError, match=r"w\.0\.et (is cut|has no node)"):
        read_trace(tmp_path)


def test_files_that_are_no_traces(tmp_path):
    (tmp_path / "w.0.et").write_bytes(b"")
    with pytest.raises(TimingError, match=r"w\.0\.et is empty"):
        read_trace(tmp_path)
    (tmp_path / "w.0.et").write_bytes(b"\x80" * 20)
    with pytest.raises(TimingError, match="is no Chakra trace: at byte 0 stands no length"):
        read_trace(tmp_path)
    (tmp_path / "w.0.et").write_bytes(b"\x02\xff\xff")
    with pytest.raises(TimingError, match="does not begin with metadata"):
        read_trace(tmp_path)


def test_ranks_that_are_missing_doubled_or_of_two_traces(tmp_path):
    with pytest.raises(TimingError, match=r"has not the files of one trace, like name\.0\.et, but none"):
        read_trace(tmp_path)
    write_file(tmp_path / "w.0.et", [compute(1, 1)])
    write_file(tmp_path / "w.2.et", [compute(1, 1)])
    with pytest.raises(TimingError, match=r"has no w\.1\.et, but 2 ranks up to 2"):
        read_trace(tmp_path)
    write_file(tmp_path / "w.01.et", [compute(1, 1)])
    assert read_trace(tmp_path).graph.num_ranks == 3
    write_file(tmp_path / "w.1.et", [compute(1, 1)])
    with pytest.raises(TimingError, match="has rank 1 twice"):
        read_trace(tmp_path)
    (tmp_path / "w.01.et").unlink()
    write_file(tmp_path / "v.0.et", [compute(1, 1)])
    with pytest.raises(TimingError, match="those of several: 'v', 'w'"):
        read_trace(tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "groups.json is not JSON"),
        ("[]", "a table of groups was expected"),
        ('{"0": [0, 1]}', "'0' is no id of a group, which is a number from 1"),
        ('{"1": [0, 2]}', "group 1 is no list of ranks from 0 to 1"),
        ('{"1": 5}', "group 1 is no list of ranks"),
        ('{"1": [false, 1]}', "group 1 is no list of ranks"),
        ('{"1": [0, 0]}', "group 1 names a rank twice"),
    ],
)
def test_groups_that_are_none(tmp_path, text, problem):
    write_trace(tmp_path, [[compute(1, 1)]] * 2)
    (tmp_path / "groups.json").write_text(text)
    with pytest.raises(TimingError, match=problem):
        read_trace(tmp_path)


def test_the_value_of_an_attribute_may_be_missing(tmp_path):
    write_file(tmp_path / "w.0.et", [node(1, 4, attributes=[attribute("num_ops", None, None)])])
    with pytest.raises(TimingError, match="num_ops is no whole number, but nothing"):
        read_trace(tmp_path)
