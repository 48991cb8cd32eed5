import pytest

from compare.hlo.collective import Change
from compare.passes.archive import Snapshot
from compare.passes.lineage import trace_lineage

HEAD = """HloModule m, num_partitions=8

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  p = f32[8,16] parameter(0)
  d = f32[8,16] multiply(p, p), metadata={op_name="layer/mul"}
"""


def text(*lines):
    return HEAD + "".join(f"  {line}\n" for line in lines) + "  ROOT r = f32[] constant(0)\n}\n"


def ring(name, op_name="ring"):
    return (
        f"{name} = f32[8,16] collective-permute(p), channel_id=1, source_target_pairs={{{{0,1}},{{1,0}}}}, "
        f'metadata={{op_name="{op_name}"}}'
    )


def reduce(name, op_name="layer/mul", channel=2):
    return (
        f"{name} = f32[8,16] all-reduce(d), channel_id={channel}, replica_groups={{{{0,1,2,3}},{{4,5,6,7}}}}, "
        f'use_global_device_ids=true, to_apply=add, metadata={{op_name="{op_name}"}}'
    )


def at(after, before, *lines, pipeline="xla"):
    return Snapshot(pipeline=pipeline, after=after, before=before, text=text(*lines))


FIRST = Snapshot(pipeline="", after="", before="", text=text(ring("ring.1")))
BEFORE = at("dce", "tpu-spmd-partitioning", ring("ring.2"))
AFTER = at("tpu-spmd-partitioning", "cse", ring("ring.3"), reduce("sum.1"))


def test_the_program_s_own_is_the_program_s_and_what_the_partitioner_adds_the_partitioner_s():
    found = trace_lineage([FIRST, BEFORE, AFTER], text(ring("ring.4"), reduce("sum.9")))
    assert {name: track.origin for name, track in found.items()} == {"ring.4": "program", "sum.9": "partitioner"}
    assert all(track.changes == () for track in found.values())


def test_one_that_was_created_shows_what_it_was_created_for():
    (event, *_) = trace_lineage([FIRST, BEFORE, AFTER], text(ring("ring.4"), reduce("sum.1")))["sum.1"].events
    assert (event.span, event.what) == ("tpu-spmd-partitioning", "created")
    assert event.before == ('d = f32[8,16] multiply(p, p), metadata={op_name="layer/mul"}',)
    assert event.after == reduce("sum.1")


def test_a_later_pass_that_makes_one_from_nothing_is_named():
    late = at("pipeline-start", "add-barrier", ring("ring.3"), reduce("sum.1"), pipeline="late")
    made = at("add-barrier", "dce", ring("ring.3"), reduce("sum.1"), reduce("b", "barrier", 7), pipeline="late")
    found = trace_lineage([FIRST, BEFORE, AFTER, late, made], made.text)
    assert found["b"].origin == "add-barrier"
    assert found["sum.1"].origin == "partitioner"


def test_what_came_between_recorded_passes_is_unknown_and_says_between_which():
    late = at("pipeline-start", "x", ring("ring.3"), reduce("sum.1"), reduce("b", "barrier", 7), pipeline="late")
    found = trace_lineage([FIRST, BEFORE, AFTER, late], late.text)
    assert found["b"].origin == "unknown: from tpu-spmd-partitioning to x"


def test_one_that_came_as_another_went_might_be_that_one_and_is_unknown():
    late = at("pipeline-start", "x", ring("ring.3"), reduce("sum.1"), pipeline="late")
    gone = at("x", "dce", reduce("sum.1"), reduce("b", "barrier", 7), pipeline="late")
    assert trace_lineage([FIRST, BEFORE, AFTER, late, gone], gone.text)["b"].origin == "unknown: x"


def test_a_merger_of_two_origins_has_both():
    ends = reduce("own.1", "own", 5)
    first = Snapshot(pipeline="", after="", before="", text=text(ends))
    before = at("dce", "tpu-spmd-partitioning", ends)
    after = at("tpu-spmd-partitioning", "cse", ends, reduce("sum.1").replace("(d)", "(p)"))
    late = at("pipeline-start", "all-reduce-combiner", ends, reduce("sum.1").replace("(d)", "(p)"), pipeline="merge")
    both = reduce("x", "", 8).replace("f32[8,16] all", "(f32[8,16], f32[8,16]) all").replace("(d)", "(d, p)")
    merged = at("all-reduce-combiner", "dce", both, pipeline="merge")
    found = trace_lineage([first, before, after, late, merged], merged.text)["x"]
    assert set(found.origin.split("+")) == {"program", "partitioner"}
    assert found.changes == (Change(by="all-reduce-combiner", what="merged"),)


