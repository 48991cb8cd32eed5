"""The contract of sequence, expert and context parallelism, and of their products, worked out by hand."""

import pytest

from compare.contract.reference_algorithms import required_rows
from meshes.case import Case

KIB, MIB = 2**10, 2**20
LLAMA, MIXTRAL, QWEN = "llama-3.1-8b", "mixtral-8x7b", "qwen3-30b-a3b"

# Both dense Llama-3.1-8B and Mixtral-8x7B: L = 32, D = 4096, b = 2, 32 heads and 8 KV heads of 128.
# (model, mesh, B, m, phase): (scope, kind@axis): (executions, payload, wire, step)
TABLES = {
    # t = 8·1024/4 = 2048: 16 MiB, 3/4 on the wire.  embed: 64 MiB · 3/4 on half of the devices.  A shift of 16/4 MiB,
    # from half.  The head: 8·4096·2 = 64 KiB · 3/4 on half.  Winners: 4·8·6 = 192 · 3/4 on half.
    (LLAMA, "tp4pp2+sp", 8, 4, "prefill"): {
        ("layer.attention.qkv", "all-gather@tp"): (64, 16 * MIB, 12 * MIB, 768 * MIB),
        ("layer.attention.out", "reduce-scatter@tp"): (64, 16 * MIB, 12 * MIB, 768 * MIB),
        ("layer.mlp.up", "all-gather@tp"): (64, 16 * MIB, 12 * MIB, 768 * MIB),
        ("layer.mlp.down", "reduce-scatter@tp"): (64, 16 * MIB, 12 * MIB, 768 * MIB),
        ("embed", "reduce-scatter@tp"): (1, 64 * MIB, 24 * MIB, 24 * MIB),
        ("pipeline.shift", "collective-permute@pp"): (4, 4 * MIB, 2 * MIB, 8 * MIB),
        ("head", "all-gather@tp"): (1, 65_536, 24_576, 24_576),
        ("sample", "all-gather@tp"): (1, 192, 72, 72),
        ("pipeline.collect", "collective-permute@pp"): (1, 32, 16, 16),
    },
    # Four tokens can: 4·4096·2 = 32 KiB, 3/4 on the wire; embed 64 KiB · 3/4 · 1/2; a shift of 32/4 KiB from half.
    (LLAMA, "tp4pp2+sp", 8, 2, "decode"): {
        ("layer.attention.qkv", "all-gather@tp"): (32, 32 * KIB, 24 * KIB, 768 * KIB),
        ("layer.attention.out", "reduce-scatter@tp"): (32, 32 * KIB, 24 * KIB, 768 * KIB),
        ("layer.mlp.up", "all-gather@tp"): (32, 32 * KIB, 24 * KIB, 768 * KIB),
        ("layer.mlp.down", "reduce-scatter@tp"): (32, 32 * KIB, 24 * KIB, 768 * KIB),
        ("embed", "reduce-scatter@tp"): (1, 64 * KIB, 24 * KIB, 24 * KIB),
        ("pipeline.shift", "collective-permute@pp"): (2, 8 * KIB, 4 * KIB, 8 * KIB),
        ("head", "all-gather@tp"): (1, 64 * KIB, 24 * KIB, 24 * KIB),
        ("sample", "all-gather@tp"): (1, 192, 72, 72),
        ("pipeline.collect", "collective-permute@pp"): (1, 32, 16, 16),
    },
    # t = 8·256 = 2048: 16 MiB, 2·1/2 on the wire.  Three hops of 2·2048·4·128·2 = 4 MiB.  Winners 2·8·6 = 96 · 1/2 on
    # one of four ranks; ids 8·4 · 3/4.
    (LLAMA, "cp4tp2", 8, 1, "prefill"): {
        ("layer.attention.core", "collective-permute@cp"): (96, 4 * MIB, 4 * MIB, 384 * MIB),
        ("layer.attention.out", "all-reduce@tp"): (32, 16 * MIB, 16 * MIB, 512 * MIB),
        ("layer.mlp.down", "all-reduce@tp"): (32, 16 * MIB, 16 * MIB, 512 * MIB),
        ("embed", "all-reduce@tp"): (1, 16 * MIB, 16 * MIB, 16 * MIB),
        ("sample", "all-gather@tp"): (1, 96, 12, 12),
        ("pipeline.collect", "collective-broadcast@cp"): (1, 32, 24, 24),
    },
    # t = 8 on every rank: 64 KiB.  Merged: 8·16·130·4 = 66,560 · 2·3/4.
    (LLAMA, "cp4tp2", 8, 1, "decode"): {
        ("layer.attention.core", "all-reduce@cp"): (32, 66_560, 99_840, 3_194_880),
        ("layer.attention.out", "all-reduce@tp"): (32, 64 * KIB, 64 * KIB, 2 * MIB),
        ("layer.mlp.down", "all-reduce@tp"): (32, 64 * KIB, 64 * KIB, 2 * MIB),
        ("embed", "all-reduce@tp"): (1, 64 * KIB, 64 * KIB, 64 * KIB),
        ("sample", "all-gather@tp"): (1, 96, 48, 48),
    },
    # t = 8·512/4 = 1024: 8 MiB; 16 layers · 4.  A hop of 2·1024·4·128·2 = 2 MiB.  embed 32 MiB on half.  Winners
    # 2·8·6 · 1/2 on a quarter; ids 32 from a quarter, then 32 · 1/2 on half.
    (LLAMA, "pp2cp2tp2", 8, 4, "prefill"): {
        ("layer.attention.core", "collective-permute@cp"): (64, 2 * MIB, 2 * MIB, 128 * MIB),
        ("layer.attention.out", "all-reduce@tp"): (64, 8 * MIB, 8 * MIB, 512 * MIB),
        ("layer.mlp.down", "all-reduce@tp"): (64, 8 * MIB, 8 * MIB, 512 * MIB),
        ("embed", "all-reduce@tp"): (1, 32 * MIB, 16 * MIB, 16 * MIB),
        ("pipeline.shift", "collective-permute@pp"): (4, 8 * MIB, 4 * MIB, 16 * MIB),
        ("sample", "all-gather@tp"): (1, 96, 12, 12),
        ("pipeline.collect", "collective-permute@pp"): (1, 32, 8, 8),
        ("pipeline.collect", "collective-broadcast@cp"): (1, 32, 8, 8),
    },
    # B_local = 2, t = 2048: 16 MiB.  C = ⌈1.25·2·1024/8⌉ = 320; 2 groups · 8 · 320 · 8 KiB = 40 MiB, 3/4: 30 MiB.
    (MIXTRAL, "tp2ep4", 8, 1, "prefill"): {
        ("layer.attention.out", "all-reduce@tp"): (32, 16 * MIB, 16 * MIB, 512 * MIB),
        ("layer.moe.dispatch", "all-to-all@ep"): (32, 40 * MIB, 30 * MIB, 960 * MIB),
        ("layer.moe.combine", "all-to-all@ep"): (32, 40 * MIB, 30 * MIB, 960 * MIB),
        ("layer.moe.combine", "all-reduce@tp"): (32, 16 * MIB, 16 * MIB, 512 * MIB),
        ("embed", "all-reduce@tp"): (1, 16 * MIB, 16 * MIB, 16 * MIB),
        ("sample", "all-gather@tp"): (1, 24, 12, 12),
    },
    # One group of 2 tokens: C = ⌈1.25·2·2/8⌉ = 1; 8 · 8 KiB = 64 KiB, 3/4.
    (MIXTRAL, "tp2ep4", 8, 1, "decode"): {
        ("layer.attention.out", "all-reduce@tp"): (32, 16 * KIB, 16 * KIB, 512 * KIB),
        ("layer.moe.dispatch", "all-to-all@ep"): (32, 64 * KIB, 48 * KIB, 1536 * KIB),
        ("layer.moe.combine", "all-to-all@ep"): (32, 64 * KIB, 48 * KIB, 1536 * KIB),
        ("layer.moe.combine", "all-reduce@tp"): (32, 16 * KIB, 16 * KIB, 512 * KIB),
        ("embed", "all-reduce@tp"): (1, 16 * KIB, 16 * KIB, 16 * KIB),
        ("sample", "all-gather@tp"): (1, 24, 12, 12),
    },
    # B_local = 4, one sequence a microbatch: 20 MiB, 16·4 times.  Shift: 8 MiB from half; ids 4·4 from half.
    (MIXTRAL, "pp2ep4", 16, 4, "prefill"): {
        ("layer.moe.dispatch", "all-to-all@ep"): (64, 20 * MIB, 15 * MIB, 960 * MIB),
        ("layer.moe.combine", "all-to-all@ep"): (64, 20 * MIB, 15 * MIB, 960 * MIB),
        ("pipeline.shift", "collective-permute@pp"): (4, 8 * MIB, 4 * MIB, 16 * MIB),
        ("pipeline.collect", "collective-permute@pp"): (1, 16, 8, 8),
    },
    # B_local = 2, t = 2048: 16 MiB · 1/2; the tokens of a layer are gathered for the router and its experts.
    (MIXTRAL, "ep4tp2+sp", 8, 1, "prefill"): {
        ("layer.attention.qkv", "all-gather@tp"): (32, 16 * MIB, 8 * MIB, 256 * MIB),
        ("layer.attention.out", "reduce-scatter@tp"): (32, 16 * MIB, 8 * MIB, 256 * MIB),
        ("layer.moe.route", "all-gather@tp"): (32, 16 * MIB, 8 * MIB, 256 * MIB),
        ("layer.moe.dispatch", "all-to-all@ep"): (32, 40 * MIB, 30 * MIB, 960 * MIB),
        ("layer.moe.combine", "all-to-all@ep"): (32, 40 * MIB, 30 * MIB, 960 * MIB),
        ("layer.moe.combine", "reduce-scatter@tp"): (32, 16 * MIB, 8 * MIB, 256 * MIB),
        ("embed", "reduce-scatter@tp"): (1, 16 * MIB, 8 * MIB, 8 * MIB),
        ("head", "all-gather@tp"): (1, 16 * KIB, 8 * KIB, 8 * KIB),
        ("sample", "all-gather@tp"): (1, 24, 12, 12),
    },
    # Groups of half a sequence: C = ⌈1.25·2·512/8⌉ = 160; 2 · 8 · 160 · 8 KiB = 20 MiB.  A hop of 2·1024·8·128·2.
    (MIXTRAL, "cp2ep4", 8, 1, "prefill"): {
        ("layer.attention.core", "collective-permute@cp"): (32, 4 * MIB, 4 * MIB, 128 * MIB),
        ("layer.moe.dispatch", "all-to-all@ep"): (32, 20 * MIB, 15 * MIB, 480 * MIB),
        ("layer.moe.combine", "all-to-all@ep"): (32, 20 * MIB, 15 * MIB, 480 * MIB),
        ("pipeline.collect", "collective-broadcast@cp"): (1, 8, 4, 4),
    },
    # 24 layers, D = 2048, 4 of 60 experts beside a shared feed-forward.  t = 4096: 16 MiB · 2·1/2.
    # C = ⌈1.25·4·1024/60⌉ = ⌈85.3⌉ = 86; 4 · 60 · 86 · 4096 = 84,541,440 · 1/2.  Winners 2·4·6 = 48.
    ("qwen1.5-moe-a2.7b", "tp2ep2", 8, 1, "prefill"): {
        ("layer.attention.out", "all-reduce@tp"): (24, 16 * MIB, 16 * MIB, 384 * MIB),
        ("layer.moe.dispatch", "all-to-all@ep"): (24, 84_541_440, 42_270_720, 1_014_497_280),
        ("layer.moe.combine", "all-to-all@ep"): (24, 84_541_440, 42_270_720, 1_014_497_280),
        ("layer.moe.combine", "all-reduce@tp"): (24, 16 * MIB, 16 * MIB, 384 * MIB),
        ("layer.mlp.down", "all-reduce@tp"): (24, 16 * MIB, 16 * MIB, 384 * MIB),
        ("embed", "all-reduce@tp"): (1, 16 * MIB, 16 * MIB, 16 * MIB),
        ("sample", "all-gather@tp"): (1, 48, 24, 24),
    },
}


