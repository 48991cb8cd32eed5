"""The least that a device computes in a step, by hand from the published shapes."""

import pytest

from compare.contract.floor import Least, count_floor
from compare.contract.useful_flops import count_useful_flops
from meshes.case import Case

ATTENTION = 4096 * (4096 + 1024 + 1024) + 4096 * 4096
MLP = 3 * 4096 * 14336
NORMS = 2 * 4096
HEAD = 4096 * 128256
"""Llama-3.1-8B: q, k, v and out; gate, up and down; two norms; the head.  Numbers of bf16, two bytes each."""


def floor(mesh, phase, **more):
    return count_floor(Case.read(mesh, **{"phases": (phase,), "batch": 8, "seq": 1024} | more))


def total(found):
    return sum(part.num_bytes for part in found.values())


def test_decode_reads_the_weights_the_cache_and_writes_one_position():
    """8B on tp8: an eighth of each matrix, the norms whole, one KV head of 8 sequences of 1024, 8 rows of the table."""
    weights = 2 * (32 * ((ATTENTION + MLP) / 8 + NORMS) + 4096 + HEAD / 8)
    cache = 8 * (1024 + 1) * 32 * 2 * 128 * 2
    rows = 8 * 4096 * 2 / 8
    found = floor("tp8@v6e:2x4", "decode")
    assert total(found) == weights + cache + rows
    assert found["layer.attention.core"].num_bytes == cache
    assert found["head"] == Least(2 * HEAD / 8, 2 * 8 * HEAD / 8)


def test_prefill_writes_the_cache_and_half_of_the_pairs_are_masked():
    """A token attends to itself and to those before it: 1024 · 1025 / 2 pairs a sequence."""
    found = floor("tp8", "prefill")
    weights = 2 * (32 * ((ATTENTION + MLP) / 8 + NORMS) + 4096 + HEAD / 8)
    assert total(found) == weights + 8 * 1024 * 32 * 2 * 128 * 2 + 8 * 1024 * 4096 * 2 / 8
    products = 2 * 32 * (ATTENTION + MLP) * 8 * 1024 + 2 * 8 * HEAD
    pairs = 8 * 1024 * 1025 // 2
    assert sum(part.flops for part in found.values()) == (products + 32 * 2 * 2 * pairs * 32 * 128) / 8


@pytest.mark.parametrize("mesh", ["tp8", "pp2tp4", "cp2tp4", "dp2tp4"])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_its_flops_are_never_more_than_the_useful_ones(mesh, phase):
    case = Case.read(mesh, phases=(phase,), batch=8, seq=1024)
    least = sum(part.flops for part in count_floor(case).values())
    assert 0.95 < least * 8 / count_useful_flops(case) <= 1


def test_kv_heads_that_tp_copies_are_read_by_each_device_and_their_weights_once():
    """tp16 and 8 KV heads: a device has a whole head of the cache, and half a head's columns of k and v."""
    found = floor("tp16@v6e:4x4", "decode")
    assert found["layer.attention.core"].num_bytes == 8 * 1025 * 32 * 2 * 128 * 2
    assert found["layer.attention.qkv"].num_bytes == 2 * 32 * 4096 * (4096 + 1024 + 1024) / 16


def test_a_stage_reads_its_weights_for_each_microbatch_but_for_what_can_stay_on_chip():
    """pp2tp4: 16 layers, a quarter of each; 4 microbatches; 160 MiB of any generation lie outside its HBM.

    The head and the rows of the table are on one stage of two; the cache of all microbatches is read once.
    """
    found = floor("pp2tp4@v5e:2x4", "decode")
    layers = 2 * 16 * ((ATTENTION + MLP) / 4 + NORMS)
    again = 3 * (layers - 160 * 2**20)
    cache = 8 * 1025 * 16 * 2 * 2 * 128 * 2
    last, first = 2 * (HEAD / 4 + 4096) / 2, 8 * 4096 * 2 / 4 / 2
    assert total(found) == pytest.approx(layers + again + cache + last + first, rel=1e-12)


def test_a_stage_that_fits_on_chip_reads_its_weights_once():
    """1B on pp2tp8: 8 layers, an eighth of each, are 118 MB."""
    layer = 2048 * (2048 + 512 + 512) + 2048 * 2048 + 3 * 2048 * 8192
    found = floor("pp2tp8", "decode", model_name="llama-3.2-1b")
    assert found["layer.mlp.down"].num_bytes == 2 * 8 * 2048 * 8192 / 8
    assert sum(found[scope].num_bytes for scope in found if scope.startswith("layer.") and "core" not in scope) == (
        2 * 8 * layer / 8
    )


def test_cp_splits_the_positions_of_the_cache_and_a_prompts_head_is_on_its_last_rank():
    decode, prefill = (floor("cp2tp4", phase) for phase in ("decode", "prefill"))
    assert decode["layer.attention.core"].num_bytes == 8 * 1025 / 2 * 32 * 2 * 2 * 128 * 2
    assert prefill["layer.attention.core"].num_bytes == 8 * 512 * 32 * 2 * 2 * 128 * 2
    assert decode["head"].num_bytes == 2 * HEAD / 4
    assert prefill["head"].num_bytes == 2 * HEAD / 4 / 2
    assert decode["layer.mlp.up"].num_bytes == prefill["layer.mlp.up"].num_bytes == 2 * 32 * 2 * 4096 * 14336 / 4


def test_dp_divides_the_batch_and_no_weight():
    found = floor("dp4tp2", "decode")
    assert found["layer.attention.core"].num_bytes == 2 * 1025 * 32 * 2 * 4 * 128 * 2
    assert found["layer.mlp.down"].num_bytes == 2 * 32 * 4096 * 14336 / 2


def test_experts_count_that_even_routing_can_choose():
    """Qwen3-30B-A3B on ep8: 8 tokens choose 8 of 128 experts each, so 64; a device has an eighth of them.

    48 layers; an expert is 3 matrices of 2048 × 768; the router has a column for each expert.
    """
    found = floor("ep8", "decode", model_name="qwen3-30b-a3b")
    assert found["layer.moe.experts"] == Least(2 * 48 * 64 / 8 * 3 * 2048 * 768, 2 * 48 * 8 * 8 * 3 * 2048 * 768 / 8)
    assert found["layer.moe.route"].num_bytes == 2 * 48 * 2048 * 128


def test_many_tokens_choose_every_expert():
    """Mixtral: 8 experts, of which 8 tokens can choose 16 times; tp8 splits each."""
    found = floor("tp8", "decode", model_name="mixtral-8x7b")
    assert found["layer.moe.experts"].num_bytes == 2 * 32 * 8 * 3 * 4096 * 14336 / 8


def test_experts_compute_no_more_tokens_than_they_have_slots_for():
    """capacity 0.5: half of an even share of a sequence's 1024 · 2 / 8 tokens at each of 8 experts, 128 slots."""
    found = floor("ep8", "prefill", model_name="mixtral-8x7b", capacity=0.5)
    assert found["layer.moe.experts"].flops == 2 * 32 * 8 * 8 * 128 * 3 * 4096 * 14336 / 8


def test_what_a_plan_leaves_whole_is_read_whole():
    case = Case.read("meshes/specs/tp8-vocab-whole.toml", phases=("decode",), batch=8, seq=1024)
    found = count_floor(case)
    assert found["head"].num_bytes == 2 * case.model.embed * case.model.vocab
    assert found["embed"].num_bytes == 8 * case.model.embed * 2
