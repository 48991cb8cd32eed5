"""Reports of surprising collectives, rebuilt: each still emits what its explanation says, and the remedy removes it."""

import re
from importlib.util import find_spec

import pytest

from compare.diff.own.expected import count_collectives
from tests.loop_copies import list_loop_copies
from tests.surprises.compile_examples import TORCHAX, compile_examples
from tests.surprises.page import page
from tests.surprises.programs import EXAMPLES

pytestmark = pytest.mark.slow

K = 1024
ROWS = 16 * 32768 * 4  # Logits of the sequences of one device, in bytes.
TORCHAX_IS_HERE = find_spec("torchax") is not None

# Program -> what it emits, and its bytes a step by hand.
EMITS = [
    # The whole [256, 256, 256] bf16 on every device, of eight; instead two exchanges of an eighth of it.
    ("reshard.surprising", {"all-gather@x,y": 1}, 256**3 * 2 * 7 // 8),
    ("reshard.instead", {"all-to-all@x": 1, "all-to-all@y": 1}, 256**3 * 2 // 8 * 3 // 4 + 256**3 * 2 // 8 // 2),
    # Two arrays of [4096, 1024] bf16, a quarter on each device, and their join; each exchange sends three quarters.
    ("concatenate.surprising", {"all-to-all@data": 3}, (2 * K * K + 2 * K * K + 4 * K * K) * 3 // 4),
    ("concatenate.instead", {}, 0),
    # Memory alone: `test_a_cache_that_is_written_by_index_…`.
    ("cache.surprising", {}, 0),
    ("cache.instead", {}, 0),
    ("cache.instead_heads", {}, 0),
    ("cache.instead_one_head", {}, 0),
    ("cache.instead_unrolled", {}, 0),
    # Eight times the whole stack of [8, 1024, 1024] bf16; instead eight sums of [256, 1024], and the result gathered.
    ("layers_in_a_scan.surprising", {"all-gather@layers": 8}, 8 * 8 * K * K * 2 * 7 // 8),
    ("layers_in_a_scan.instead", {"all-reduce@layers": 8, "all-gather@layers": 1},
     8 * 256 * K * 2 * 2 * 7 // 8 + 256 * K * 2 * 7 // 8),
    # Both operands' parts, [2048, 8192] and [8192, 2048] bf16, and one of [4096, 8192] gathered in pairs.
    ("matmul_transposed.surprising", {"collective-permute@x,y": 2, "all-gather@x:sub": 1}, None),
    ("matmul_transposed.instead", {}, 0),
    # One predicate an iteration, of a loop whose length is data.
    ("loops_of_other_lengths.surprising", {"all-reduce@batch": None}, None),
    ("loops_of_other_lengths.instead", {}, 0),
    # Four times the four halves of [4, 8, 2048] bf16; then the losses, four floats.
    ("microbatches.surprising", {"all-gather@data:sub": 4, "all-reduce@data:sub": 1},
     4 * 4 * 8 * 2048 * 2 * 3 // 4 + 16),
    ("microbatches.instead", {"all-reduce@data": 1}, 4 * 4 * 2 * 7 // 8),
    # The batch, [8, 128, 1024] bf16, then its features, [8, 128, 4096]; instead two weights of [4096, 1024].
    ("fsdp.surprising", {"all-gather@fsdp": 2}, 8 * 128 * (K + 4 * K) * 2 * 7 // 8),
    ("fsdp.instead", {"all-gather@fsdp": 2}, 2 * 4 * K * K * 2 * 7 // 8),
    # [8 tokens, 32 experts, 512] bf16; instead [8, 512].
    ("experts.surprising", {"all-reduce@model": 1}, 8 * 32 * 512 * 2 * 2 * 7 // 8),
    ("experts.instead", {"all-reduce@model": 1}, 8 * 512 * 2 * 2 * 7 // 8),
    # Of each row four values a device, [64, 8 x 4] f32; instead these, and a sum that picks the places, [64, 4] s32.
    ("top_k.surprising", {"all-gather@data": 1}, 64 * 32 * 4 * 7 // 8),
    ("top_k.instead", {"all-gather@data": 1, "all-reduce@data": 1}, 64 * 32 * 4 * 7 // 8 + 64 * 4 * 4 * 2 * 7 // 8),
    # A device's half of the batch, [32, 4096] bf16: sent by one stage of four, and summed over all; then the loss.
    ("last_stage.surprising", {"collective-permute@stage": 1, "all-reduce@stage": 1, "all-reduce@data": 1},
     32 * 4096 * 2 // 4 + 32 * 4096 * 2 * 2 * 3 // 4 + 4),
    ("last_stage.instead", {"all-reduce@stage,data": 1}, 4 * 2 * 7 // 8),
    # [64, 512] f32, forward and backward; instead forward.
    ("backward_of_psum.surprising", {"all-reduce@data": 2}, 2 * 64 * 512 * 4 * 2 * 7 // 8),
    ("backward_of_psum.instead", {"all-reduce@data": 1}, 64 * 512 * 4 * 2 * 7 // 8),
    ("cumulative_sum.surprising", {"all-gather@data:sub": 2, "collective-permute@data": 4, "all-reduce@data:sub": 1},
     None),
    # The totals of eight parts, [8, 1024] f32.
    ("cumulative_sum.instead", {"all-gather@data": 1}, 8 * K * 4 * 7 // 8),
    # Over four devices, of two sequences: eight heads of the query, [128] bf16, and of 1,024 keys and values each.
    ("pytorch_matmul.surprising", {"all-gather@model": 3}, 2 * 8 * (1 + 2 * 1024) * 128 * 2 * 3 // 4),
    ("pytorch_matmul.surprising_by_hand", {"all-gather@model": 3}, 2 * 8 * (1 + 2 * 1024) * 128 * 2 * 3 // 4),
    ("pytorch_matmul.instead", {}, 0),
    ("pytorch_matmul.instead_heads_first", {}, 0),
    ("pytorch_matmul.instead_one_sequence", {}, 0),
    ("pytorch_matmul_torchax.surprising", {"all-gather@model": 3}, 2 * 8 * (1 + 2 * 1024) * 128 * 2 * 3 // 4),
    ("pytorch_matmul_torchax.surprising_sdpa", {"all-gather@model": 3}, 2 * 8 * (1 + 2 * 1024) * 128 * 2 * 3 // 4),
    ("pytorch_matmul_torchax.instead", {}, 0),
    ("pytorch_matmul_torchax.instead_jax_attention", {}, 0),
    # The logits, [32, 32768] f32: the rest of a device's half of the rows over model, then the other half over data.
    ("sampling.surprising", {"all-gather@model": 1, "all-gather@data": 1}, ROWS * 3 // 4 + 2 * ROWS // 2),
    # The largest of each row and its place, of four devices, 16 rows on each; then the logits all the same.
    ("sampling.surprising_argmax_first", {"all-gather@model": 3}, 2 * 16 * 4 * 4 * 3 // 4 + ROWS * 3 // 4),
    # 16 values and 16 places of each row and device.
    ("sampling.instead", {"all-gather@model": 2}, 2 * 16 * 4 * 16 * 4 * 3 // 4),
    ("sampling.instead_argmax", {"all-gather@model": 4}, 2 * 2 * 16 * 4 * 4 * 3 // 4),
    ("sampling.instead_argmax_last", {"all-gather@model": 1}, ROWS * 3 // 4),
    ("sampling.instead_whole_rows", {"all-gather@model": 1}, ROWS * 3 // 4),
    # A device's state, eight heads of 32, of [16, 32, 64, 64] f32; then the decays, [16, 32].
    ("state_output.surprising", {"all-to-all@model": 1, "all-gather@model": 1},
     16 * 8 * 64 * 64 * 4 * 3 // 4 + 16 * 32 * 4 * 3 // 4),
    ("state_output.instead", {}, 0),
    # The weight in the forward pass, [1024, 1024] bf16, and the sum of its gradient; instead the new weight.
    ("optimizer_state.surprising", {"all-gather@x,y": 1, "all-reduce@x,y": 1}, K * K * 2 * 7 // 8 * (1 + 2)),
    ("optimizer_state.surprising_first_step", {"all-reduce@x,y": 1}, K * K * 2 * 2 * 7 // 8),
    ("optimizer_state.instead", {"all-gather@x,y": 1, "all-reduce@x,y": 1}, K * K * 2 * 7 // 8 * (1 + 2)),
    # Three weights of [1024, 1024] bf16 for the forward pass, and their gradients together; two of three weights again,
    # or all three again, of which the last is not gathered before.
    ("whole_weights.surprising", {"all-gather@fsdp": 3, "reduce-scatter@fsdp": 1}, (3 + 3) * K * K * 2 * 7 // 8),
    ("whole_weights.surprising_named", {"all-gather@fsdp": 3, "reduce-scatter@fsdp": 1}, (3 + 3) * K * K * 2 * 7 // 8),
    ("whole_weights.instead", {"all-gather@fsdp": 3 + 2, "reduce-scatter@fsdp": 1}, (5 + 3) * K * K * 2 * 7 // 8),
    ("whole_weights.instead_all", {"all-gather@fsdp": 2 + 3, "reduce-scatter@fsdp": 1}, (5 + 3) * K * K * 2 * 7 // 8),
    # The same in PyTorch: weights travel as bf16, gradients as f32, one alone and two together.
    ("pytorch_whole_weights.surprising", {"all-gather@fsdp": 3, "reduce-scatter@fsdp": 2},
     (3 * 2 + 3 * 4) * K * K * 7 // 8),
    ("pytorch_whole_weights.instead", {"all-gather@fsdp": 2 + 3, "reduce-scatter@fsdp": 2},
     (5 * 2 + 3 * 4) * K * K * 7 // 8),
    # A gradient, [512, 512] bf16: four times summed and cut, or summed whole in each call; instead once, behind.
    ("gradient_accumulation.surprising", {"reduce-scatter@data": 4}, 4 * 512 * 512 * 2 * 7 // 8),
    ("gradient_accumulation.surprising_call", {"all-reduce@data": 1}, 512 * 512 * 2 * 2 * 7 // 8),
    ("gradient_accumulation.instead", {"reduce-scatter@data": 1}, 512 * 512 * 2 * 7 // 8),
    ("gradient_accumulation.instead_whole", {"reduce-scatter@data": 1}, 512 * 512 * 2 * 7 // 8),
    ("gradient_accumulation.instead_call", {}, 0),
    ("gradient_accumulation.instead_end", {"all-reduce@data": 1}, 512 * 512 * 2 * 2 * 7 // 8),
    # A half of the tokens' rows, [32, 1024] bf16, summed over model; then the other half, of [64, 1024].
    ("embedding_output.surprising", {"all-reduce@model": 1, "all-gather@data": 1},
     32 * K * 2 * 2 * 3 // 4 + 64 * K * 2 // 2),
    ("embedding_output.instead", {"all-reduce@model": 1}, 32 * K * 2 * 2 * 3 // 4),
    ("embedding_output.instead_open", {"all-reduce@model": 1}, 32 * K * 2 * 2 * 3 // 4),
    # A half of the rows, [32, 4096] bf16, made whole and sent; instead a quarter of it is sent.
    ("partial_shard_map.surprising", {"all-gather@model": 1, "collective-permute@data": 1},
     32 * 4096 * 2 * 3 // 4 + 32 * 4096 * 2),
    ("partial_shard_map.instead", {"collective-permute@data": 1}, 32 * 4096 * 2 // 4),
    ("partial_shard_map.instead_both_axes", {"collective-permute@data": 1}, 32 * 4096 * 2 // 4),
    ("partial_shard_map.instead_pinned", {"collective-permute@data": 1}, 32 * 4096 * 2 // 4),
    # The cache of eight sequences, [8, 1024, 8, 128] bf16.
    ("cache_update.surprising", {"all-gather@model": 1}, 8 * 1024 * 8 * 128 * 2 * 3 // 4),
    ("cache_update.surprising_loop", {}, 0),
    ("cache_update.instead", {}, 0),
    ("cache_update.instead_mask", {}, 0),
    ("cache_update.instead_mask_heads", {}, 0),
    # Half of the devices send their half of [8192, 512] f32; instead all receive the other half.
    ("pytorch_all_gather.surprising", {"collective-permute@batch": 1}, 8192 // 2 * 512 * 4 // 2),
    ("pytorch_all_gather.surprising_without_groups", {}, 0),
    ("pytorch_all_gather.instead", {"all-gather@batch": 1}, 8192 // 2 * 512 * 4),
    # What is split shows in the sizes: `test_a_program_that_sends_nothing_…`.
    ("pytorch_sharding_spec.surprising", {}, 0),
    ("pytorch_sharding_spec.surprising_whole", {}, 0),
    ("pytorch_sharding_spec.instead", {}, 0),
    # The product, [64, 512] bf16.
    ("mended_pytorch.multiply", {"all-reduce@model": 1}, 64 * 512 * 2 * 2 * 7 // 8),
    ("mended.convolve", {}, 0),
    # The sum, [4096, 1024] f32; the gradients together, [512, 512] f32.
    ("mended.add", {"all-gather@data": 1}, 4 * K * K * 4 * 7 // 8),
    ("mended.accumulate", {"all-reduce@data": 1}, 512 * 512 * 4 * 2 * 7 // 8),
    ("mended.shuffle", {}, 0),
    ("mended.decompose", {}, 0),
    ("mended.transform", {}, 0),
    ("mended.write", {}, 0),
    # One row of 1,024 floats to the next device.
    ("mended.roll", {"collective-permute@data": 1}, K * 4),
    # One side of the ids' comparison, [4, 1024, 4096] s32; then the mask, [4, 4096, 4096] pred.
    ("attention_mask.surprising", {"all-to-all@model": 1, "all-gather@model": 1},
     4 * K * 4 * K * 4 * 3 // 4 + 4 * 4 * K * 4 * K * 3 // 4),
    # The ids themselves, [4, 4096] s32.
    ("attention_mask.instead", {"all-gather@model": 1}, 4 * 4 * K * 4 * 3 // 4),
    # Twelve blocks of [32, 512] bf16, three on each of four devices; blocks are sent 4 + 1 + 6 + 6 + 1 + 1 + 1 times.
    ("fused_projections.surprising", {"collective-permute@model": 7}, 32 * 512 * 2 * 20 // 4),
    ("fused_projections.instead", {}, 0),
    # Keys and values of one head, [64, 128] bf16, of four devices.
    ("few_kv_heads.surprising", {"all-gather@model:sub": 2}, 2 * 64 * 128 * 2 * 3 // 4),
    ("few_kv_heads.instead", {}, 0),
    # Five times x, [8, 1024, 4096], and its products, [8, 1024, 1024], in bf16; before that eight norms.
    ("muon.surprising", {"all-reduce@fsdp": 1, "all-gather@fsdp": 10},
     5 * 8 * K * (4 * K + K) * 2 * 7 // 8 + 8 * 4 * 2 * 7 // 8),
    # There and back, an eighth of [8, 1024, 4096] f32.
    ("muon.instead", {"all-to-all@fsdp": 2}, 2 * K * 4 * K * 4 * 7 // 8),
    # Weights of [1024, 4096] bf16, in each of four microbatches three times, and two gradients; instead two of each.
    ("gathered_in_a_loop.surprising", {"all-gather@fsdp": 12, "reduce-scatter@fsdp": 8},
     4 * (3 + 2) * K * 4 * K * 2 * 7 // 8),
    ("gathered_in_a_loop.instead", {"all-gather@fsdp": 2, "reduce-scatter@fsdp": 2}, (2 + 2) * K * 4 * K * 2 * 7 // 8),
    # The table, [32768, 1024] bf16, for eight tiles or once; and the loss.
    ("gathered_in_a_loop.surprising_tiles", {"all-gather@fsdp": 8, "all-reduce@fsdp": 1},
     8 * 32 * K * K * 2 * 7 // 8 + 4 * 2 * 7 // 8),
    ("gathered_in_a_loop.instead_tiles", {"all-gather@fsdp": 1, "all-reduce@fsdp": 1},
     32 * K * K * 2 * 7 // 8 + 4 * 2 * 7 // 8),
    ("nonzero.surprising", {"all-reduce@data": 2, "collective-permute@data": 8, "all-reduce@data:sub": 3}, None),
    ("nonzero.instead", {}, 0),
    # 65,536 keys, f32, and as many rows of 256; instead the keys, and an eighth of the rows there and back.
    ("sorted_by.surprising", {"all-gather@data": 2}, 64 * K * (1 + 256) * 4 * 7 // 8),
    ("sorted_by.instead", {"all-gather@data": 1, "all-to-all@data": 2},
     64 * K * 4 * 7 // 8 + 2 * 8 * K * 256 * 4 * 7 // 8),
    # The Jacobian, [1024, 512, 32] f32.
    ("gradients_of_each_row.surprising", {"all-reduce@data": 1}, K * 512 * 32 * 4 * 2 * 7 // 8),
    # Rows of a device, [128, 512] bf16, nine times; what starts the backward pass, [1024, 32] f32, twice.
    ("gradients_of_each_row.surprising_pinned", {"collective-permute@data": 9, "all-gather@data": 2},
     9 * 128 * 512 * 2 + 2 * K * 32 * 4 * 7 // 8),
    ("gradients_of_each_row.instead", {}, 0),
    # Of counts, [64, 1024, 64] u32 by four of eight devices and a half of that by four, three and three; of bits two
    # halves and a whole, exchanged.
    ("dropout.surprising", {"collective-permute@data": 4, "all-to-all@data": 3},
     (64 * 4 + 32 * (4 + 3 + 3)) * K * 64 * 4 // 8 + (32 + 32 + 64) * K * 64 * 4 * 7 // 8),
    ("dropout.instead", {}, 0),
    # A row of 1,024 floats to both sides, in four steps.
    ("stencil.surprising", {"collective-permute@x": 8}, 4 * 2 * K * 4),
    # In four steps three rows, by seven of eight devices; four times the update and once the grid, [8192, 1024] f32.
    ("stencil.surprising_interior", {"collective-permute@x": 8, "all-gather@x": 5},
     4 * 3 * K * 4 * 7 // 8 + 5 * 8 * K * K * 4 * 7 // 8),
    # Four rows to both sides, by seven of eight devices.
    ("stencil.instead", {"collective-permute@x": 2}, 2 * 4 * K * 4 * 7 // 8),
    # Of 32 rows on four devices the largest, bf16, and its place, s32; and the logits, [32, 65536] bf16.
    ("logits_returned.surprising", {"all-gather@model": 3}, 32 * 4 * (2 + 4) * 3 // 4 + 32 * 64 * K * 2 * 3 // 4),
    ("logits_returned.instead", {"all-gather@model": 2}, 32 * 4 * (2 + 4) * 3 // 4),
    ("logits_returned.instead_split", {"all-gather@model": 2}, 32 * 4 * (2 + 4) * 3 // 4),
    # The tokens of a device, [4, 256, 512] bf16.
    ("flattened_tokens.surprising", {"all-to-all@seq": 1}, 4 * 256 * 512 * 2 * 3 // 4),
    ("flattened_tokens.instead", {}, 0),
    # [8, 1024, 2048] bf16, in halves or whole.
    ("halves_of_a_weight.surprising", {"all-gather@fsdp": 2}, 2 * 8 * K * K * 2 * 7 // 8),
    ("halves_of_a_weight.instead", {"all-gather@fsdp": 1}, 8 * K * 2 * K * 2 * 7 // 8),
    ("sum_of_copies.surprising", {}, 0),
    ("sum_of_copies.instead", {"all-reduce@data": 1}, 4 * 2 * 7 // 8),
    # Of half the devices a part of the ids, [8, 256] s32, and of rows, [8, 256, 512] f32; half of all ids gathered,
    # [16, 512], and half of all rows summed; instead a half each, the rows scattered.
    ("embedding_same_axis.surprising",
     {"collective-permute@data,model": 2, "all-gather@model": 1, "all-reduce@model": 1},
     8 * 256 * (1 + 512) * 4 // 2 + 16 * 512 * 4 * 3 // 4 + 16 * 512 * 512 * 4 * 2 * 3 // 4),
    ("embedding_same_axis.instead", {"all-gather@model": 1, "reduce-scatter@model": 1},
     8 * K * 4 * 3 // 4 + 8 * K * 512 * 4 * 3 // 4),
    # The weight and its gradient, [4096, 1024] bf16.
    ("gradient_not_split.surprising", {"all-gather@fsdp": 1, "all-reduce@fsdp": 1}, 4 * K * K * 2 * (1 + 2) * 7 // 8),
    ("gradient_not_split.instead", {"all-gather@fsdp": 1, "reduce-scatter@fsdp": 1}, 4 * K * K * 2 * (1 + 1) * 7 // 8),
    # [512, 512] f32, of one microbatch or of four.
    ("gradient_every_step.surprising", {"all-reduce@data": 1}, 512 * 512 * 4 * 2 * 7 // 8),
    ("gradient_every_step.instead", {"all-reduce@data": 1}, 512 * 512 * 4 * 2 * 7 // 8),
    ("mended_pytorch_linear.forward", {}, 0),
    # The gradient, [512, 512] bf16.
    ("mended_pytorch_linear.backward", {"all-reduce@data,seq": 1}, 512 * 512 * 2 * 2 * 7 // 8),
    ("mended_two_axes.initialize", {}, 0),
    ("mended_two_axes.enter", {}, 0),
    ("mended_two_axes.scale", {}, 0),
    # The ids of four sequences, [4, 4096] s32.
    ("mended_two_axes.mask", {"all-gather@y": 1}, 4 * 4 * K * 4 * 3 // 4),
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("surprises")


@pytest.fixture(scope="module")
def tables(folder):
    return compile_examples(folder)


def test_every_example_emits_what_is_said_of_it(tables):
    emits = [each for each in EMITS if TORCHAX_IS_HERE or not each[0].startswith(TORCHAX)]
    assert sorted(tables) == sorted(name for name, _, _ in emits)
    for name, expected, step_bytes in emits:
        assert count_collectives(tables[name], count="executions") == expected, name
        if step_bytes is not None:
            assert tables[name].step_wire_bytes == step_bytes, name


def test_fsdp_gathers_activations_where_it_should_gather_weights(tables):
    shapes = {which: [row.operands[0].shape for row in tables[f"fsdp.{which}"]] for which in ("surprising", "instead")}
    assert shapes == {"surprising": [(8, 128, 1024), (8, 128, 4096)], "instead": [(4096, 1024), (1024, 4096)]}


def test_the_places_of_a_top_k_along_a_split_dim_are_zeros(tables, folder):
    """So the table tells: one gather, of values.  If this fails, the compiler has been mended, and the example goes."""
    text = (folder / "top_k.surprising.hlo").read_text()
    (root,) = re.findall(r"^  ROOT %\S+ = \(f32\[64,4\]\S+ s32\[64,4\]\S+ tuple\(%\S+, %(\S+)\)", text, re.MULTILINE)
    (places,) = re.findall(rf"^  %{re.escape(root)} = s32\[64,4\]\S+ broadcast\(%(\S+)\)", text, re.MULTILINE)
    assert re.search(rf"^  %{re.escape(places)} = s32\[\]\S* constant\(0\)", text, re.MULTILINE)


def test_a_cache_that_is_written_by_index_and_then_read_is_copied_whole_in_every_layer(tables, folder):
    """To the layout of the read and back: four layers, and of 2 heads or 1 on a device the numbers, merged or apart."""
    loops = ("surprising", "instead", "instead_heads", "instead_one_head")
    copies = {which: list_loop_copies((folder / f"cache.{which}.hlo").read_text()) for which in loops}
    copied_whole = {which: [shape for shape in shapes if shape.startswith("4,")] for which, shapes in copies.items()}
    assert copied_whole == {
        "surprising": ["4,8,1024,256"] * 2,
        "instead": [],
        "instead_heads": [],
        "instead_one_head": [],
    }
    assert copies["instead"].count("1,8,1024,256") == 1
    assert " while(" not in (folder / "cache.instead_unrolled.hlo").read_text()


def test_a_sampler_gathers_at_the_pin_and_at_the_top_k(tables):
    assert [row.op_name.rpartition("/")[2] for row in tables["sampling.surprising"]] == ["sharding_constraint", "top_k"]


def test_weights_come_out_of_the_first_step_as_the_optimizer_is_split(folder):
    results = {
        which: _entry(folder, f"optimizer_state.{which}").rpartition("->")[2]
        for which in ("surprising_first_step", "instead")
    }
    shapes = {which: re.findall(r"bf16\[([\d,]+)\]", each) for which, each in results.items()}
    assert shapes == {"surprising_first_step": ["512,256", "512,256"], "instead": ["1024,1024", "512,256"]}


def test_slices_at_places_of_their_own_are_written_in_a_loop(tables, folder):
    texts = {name: (folder / f"{name}.hlo").read_text() for name in tables if name.startswith("cache_update.")}
    loops = {name.partition(".")[2] for name, text in texts.items() if " while(" in text}
    scatters = {name.partition(".")[2] for name, text in texts.items() if " scatter(" in text}
    assert (loops, scatters) == ({"surprising", "surprising_loop"}, {"instead"})


def test_a_gather_between_replicas_is_a_padding_with_zeros(folder):
    text = (folder / "pytorch_all_gather.surprising.hlo").read_text()
    assert _entry(folder, "pytorch_all_gather.surprising").endswith("->f32[8192,512]{1,0:T(8,128)}")
    assert re.search(r" pad\(%\S+ %\S+\), .*aten__constant_pad_nd", text)
    assert " all-reduce(" not in text


def test_a_program_that_sends_nothing_is_split_or_does_all_of_the_work_everywhere(tables, folder):
    rows, notes = {}, {}
    for which in ("surprising", "surprising_whole", "instead"):
        text = (folder / f"pytorch_sharding_spec.{which}.hlo").read_text()
        rows[which] = set(re.findall(r"f32\[(\d+),256\]\S* (?:convolution|dot)\(", text))
        notes[which] = any("nothing is split" in note for note in tables[f"pytorch_sharding_spec.{which}"].notes)
    assert rows == {"surprising": {"128"}, "surprising_whole": {"1024"}, "instead": {"128"}}
    assert notes == {"surprising": False, "surprising_whole": True, "instead": False}


def _entry(folder, name):
    """What goes into a program and what comes out of it: `(…)->(…)`."""
    text = (folder / f"{name}.hlo").read_text()
    return re.search(r"entry_computation_layout=\{(.*?)\}, allow", text)[1]


@pytest.mark.skipif(not TORCHAX_IS_HERE, reason="torchax is not installed")
def test_the_page_is_made_from_what_the_examples_emit(tables):
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert readme == page(tables), "write it anew: python -m tests.surprises"