@pytest.mark.parametrize(("model", "mesh", "batch", "m", "phase"), TABLES)
def test_the_contract_is_the_table_worked_out_by_hand(model, mesh, batch, m, phase):
    rows = required_rows(Case.read(mesh, model_name=model, batch=batch, microbatches=m, phases=(phase,)))
    contract = {
        (row.scope, f"{row.kind}@{row.axes}"): (row.executions, row.payload_bytes, row.wire_bytes, row.step_wire_bytes)
        for row in rows
    }
    assert contract == TABLES[model, mesh, batch, m, phase]
    assert len(rows) == len(contract)


def rows_of(mesh, **options):
    return {(row.scope, row.axes): row for row in required_rows(Case.read(mesh, **{"phases": ("prefill",), **options}))}


def test_an_expert_with_room_for_all_tokens_is_sent_as_many_slots():
    # C = G = 1024: 8 · 1024 · 8 KiB, where 1.25 times an even share took 20 MiB
    row = rows_of("dp2ep4", model_name=MIXTRAL, capacity=None)["layer.moe.dispatch", "ep"]
    assert row.payload_bytes == 64 * MIB
    assert "without empty slots t·k·D·b = 1024·2·4096·2" in row.formula


def test_copies_of_kv_heads_go_around_the_ring_and_cost_nothing_else():
    # 4 KV heads over 8 shards: one each, in two copies.  t = 8·512 = 4096: 2·4096·1·128·2 = 2 MiB
    row = rows_of("cp2tp8", model_name=QWEN)["layer.attention.core", "cp"]
    assert (row.executions, row.payload_bytes) == (48, 2 * MIB)
    plain, copied = (rows_of(mesh, model_name=QWEN) for mesh in ("tp4@v5e:2x2", "tp8"))
    assert set(plain) == set(copied)
    assert all(plain[place].payload_bytes == copied[place].payload_bytes for place in plain if place[0] != "sample")


