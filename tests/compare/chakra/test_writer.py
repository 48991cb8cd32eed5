"""The bytes of a trace: of a tiny program by hand, and by the contract in docs/network.md."""

import numpy as np
import pytest

from compare.chakra.writer import number_groups, write_files
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.network.graph.expand import expand_program
from compare.network.graph.graph import COLLECTIVE, Graph, NodeTableBuilder, Transfer
from compare.timeline.errors import TimingError
from meshes.mesh_argument import read_mesh
from tests.compare.chakra.wire import BOOL, INT32, INT64, STRING, UINT64, read_file
from tests.compare.schedule.toys import ROUND, SHIFT, all_reduce, loop, program

X = "f32[1000]{0:S(1)}"
TINY = f"""
  a = {X} compute(x, 500)
  r = {X} {all_reduce("a")}
  c = {X} compute(r, 250)
  ROOT s = {X} collective-permute(c), channel_id=2, source_target_pairs={SHIFT}
"""


def expand(text: str, mesh: str = "tp4pp2") -> Graph:
    plan, module = read_mesh(mesh), read(text)
    return expand_program(module, collectives(module, plan.mesh.split_axes), plan, name="toy", hardware=ROUND)


def write(graph: Graph, **more) -> list[bytes]:
    return list(write_files(graph, **{"metadata": [("wirediff.units", "tick=ps")], **more}))


def test_the_file_of_a_rank_by_hand():
    """Every byte.  Device 0 is rank 0 and device 4, its successor in the pipeline, rank 1 (x is the side of 2)."""
    by_hand = (
        # 35 bytes: version "0.0.4"; an attribute of 26 bytes, "wirediff.units": "tick=ps" (field 29 has the tag ea 01)
        b"\x23" b"\x0a\x050.0.4" b"\x12\x1a" b"\x0a\x0ewirediff.units" b"\xea\x01\x07tick=ps"
        # id 1, name, type 4 (computes), 500, and that it is no work of a CPU (field 27 is d8 01)
        b"\x22" b"\x08\x01" b"\x12\x09compute.1" b"\x18\x04" b"\x38\xf4\x03" b"\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00"
        # id 2, execution 0 of r, type 7 (collective), after 1; kind 0, 4,000 bytes, group 1
        b"\x4a" b"\x08\x02" b"\x12\x03r.0" b"\x18\x07" b"\x2a\x01\x01" b"\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00"
        b"\x52\x0d\x0a\x09comm_type\x48\x00" b"\x52\x0e\x0a\x09comm_size\x48\xa0\x1f"
        b"\x52\x0d\x0a\x07pg_name\xea\x01\x011"
        # id 3, type 4, after 2, 250
        b"\x25" b"\x08\x03" b"\x12\x09compute.3" b"\x18\x04" b"\x2a\x01\x02" b"\x38\xfa\x01"
        b"\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00"
        # id 4, execution 1, type 5 (send), after 3; 4,000 bytes, to rank 1, tag 1
        b"\x48" b"\x08\x04" b"\x12\x03s.1" b"\x18\x05" b"\x2a\x01\x03" b"\x52\x0e\x0a\x09is_cpu_op\xd8\x01\x00"
        b"\x52\x0e\x0a\x09comm_size\x48\xa0\x1f" b"\x52\x0c\x0a\x08comm_dst\x38\x01" b"\x52\x0c\x0a\x08comm_tag\x38\x01"
    )  # fmt: skip
    assert write(expand(program(TINY)))[0] == by_hand


def test_the_other_end_receives():
    nodes = read_file(write(expand(program(TINY)))[1])[1]
    assert [(node.type, node.deps) for node in nodes] == [(4, []), (7, [1]), (4, [2]), (6, [3])]
    assert nodes[1]["pg_name"] == "2"
    assert nodes[3].attributes == [
        ("is_cpu_op", BOOL, 0),
        ("comm_size", INT64, 4000),
        ("comm_src", INT32, 0),
        ("comm_tag", INT32, 1),
    ]


def test_groups_are_numbered_as_they_appear_and_keep_their_order():
    other = all_reduce("r", groups="{{3,2,1,0},{4,5,6,7}}")
    graph = expand(program(f"  r = {X} {all_reduce('x')}\n  ROOT t = {X} {other}"))
    assert number_groups(graph) == {(0, 2, 4, 6): 1, (1, 3, 5, 7): 2, (6, 4, 2, 0): 3}


SHARD = "f32[250]{0:S(1)}"
HALVES = "replica_groups=[2,4]<=[8], use_global_device_ids=true"
OVERLAP = f"""
  a = {SHARD} compute(x, 500)
  g = ({SHARD}, {X}) all-gather-start(a), channel_id=5, {HALVES}, dimensions={{0}}
  b = {SHARD} compute(a, 300)
  d = {X} all-gather-done(g)
  ROOT e = {X} compute(d, 200)
"""


def test_a_start_waits_and_a_done_joins_the_chain():
    nodes = read_file(write(expand(program(OVERLAP)))[0])[1]
    assert [(node.name, node.deps, node.duration) for node in nodes] == [
        ("compute.1", [], 500),
        ("g.0", [1], 0),
        ("compute.3", [1], 300),
        ("compute.4", [2, 3], 200),
    ]
    # Of an all-gather the shard: 4,000 bytes over 4 ranks.
    assert (nodes[1]["comm_type"], nodes[1]["comm_size"]) == (2, 1000)


