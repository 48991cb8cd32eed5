"""The contract against tables worked out by hand, from the formulas of docs/definitions.md and nothing else."""

import pytest

from compare.contract.reference_algorithms import required_rows
from meshes.case import Case

D = 4096  # of Llama-3.1-8B; 32 layers, bf16: 2 bytes
MIB = 2**20

# (mesh, m, phase): scope -> (kind@axes, executions, payload, wire, step)
TABLES = {
    # t = 8·1024/4 = 2048 tokens a microbatch; t·D·b = 16 MiB
    ("tp4pp2", 4, "prefill"): {
        "layer.attention.out": ("all-reduce@tp", 64, 16_777_216, 25_165_824, 1_610_612_736),
        "layer.mlp.down": ("all-reduce@tp", 64, 16_777_216, 25_165_824, 1_610_612_736),
        "embed": ("all-reduce@tp", 1, 67_108_864, 50_331_648, 50_331_648),
        "pipeline.shift": ("collective-permute@pp", 4, 16_777_216, 8_388_608, 33_554_432),
        "sample": ("all-gather@tp", 1, 192, 72, 72),
        "pipeline.collect": ("collective-permute@pp", 1, 32, 16, 16),
    },
    ("tp4pp2", 4, "decode"): {
        "layer.attention.out": ("all-reduce@tp", 64, 16_384, 24_576, 1_572_864),
        "layer.mlp.down": ("all-reduce@tp", 64, 16_384, 24_576, 1_572_864),
        "embed": ("all-reduce@tp", 1, 65_536, 49_152, 49_152),
        "pipeline.shift": ("collective-permute@pp", 4, 16_384, 8_192, 32_768),
        "sample": ("all-gather@tp", 1, 192, 72, 72),
        "pipeline.collect": ("collective-permute@pp", 1, 32, 16, 16),
    },
    # t = 8/2 = 4 tokens: 4·4096·2 = 32768
    ("pp4tp2", 2, "decode"): {
        "layer.attention.out": ("all-reduce@tp", 16, 32_768, 32_768, 524_288),
        "layer.mlp.down": ("all-reduce@tp", 16, 32_768, 32_768, 524_288),
        "embed": ("all-reduce@tp", 1, 65_536, 16_384, 16_384),
        "pipeline.shift": ("collective-permute@pp", 2, 32_768, 24_576, 49_152),
        "sample": ("all-gather@tp", 1, 96, 12, 12),
        "pipeline.collect": ("collective-permute@pp", 1, 32, 8, 8),
    },
    # one microbatch: everything at once, the same bytes a step
    ("dp2pp2tp2", 1, "prefill"): {
        "layer.attention.out": ("all-reduce@tp", 16, 32 * MIB, 32 * MIB, 512 * MIB),
        "layer.mlp.down": ("all-reduce@tp", 16, 32 * MIB, 32 * MIB, 512 * MIB),
        "embed": ("all-reduce@tp", 1, 32 * MIB, 16 * MIB, 16 * MIB),
        "pipeline.shift": ("collective-permute@pp", 1, 32 * MIB, 16 * MIB, 16 * MIB),
        "sample": ("all-gather@tp", 1, 48, 12, 12),
        "pipeline.collect": ("collective-permute@pp", 1, 16, 8, 8),
    },
}


@pytest.mark.parametrize(("mesh", "m", "phase"), TABLES)
def test_the_contract_is_the_table_worked_out_by_hand(mesh, m, phase):
    rows = required_rows(Case.read(mesh, microbatches=m, phases=(phase,)))
    contract = {
        row.scope: (f"{row.kind}@{row.axes}", row.executions, row.payload_bytes, row.wire_bytes, row.step_wire_bytes)
        for row in rows
    }
    assert contract == TABLES[mesh, m, phase]
    assert len(rows) == len(contract)


def test_the_totals_of_the_published_check_table():
    case = Case.read("tp4pp2")
    totals = [sum(row.step_wire_bytes for row in required_rows(case.at(phases=(phase,)))) for phase in case.phases]
    assert totals == [3_305_111_640, 3_227_736]


def test_llama_70b_on_32_chips_by_hand():
    rows = required_rows(Case.read("tp8pp4@v5p:2x4x4", model_name="llama-3.1-70b", phases=("prefill",)))
    # 80/4·4 = 80 times 2048·8192·2 = 32 MiB at 7/4; embed 128 MiB·7/4·1/4; shift 4·32 MiB·3/4; 8·8·6·7/8/4; 32/4
    assert [row.step_wire_bytes for row in rows] == [80 * 56 * MIB, 80 * 56 * MIB, 56 * MIB, 96 * MIB, 84, 8]


@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("mesh", ["tp4pp2", "pp4tp2", "dp2pp2tp2"])
def test_the_total_does_not_depend_on_the_microbatches(mesh, phase):
    totals = {
        sum(r.step_wire_bytes for r in required_rows(Case.read(mesh, microbatches=m, phases=(phase,))))
        for m in (1, 2, 4)
    }
    assert len(totals) == 1


def test_data_parallel_inference_needs_nothing():
    assert required_rows(Case.read("dp8", phases=("prefill",))) == ()


def test_a_pipeline_alone_shifts_and_collects():
    rows = required_rows(Case.read("pp4@v5e:2x2", phases=("decode",)))
    assert [row.scope for row in rows] == ["pipeline.shift", "pipeline.collect"]


def test_rules_that_split_less_need_less():
    rows = required_rows(Case.read("tp8-vocab-whole.toml", phases=("prefill",)))
    assert [row.scope for row in rows] == ["layer.attention.out", "layer.mlp.down"]


def test_float32_doubles_what_floats_need_and_not_ids():
    half, full = (required_rows(Case.read("tp4pp2", dtype=dtype, phases=("decode",))) for dtype in ("bf16", "f32"))
    ratio = {a.scope: b.payload_bytes / a.payload_bytes for a, b in zip(half, full, strict=True)}
    assert ratio == {
        "layer.attention.out": 2,
        "layer.mlp.down": 2,
        "embed": 2,
        "pipeline.shift": 2,
        "sample": 8 / 6,
        "pipeline.collect": 1,
    }