def test_who_chooses_is_the_last_stage_and_in_prefill_the_last_part_of_a_sequence():
    # ids row-major over dp, pp, cp, ep, tp: stages 0-3 and 4-7, of each two ranks of two shards
    assert rows_of("pp2cp2tp2")["sample", "tp"].devices == {6, 7}
    assert rows_of("pp2cp2tp2")["pipeline.collect", "pp"].devices == {6, 7}
    assert rows_of("pp2cp2tp2")["pipeline.collect", "cp"].devices == {0, 1, 2, 3}
    assert rows_of("pp2cp2tp2", phases=("decode",))["sample", "tp"].devices == {4, 5, 6, 7}
    assert rows_of("cp2ep2tp2", model_name=MIXTRAL)["sample", "tp"].devices == {4, 5, 6, 7}
    assert rows_of("dp2cp2tp2")["sample", "tp"].devices == {2, 3, 6, 7}


def test_a_merge_of_softmax_parts_is_in_float32_and_a_ring_knows_its_hops():
    assert rows_of("cp4tp2", phases=("decode",))["layer.attention.core", "cp"].float_bytes == 4
    assert rows_of("cp4tp2")["layer.attention.core", "cp"].float_bytes == 2
    assert rows_of("cp4tp2")["layer.attention.core", "cp"].hops == 3


