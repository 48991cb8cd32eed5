"""The forms a compiler gives to a collective, each in a program of a few lines."""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

ADD = "add {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}\n"
GROUPS = "replica_groups={{0,1,2,3}}, use_global_device_ids=true"
RING = "channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"


def rows(*lines, computations="", axes=None):
    body = "\n  ".join(("p = f32[8]{0} parameter(0)", *lines[:-1], "ROOT " + lines[-1]))
    text = f"HloModule m, num_partitions=4\n{ADD}{computations}ENTRY main {{\n  {body}\n}}\n"
    return collectives(read(text), {"tp": 4} if axes is None else axes)


def forms(*lines, **more):
    return [(row.kind, row.form, row.name) for row in rows(*lines, **more)]


def test_sync_and_start_done():
    assert forms(f"r = f32[8] all-reduce(p), channel_id=1, {GROUPS}, to_apply=add") == [("all-reduce", "sync", "r")]
    started = f"s = f32[8] all-reduce-start(p), channel_id=1, {GROUPS}, to_apply=add"
    assert forms(started, "r = f32[8] all-reduce-done(s)") == [("all-reduce", "start-done", "s")]


def test_a_synchronous_one_is_sync_whatever_it_was_meant_to_be():
    meant = 'frontend_attributes={async_collective_name="all-gather-start"}'
    assert forms(f"r = f32[32] all-gather(p), channel_id=1, {GROUPS}, dimensions={{0}}, {meant}")[0][1] == "sync"


SCATTER = f"called {{\n  q = f32[8]{{0}} parameter(0)\n  ROOT rs = f32[2]{{0}} reduce-scatter(q), channel_id=2, {GROUPS}, dimensions={{0}}, to_apply=add\n}}\n"  # noqa: E501


def test_an_async_call_is_named_after_the_collective_in_it():
    lines = ("s = ((f32[8]), f32[2], u32[]) async-start(p), calls=called", "r = f32[2] async-done(s), calls=called")
    assert forms(*lines, computations=SCATTER) == [("reduce-scatter", "start-done", "rs")]


def test_a_call_on_the_sparse_core():
    thread = 'async_execution_thread="sparsecore", to_apply=called'
    lines = (f"s = ((f32[8]), f32[2]) call-start(p), {thread}", "r = f32[2] call-done(s)")
    computations = SCATTER.removesuffix("}\n") + '}, execution_thread="sparsecore"\n'
    assert forms(*lines, computations=computations) == [("reduce-scatter", "sparsecore-call", "rs")]


FUSED = f"""%s {{
  q = f32[8]{{0}} parameter(0)
  ar = f32[8]{{0}} all-reduce(q), channel_id=3, {GROUPS}, to_apply=add
  table = s32[4]{{0}} constant({{0, 2, 4, 6}})
  place = u32[] partition-id()
  piece = s32[1]{{0}} dynamic-slice(table, place), dynamic_slice_sizes={{1}}
  at = s32[] bitcast(piece)
  ROOT ds = f32[2]{{0}} dynamic-slice(ar, at), dynamic_slice_sizes={{2}}
}}
"""


@pytest.mark.parametrize("name", ["all-reduce-scatter.1", "fused_computation.7"])
def test_an_all_reduce_that_a_fusion_slices_is_a_reduce_scatter(name):
    call = f"r = f32[2] fusion(p), kind=kCustom, calls={name}"
    (row,) = rows(call, computations=FUSED % name)
    assert (row.kind, row.form, row.name, row.payload_bytes) == ("reduce-scatter", "fused-reduce-scatter", "ar", 32)
    assert row.wire_bytes == 24  # 3/4 x 32


OTHERS = {
    "data": ("at = s32[] bitcast(piece)", "at = s32[] parameter(1)"),
    "a constant": ("at = s32[] bitcast(piece)", "at = s32[] constant(2)"),
    "place and data": ("at = s32[] bitcast(piece)", "k = s32[] parameter(1)\n  at = s32[] add(k, piece)"),
}


@pytest.mark.parametrize("index", OTHERS)
def test_sliced_by_anything_but_its_place_it_stays_an_all_reduce(index):
    was, now = OTHERS[index]
    fused = (FUSED % "f").replace(was, now)
    lines = ("k.1 = s32[] parameter(1)", "r = f32[2] fusion(p, k.1), kind=kCustom, calls=f")
    (row,) = rows(*lines, computations=fused)
    assert (row.kind, row.form, row.wire_bytes) == ("all-reduce", "sync", 48)
    named = fused.replace("f {", "all-reduce-scatter.3 {", 1)  # the compiler's own word for it
    (row,) = rows(lines[0], lines[1].replace("calls=f", "calls=all-reduce-scatter.3"), computations=named)
    assert row.kind == "reduce-scatter"


def test_a_place_that_is_handed_in_is_a_place_and_a_loop_counter_is_none():
    fused = (FUSED % "f").replace("place = u32[] partition-id()", "place = u32[] parameter(1)")
    call = "r = f32[2] fusion(p, i), kind=kCustom, calls=f"
    assert [row.kind for row in rows("i = u32[] partition-id()", call, computations=fused)] == ["reduce-scatter"]
    loop = (
        fused
        + """body {
  c = (u32[], f32[8], f32[2]) parameter(0)
  i = u32[] get-tuple-element(c), index=0
  p = f32[8]{0} get-tuple-element(c), index=1
  one = u32[] constant(1)
  n = u32[] add(i, one)
  r = f32[2] fusion(p, i), kind=kCustom, calls=f
  ROOT out = (u32[], f32[8], f32[2]) tuple(n, p, r)
}
condition {
  e = (u32[], f32[8], f32[2]) parameter(0)
  j = u32[] get-tuple-element(e), index=0
  end = u32[] constant(4)
  ROOT go = pred[] compare(j, end), direction=LT
}
"""
    )
    lines = (
        "z = u32[] constant(0)",
        "o = f32[2] constant({0, 0})",
        "first = (u32[], f32[8], f32[2]) tuple(z, p, o)",
        "w = (u32[], f32[8], f32[2]) while(first), condition=condition, body=body",
    )
    assert [row.kind for row in rows(*lines, computations=loop)] == ["all-reduce"]


