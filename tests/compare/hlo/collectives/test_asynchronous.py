"""Starts, updates and ends in spellings that XLA prints and programs of TPUs do not have; bytes by hand."""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import read

PAIR = "(s8[256,4]{1,0}, f32[4]{0})"
PERMUTE = f"""HloModule m, num_partitions=4

ENTRY %main (p: {PAIR}, q: {PAIR}) -> ({PAIR}, {PAIR}) {{
  %p = {PAIR} parameter(0)
  %q = {PAIR} parameter(1)
  %start = (({PAIR}, {PAIR}), ({PAIR}, {PAIR})) collective-permute-start(%p, %q), channel_id=3, source_target_pairs={{{{0,1}},{{1,2}},{{2,3}}}}
  ROOT %end = ({PAIR}, {PAIR}) collective-permute-done(%start)
}}
"""  # noqa: E501  (one instruction)
SCATTER = """HloModule m, num_partitions=2

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %s = f32[] add(%x, %y)
}, execution_thread="parallel"

ENTRY %main (p: f32[20]) -> f32[10] {
  %p = f32[20]{0} parameter(0)
  %start = ((f32[20]{0}), f32[10]{0}) reduce-scatter-start(%p), async_execution_thread="parallel", channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}, to_apply=%add
  %later = ((f32[20]{0}), f32[10]{0}) reduce-scatter-update(%start)
  ROOT %end = f32[10]{0} reduce-scatter-done(%later)
}
"""  # noqa: E501
BROKEN_OVER_LINES = """HloModule m, num_partitions=2

ENTRY %main (p: f32[20]) -> f32[20] {
  %p = f32[20]{0} parameter(0)
  ROOT %r = f32[20]{0} collective-permute(%p), channel_id=1, source_target_pairs={{0,1}}, backend_config={
    "operation_queue_id":"0",

    "collective_backend_config":{
      "is_sync":false
    }}
}
"""

BOTH = "(f32[4,8]{1,0}, u8[16,8]{1,0})"
AT = "(s32[], s32[])"
IN_PLACE = f"""HloModule m, num_partitions=4

ENTRY %main (a: {BOTH}, b: {BOTH}) -> {BOTH} {{
  %a = {BOTH} parameter(0)
  %b = {BOTH} parameter(1)
  %zero = s32[] constant(0)
  %one = s32[] constant(1)
  %first = {AT} tuple(%zero, %zero)
  %second = {AT} tuple(%one, %zero)
  %of.each = ({AT}, {AT}) tuple(%first, %second)
  %at = (({AT}, {AT}), ({AT}, {AT})) tuple(%of.each, %of.each)
  ROOT %r = {BOTH} collective-permute(%a, %b, %at, %at), channel_id=1, source_target_pairs={{{{0,1}},{{1,2}},{{2,3}},{{3,0}},{{0,3}},{{3,2}},{{2,1}},{{1,0}}}}, slice_sizes={{{{1,8}},{{1,8}},{{4,8}},{{4,8}}}}
}}
"""  # noqa: E501
"""A ring of two directions: each device sends a window of each array forwards, and another backwards."""


def test_a_permute_of_tuples_carries_all_their_arrays():
    (row,) = collectives(read(PERMUTE), {})
    assert [operand.payload_bytes for operand in row.operands] == [1024, 16, 1024, 16]
    assert (row.dtype, row.payload_bytes, row.step_wire_bytes) == ("s8+f32", 2080, 2080 * 3 // 4)


def test_a_permute_in_place_moves_for_each_pair_one_window_of_each_of_its_arrays():
    """Two windows of 1·8 f32 and two of 4·8 u8: 32 + 32 bytes forwards, and as many backwards."""
    (row,) = collectives(read(IN_PLACE), {})
    assert [(operand.dtype, operand.payload_bytes) for operand in row.operands] == [("f32", 64), ("u8", 64)]
    assert (row.payload_bytes, row.wire_bytes) == (128, 128)
    assert [operand.parameters for operand in row.operands] == [frozenset({0}), frozenset({0})]


def test_a_device_with_one_pair_sends_one_window():
    """Windows of 3·8 and 1·8 f32, 32 and 96 bytes: 0 sends both, 1 the first alone."""
    pairs, sizes = "{{0,1},{1,2},{0,2}}", "{{3,8},{1,8},{4,8},{4,8}}"
    head, _, _ = IN_PLACE.partition("source_target_pairs")
    (row,) = collectives(read(f"{head}source_target_pairs={pairs}, slice_sizes={sizes}\n}}\n"), {})
    assert row.device_bytes == (96 + 32 + 32 + 32, 96 + 32, 0, 0)


def test_an_update_stands_between_a_scatter_s_start_and_its_end():
    (row,) = collectives(read(SCATTER), {})
    assert (row.kind, row.name, row.payload_bytes, row.step_wire_bytes) == ("reduce-scatter", "start", 80, 40)
    with pytest.raises(HloError, match="what it ends was begun by no reduce-scatter-start"):
        collectives(read(SCATTER.replace("update(%start)", "update(%p)")), {})


def test_a_blank_line_inside_of_an_instruction_is_no_end_of_it():
    (row,) = collectives(read(BROKEN_OVER_LINES), {})
    assert (row.kind, row.step_wire_bytes, row.line) == ("collective-permute", 40, 5)


@pytest.mark.parametrize("kind", ["reduce-scatter", "all-gather"])
def test_as_many_results_as_the_tuple_has_arrays(kind):
    text = (
        "HloModule m, num_partitions=2\nENTRY e {\n  p = (f32[8], f32[8]) parameter(0)\n"
        f"  ROOT r = f32[8] {kind}(p), channel_id=1, replica_groups={{{{0,1}}}}, use_global_device_ids=true, "
        "dimensions={0}\n}\n"
    )
    with pytest.raises(HloError, match="its 2 operands and 1 results are not one to one"):
        collectives(read(text), {})