def test_shared_experts_read_the_tokens_that_the_router_read():
    rows = rows_of("ep2tp2+sp", model_name="qwen1.5-moe-a2.7b")
    assert [scope for (scope, axis), row in rows.items() if row.kind == "all-gather" and axis == "tp"] == [
        "layer.attention.qkv",
        "layer.moe.route",
        "head",
        "sample",
    ]
    assert rows["layer.mlp.down", "tp"].kind == rows["layer.moe.combine", "tp"].kind == "reduce-scatter"


def test_experts_alone_over_tp_are_summed_as_tokens():
    rows = rows_of("tp8", model_name=MIXTRAL)
    assert list(rows) == [("layer.attention.out", "tp"), ("layer.moe.combine", "tp"), ("embed", "tp"), ("sample", "tp")]
    # t = 8192: 64 MiB · 7/4
    assert rows["layer.moe.combine", "tp"].step_wire_bytes == 32 * 112 * MIB


@pytest.mark.parametrize("mesh", ["pp2cp2tp2", "tp4pp2+sp", "pp2cp2tp2+sp"])
def test_the_total_of_a_prefill_does_not_depend_on_the_microbatches(mesh):
    totals = {sum(row.step_wire_bytes for row in rows_of(mesh, microbatches=m).values()) for m in (1, 2, 4)}
    assert len(totals) == 1
