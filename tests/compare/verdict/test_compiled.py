"""Verdicts on programs that both twins' cases were compiled to, of four layers; every number is worked out by hand."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from compare.report.model.about import About
from compare.report.programs import ProgramResult, judge_program
from compare.report.rows import sum_totals
from meshes.case import Case

COMPILED = Path(__file__).parent / "compiled"

# name: (what the plan needs, what of it the program leaves, cause -> bytes)
PROGRAMS = {
    # tiny: D = 128, 16 heads, 8 KV heads of 16.  cp4tp2, 8 sequences of 64: t = 128, t·D·b = 32,768, once on the wire;
    # two in each layer and the embedding's: 9.  Twelve hops of 2·128·4·16·2.  Winners 2·8·6·1/2 on a quarter; ids
    # 32·3/4.  Beyond it: winners on three quarters, and a sum for the broadcast.
    "jax_ring": (9 * 32_768 + 12 * 32_768 + 12 + 24, 0, {"replicated": 36 + 24}),
    # t = 8: 2048.  Merged 8·8·(16+2)·4 = 4608 · 3/2, four times; the output's part is in bf16: half of 8·8·16·4 · 3/2.
    "jax_merge": (9 * 2048 + 4 * 6912 + 48, 4 * 3072, {}),
    # tp4pp2+sp, m = 4: t·D·b = 32,768 · 3/4; four in each of two layers, four microbatches; embed 4·24,576/2; shift
    # 4·8192/2; head 2048·3/4/2; winners 192·3/4/2; ids 32/2.  A fifth tick; embed, head and winners on both stages, the
    # head's as a sum; so are the ids.
    "jax_stream": (
        32 * 24_576 + 49_152 + 16_384 + 768 + 72 + 16,
        0,
        {"bubble": 8 * 24_576 + 4096, "replicated": 49_152 + 2304 + 72 + 16},
    ),
    # tiny-moe, 2 of 8 experts.  tp2ep4: t = 128; C = ⌈1.25·2·64/8⌉ = 20, two groups: 2·8·20·256 = 81,920 · 3/4, there
    # and back; winners 2·2·6·1/2.
    "jax_experts": (9 * 32_768 + 8 * 61_440 + 12, 0, {}),
    # cp2ep2tp2: t = 4: 1024.  C = ⌈1.25·2·4/8⌉ = 2: 8·2·256 = 4096 · 1/2.  Merged 4·8·18·4 = 2304, of which 4·8·16·2 is
    # left.  Winners 48 · 1/2.  Nobody asked to send ids and their rows to other ranks: 16 and 1024 from half of them.
    "jax_all": (9 * 1024 + 8 * 2048 + 4 * 2304 + 24, 4 * 1024, {"layout-change": 8 + 512}),
    # cp2tp4, a rank of cp on each of two slices: t = 256: 65,536 · 3/2.  A hop of 2·256·2·16·2.  Winners 192·3/4 on
    # half; ids 32·1/2, for which 128 lanes of them are summed: 512 bytes.
    "jax_slices": (9 * 98_304 + 4 * 32_768 + 72 + 16, 0, {"replicated": 72 + 512 - 16}),
    # D = 512, 16 heads, 8 KV heads of 64.  cp4tp2, 16 sequences of 256: t = 1024: 1 MiB; hops of 2·1024·4·64·2 = 1 MiB,
    # as two gathers.  Winners 192·1/2·1/4; ids 64·3/4.
    "torchxla_ring": (9 * 2**20 + 12 * 2**20 + 24 + 48, 0, {"replicated": 72 + 48}),
    # t = 16: 16,384.  Merged 16·8·66·4 = 33,792 · 3/2.  F.scaled_dot_product_attention gathers the heads over tp: of
    # the queries 16·16·64·2 · 1/2, of the scaled keys 16·8·128·64·2 · 1/2, of the cached values as many; so all heads
    # are merged, twice as many.  What it asks of its mask is summed in tiles of 2·2048·4 · 3/2.
    "torchxla_merge": (
        9 * 16_384 + 4 * 50_688 + 96,
        0,
        {"other": 4 * 50_688, "cache-gather": 4 * 2**20, "activation-gather": 4 * (2**20 + 16_384 + 24_576)},
    ),
    # 2 of 8 experts.  pp2ep4, m = 4: t = 256, C = ⌈1.25·2·256/8⌉ = 80: 8·80·1024 = 655,360 · 3/4, there and back; shift
    # 4·262,144/2; ids 16/2.  A fifth tick; a sum for the ids.
    "torchxla_experts": (
        16 * 491_520 + 524_288 + 8,
        0,
        {"bubble": 4 * 491_520 + 131_072, "replicated": 8},
    ),
}


def judge_text(name):
    known = json.loads((COMPILED / f"{name}.json").read_text(encoding="utf-8"))
    case = Case.from_json(json.dumps(known["case"]))
    hlo = gzip.decompress((COMPILED / f"{name}.hlo.gz").read_bytes()).decode()
    result = ProgramResult(
        arm=name.partition("_")[0], phase=case.phase, cell="tpu", status="ok", about=About.from_json(known), hlo=hlo
    )
    return judge_program(case, result)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_program_is_judged_as_by_hand(name):
    cell = judge_text(name)
    needed, left, causes = PROGRAMS[name]
    totals = sum_totals(cell.judgement, cell.contract)
    counts = Counter()
    for verdict in cell.judgement.verdicts:
        counts.update(verdict.causes)
    assert sum(row.step_wire_bytes for row in cell.contract) == needed
    assert counts == causes
    assert (totals.inherent, totals.unserved, totals.missing) == (needed - left, left, 0)
    assert totals.wire_bytes == needed - left + sum(causes.values())
    assert totals.unknown_rows == totals.upper_bound_rows == 0
