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


def test_a_permute_of_tuples_carries_all_their_arrays():
    (row,) = collectives(read(PERMUTE), {})
    assert [operand.payload_bytes for operand in row.operands] == [1024, 16, 1024, 16]
    assert (row.dtype, row.payload_bytes, row.step_wire_bytes) == ("s8+f32", 2080, 2080 * 3 // 4)


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