def test_those_that_nothing_tells_apart_keep_an_origin_only_if_it_is_the_same():
    """One is the program's, one perhaps the partitioner's; a pass writes both anew."""
    own = reduce("x.1", "same", 1)
    first = Snapshot(pipeline="", after="", before="", text=text(own))
    before = at("dce", "tpu-spmd-partitioning", own)
    after = at("tpu-spmd-partitioning", "cse", own, reduce("x.2", "same", 1))
    later = at("cse", "dce", reduce("y.1", "same", 1), reduce("y.2", "same", 1))
    found = trace_lineage([first, before, after, later], later.text)
    assert {track.origin for track in found.values()} == {"unknown: cse"}


def test_without_a_first_text_what_is_there_could_be_anybody_s():
    found = trace_lineage([BEFORE, AFTER], AFTER.text)
    assert found["ring.3"].origin == "unknown: from before_optimizations to dce"
    assert found["sum.1"].origin == "partitioner"


def test_a_text_that_cannot_be_read_is_passed_over_and_leaves_a_gap():
    broken = Snapshot(pipeline="xla", after="dce", before="tpu-spmd-partitioning", text="HloModule m\nENTRY main {")
    found = trace_lineage([FIRST, broken, AFTER], AFTER.text)
    assert found["ring.3"].origin == "program"
    assert found["sum.1"].origin == "unknown: from the program to cse"


def test_nothing_recorded_tells_nothing():
    assert trace_lineage([], text(ring("ring.1"))) == {}


@pytest.mark.parametrize("what", ["narrower", "wider"])
def test_one_whose_elements_change_was_replaced_and_the_bytes_are_told(what):
    narrow = reduce("sum.1").replace("f32[8,16]", "bf16[8,16]").replace("(d)", "(e)")
    lines = ("e = bf16[8,16] convert(d)", narrow)
    pair = [reduce("sum.1")], lines
    old, new = pair if what == "narrower" else pair[::-1]
    after = at("tpu-spmd-partitioning", "bfloat16-propagation", *old)
    before = at("dce", "tpu-spmd-partitioning")
    first = Snapshot(pipeline="", after="", before="", text=text())
    end = at("bfloat16-propagation", "cse", *new)
    track = trace_lineage([first, before, after, end], end.text)["sum.1"]
    assert track.changes == (Change(by="bfloat16-propagation", what="replaced"),)
    assert track.events[-1].detail == ("512 → 256 bytes" if what == "narrower" else "256 → 512 bytes")


def test_one_that_was_moved_says_out_of_what():
    body = HEAD.replace("ENTRY main", "body").replace(
        "p = f32[8,16] parameter(0)",
        """t = (s32[], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  p = f32[8,16] get-tuple-element(t), index=1""",
    )
    loop = (
        body
        + f"""  {reduce("sum.1")}
  ROOT u = (s32[], f32[8,16]) tuple(i, sum.1)
}}
condition {{
  t = (s32[], f32[8,16]) parameter(0)
  ROOT c = pred[] constant(true)
}}
ENTRY main {{
  i = s32[] constant(0)
  q = f32[8,16] parameter(0)
  t = (s32[], f32[8,16]) tuple(i, q)
  ROOT w = (s32[], f32[8,16]) while(t), condition=condition, body=body
}}
"""
    )
    inside = Snapshot(pipeline="xla", after="dce", before="while-simplifier", text=loop)
    outside = at("while-simplifier", "cse", reduce("sum.1"))
    (track,) = trace_lineage([inside, outside], text(reduce("sum.1"))).values()
    assert [(event.what, event.detail) for event in track.events[1:]] == [("moved", "in 1 → 0 loops")]


def test_one_that_became_a_transfer_between_slices_says_so():
    told = (
        'is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous="sum.1_7",'
        '_xla_megascale_target="{{100000,200000}}",_xla_megascale_transfer_type="ALL_REDUCE"}'
    )
    sent = text(
        "k = token[] after-all()",
        f"s = (f32[8,16], u32[], token[]) send(d, k), channel_id=4, {told}",
        f"v = (f32[8,16], u32[], token[]) recv(k), channel_id=5, {told}",
    )
    (track,) = trace_lineage([at("dce", "cross-slice-rewrites", reduce("sum.1"))], sent).values()
    assert track.events[-1].detail == "sent between slices, written anew, without its name"
