"""Programs from before the partitioner with a collective of their author's: never read as if they were compiled."""

import pytest

from compare import collectives
from compare.hlo.text.errors import HloError

OF_REPLICAS = """HloModule IrToHlo.3

ENTRY %IrToHlo.3 (p0.1: f32[64,8]) -> f32[128,8] {
  %p0.1 = f32[64,8]{1,0} parameter(0), sharding={devices=[2,1,4]0,1,2,3,4,5,6,7 last_tile_dim_replicate}
  ROOT %all-gather.2 = f32[128,8]{1,0} all-gather(%p0.1), replica_groups={{0,4},{1,5},{2,6},{3,7}}, dimensions={0}
}
"""
"""As PyTorch/XLA writes `xm.all_gather` in a program that is to be partitioned: without a channel, so of replicas."""


def test_groups_of_replicas_that_are_not_there_are_refused_with_what_would_be_right():
    with pytest.raises(HloError) as refused:
        collectives(OF_REPLICAS, axes={"batch": 2, "model": 4}, topology="v5e:2x4")
    said = str(refused.value)
    assert "line 5: its groups name replica 7, and the program has 1 replica of 8 partitions" in said
    assert "channel_id and use_global_device_ids=true" in said
    assert "\n" not in said


MANUAL = """HloModule jit_g, entry_computation_layout={(f32[64,512]{1,0},f32[512,256]{1,0})->f32[64,256]{1,0}}

ENTRY main.1 {
  x.1 = f32[64,512]{1,0} parameter(0), sharding={devices=[1,8]<=[8]}
  w.1 = f32[512,256]{1,0} parameter(1), sharding={devices=[8,1]<=[8]}
  y.1 = f32[64,256]{1,0} dot(x.1, w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  whole.1 = f32[64,256]{1,0} custom-call(y.1), custom_call_target="Sharding", sharding={replicated}
  local.1 = f32[64,256]{1,0} custom-call(whole.1), custom_call_target="SPMDFullToShardShape", sharding={manual}
  moved.1 = f32[64,256]{1,0} collective-permute(local.1), channel_id=1, \
source_target_pairs={{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}
  ROOT z.1 = f32[64,256]{1,0} custom-call(moved.1), custom_call_target="SPMDShardToFullShape", sharding={replicated}
}
"""


@pytest.mark.slow
def test_beside_its_own_collective_a_program_has_those_of_the_partitioner():
    """The product's partial sums, 64·256·4 bytes over 8, which no line of the text names; and the author's permute."""
    table = collectives(MANUAL, axes={"x": 8}, topology="v5e:2x4")
    assert {(row.kind, row.axes): row.payload_bytes for row in table} == {
        ("all-reduce", "x"): 65_536,
        ("collective-permute", "x"): 65_536,
    }


OF_SHARDY = """HloModule m, num_partitions=4, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=1, "tp"=4]>}}

ENTRY main {
  x = bf16[512,1024] parameter(0), sharding={devices=[1,4]<=[4]}, \
frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{}, {\\"tp\\"}]>"}
  w = bf16[1024,512] parameter(1), sharding={devices=[4,1]<=[4]}, \
frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\\"tp\\"}, {}]>"}
  dot = bf16[512,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y = bf16[512,512] custom-call(dot), custom_call_target="xla.sdy.FuncResultSharding", \
custom_call_has_side_effect=true, \
frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\\"tp\\"}, {}]>]>"}
  metric = f32[] constant(1)
  ROOT out = (bf16[512,512], f32[]) tuple(y, metric), sharding={{devices=[4,1]<=[4]}, {replicated}}
}
"""
"""As JAX's HLO of a training step with Shardy: weights with a sharding of their own, metrics without one."""


@pytest.mark.slow
def test_a_result_that_shardy_has_no_word_for_leaves_the_others_to_shardy():
    """The sums of 512·512·2 bytes are scattered, as y wants them; the program names its axes itself."""
    (row,) = collectives(OF_SHARDY, topology="v5e:2x2")
    assert (row.kind, row.axes, row.payload_bytes) == ("reduce-scatter", "tp", 524_288)