def test_an_all_reduce_that_is_also_used_whole_stays_one():
    whole = (FUSED % "f").replace("ROOT ds = f32[2]{0} dynamic-slice", "ds = f32[2]{0} dynamic-slice")
    whole = whole.replace("\n}\n", "\n  ROOT t = (f32[2], f32[8]) tuple(ds, ar)\n}\n")
    call = "r = (f32[2], f32[8]) fusion(p), kind=kCustom, calls=f"
    assert forms(call, computations=whole) == [("all-reduce", "sync", "ar")]


@pytest.mark.parametrize(
    ("op_name", "pairs", "form"),
    [
        ("jit(f)/layer.mlp.down/dot_general", RING, "windowed-einsum"),
        ("jit(f)/layer.mlp.down.2/aten__einsum.1", RING, "windowed-einsum"),
        ("layer.mlp.down.2/aten__mm", RING, "windowed-einsum"),
        ("jit(f)/pipeline.shift/ppermute", RING, "sync"),
        ("jit(f)/ppermute/dot_general", RING, "sync"),
        ("jit(f)/layer.mlp.down/add", RING, "sync"),
        ("", RING, "sync"),
        ("jit(f)/layer.mlp.down/dot_general", RING.replace(",{3,0}", ""), "sync"),
        ("jit(f)/layer.mlp.down/dot_general", RING.replace("{1,2},{2,3}", "{1,3},{2,2}"), "sync"),
    ],
)
def test_a_ring_step_for_a_matmul_is_a_windowed_einsum(op_name, pairs, form):
    line = f'r = f32[8] collective-permute(p), {pairs}, metadata={{op_name="{op_name}"}}'
    assert forms(line) == [("collective-permute", form, "r")]


def test_a_windowed_einsum_is_known_by_its_rings_without_a_mesh():
    line = f'r = f32[8] collective-permute(p), {RING}, metadata={{op_name="a/dot_general"}}'
    assert forms(line, axes={})[0][1] == "windowed-einsum"


CHAIN = f"""starts {{
  q = f32[8]{{0}} parameter(0)
  ag1 = f32[32]{{0}} all-gather(q), channel_id=1, {GROUPS}, dimensions={{0}}, frontend_attributes={{chain_id="4"}}
  ROOT begin = (f32[8], f32[32], u32[]) custom-call(ag1), custom_call_target="AsyncCollectiveStart"
}}
carries {{
  q2 = f32[8]{{0}} parameter(0)
  b2 = f32[32]{{0}} parameter(1)
  n2 = f32[8]{{0}} negate(q2)
  ag2 = f32[32]{{0}} all-gather(q2), channel_id=1, {GROUPS}, dimensions={{0}}, frontend_attributes={{chain_id="4"}}, backend_config={{"async_collective_fusion_config":{{}}}}
  ROOT t2 = (f32[8], f32[8], f32[32]) tuple(n2, q2, ag2)
}}
ends {{
  q3 = f32[8]{{0}} parameter(0)
  b3 = f32[32]{{0}} parameter(1)
  ag3 = f32[32]{{0}} all-gather(q3), channel_id=1, {GROUPS}, dimensions={{0}}, frontend_attributes={{chain_id="4"}}
  ROOT end = f32[32]{{0}} custom-call(q3, b3, ag3), custom_call_target="AsyncCollectiveDone"
}}
"""  # noqa: E501
CHAINED = (
    "f1 = (f32[8], f32[32], u32[]) fusion(p), kind=kCustom, calls=starts",
    "a = f32[8] get-tuple-element(f1), index=0",
    "b = f32[32] get-tuple-element(f1), index=1",
    "f2 = (f32[8], f32[8], f32[32]) fusion(a, b), kind=kOutput, calls=carries",
    "c = f32[8] get-tuple-element(f2), index=1",
    "d = f32[32] get-tuple-element(f2), index=2",
    "r = f32[32] fusion(c, d), kind=kCustom, calls=ends",
)


def test_an_async_fusion_stands_three_times_and_is_one_collective():
    (row,) = rows(*CHAINED, computations=CHAIN)
    assert (row.kind, row.form, row.name, row.executions) == ("all-gather", "async-fusion", "ag1", 1)
    assert row.operands[0].parameters == {0}
    assert row.reaches_root  # through the last of the three


def test_a_part_without_a_start_cannot_be_placed():
    lost = (CHAINED[0].replace("starts", "plain"), *CHAINED[1:])
    plain = "plain {\n  q0 = f32[8]{0} parameter(0)\n  z0 = f32[32]{0} parameter(1)\n  ROOT t0 = (f32[8], f32[32]) tuple(q0, z0)\n}\n"  # noqa: E501
    with pytest.raises(HloError, match=r"line \d+: this part of an async collective has no start"):
        rows(*lost, computations=plain + CHAIN[CHAIN.index("carries") :])