def test_executions_are_counted_over_all_kinds_and_trips():
    body = f"  r = {X} {all_reduce('y')}\n  last = {X} collective-permute(r), channel_id=2, source_target_pairs={SHIFT}"
    start = f"""
  zero = s32[] constant(0)
  start = (s32[], {X}) tuple(zero, x)
  ROOT around = (s32[], {X}) while(start), condition=test, body=body
"""
    graph = expand(program(start, more=loop(body, trips=3)))
    assert [node.name for node in read_file(write(graph)[0])[1] if node.type != 4] == [
        "r.0",
        "last.1",
        "r.2",
        "last.3",
        "r.4",
        "last.5",
    ]
    assert [node["comm_tag"] for node in read_file(write(graph)[1])[1] if node.type == 6] == [1, 3, 5]


def test_a_device_in_both_roles_sends_then_receives_and_both_are_waited_for():
    ring = "{{0,1},{1,2},{2,3},{3,0},{4,5},{5,6},{6,7},{7,4}}"
    text = f"""
  s = ({X}, {X}) collective-permute-start(x), channel_id=2, source_target_pairs={ring}
  b = {X} compute(x, 300)
  d = {X} collective-permute-done(s)
  ROOT e = {X} compute(d, 200)
"""
    nodes = read_file(write(expand(program(text)))[0])[1]
    assert [(node.type, node.deps) for node in nodes] == [(5, []), (6, []), (4, []), (4, [1, 2, 3])]
    assert [node["comm_tag"] for node in nodes[:2]] == [0, 0]


def test_pairs_with_themselves_and_groups_of_one_move_nothing():
    alone = all_reduce("x", groups="{{0},{1},{2},{3},{4},{5},{6},{7}}")
    text = f"""
  a = {X} {alone}
  ROOT s = {X} collective-permute(a), channel_id=2, source_target_pairs={{{{0,0}},{{1,2}}}}
"""
    files = [read_file(data)[1] for data in write(expand(program(text)))]
    # Devices 1 and 2 are ranks 2 and 4; k counts what is left out.  A rank without a node computes for one tick.
    assert [(node.name, node.type) for node in files[2]] == [("s.1", 5)]
    assert [(node.name, node.type) for node in files[4]] == [("s.1", 6)]
    for rank in (0, 1, 3, 5, 6, 7):
        assert [(node.name, node.type, node.duration) for node in files[rank]] == [("compute.1", 4, 1)]


def test_fields_ascend_defaults_are_left_out_and_repeated_numbers_packed():
    for data in write(expand(program(TINY))):
        for node in read_file(data)[1]:
            assert node.numbers == sorted(node.numbers)
            assert not node.ctrl_deps
            assert (7 in node.numbers) == (node.type == 4)


def test_the_metadata_has_what_is_given_in_its_order():
    data = write(expand(program(TINY)), metadata=[("b", "x"), ("a", "y")])[0]
    assert read_file(data)[0] == [(1, "0.0.4"), (2, ("b", STRING, "x")), (2, ("a", STRING, "y"))]


def test_facts_stand_behind_the_attributes_of_their_collective_alone():
    facts = {"r": [("wirediff.scope", "embed"), ("wirediff.executions", 7)]}
    nodes = read_file(write(expand(program(TINY)), facts=facts)[0])[1]
    assert nodes[1].attributes[-2:] == [("wirediff.scope", STRING, "embed"), ("wirediff.executions", UINT64, 7)]
    assert [len(node.attributes) for node in nodes] == [1, 6, 1, 4]


def one_collective(groups, *, executions: int) -> Graph:
    nodes = NodeTableBuilder()
    for k in range(executions):
        nodes.add(COLLECTIVE, f"r.{k}", (), transfer=k, num_bytes=8)
    transfers = tuple(
        Transfer(key=k, kind="all-reduce", num_bytes=8, groups=groups, collective="r") for k in range(executions)
    )
    ranks = sum(map(len, groups))
    table_of = np.zeros(ranks, np.int64)
    return Graph(name="toy", num_ranks=ranks, tables=(nodes.build(),), table_of=table_of, transfers=transfers)


def test_more_groups_or_executions_than_astra_sim_tells_apart_are_refused():
    pairs = tuple((2 * pair, 2 * pair + 1) for pair in range(500))
    with pytest.raises(TimingError, match="500 groups of ranks; ASTRA-sim tells at most 499"):
        write(one_collective(pairs, executions=1))
    assert len(write(one_collective(pairs[:499], executions=1))) == 998
    with pytest.raises(TimingError, match="runs 3 collectives of 400000 chunks in one group"):
        write(one_collective(pairs[:1], executions=3), chunks=400_000)


def test_a_program_for_one_device_is_refused():
    with pytest.raises(TimingError, match="for one device"):
        expand(program(f"  ROOT a = {X} compute(x, 5)", head="num_partitions=1"), mesh="tp1@v5e:1x1")
