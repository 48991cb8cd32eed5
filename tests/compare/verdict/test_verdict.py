"""Verdicts on programs whose answer is worked out by hand: docs/definitions.md, sections 3 to 5."""

from dataclasses import replace
from fractions import Fraction

import pytest

from compare.contract.reference_algorithms import required_rows
from compare.contract.row import INTEGERS
from compare.report.rows import sum_totals
from compare.verdict.verdict import judge
from meshes.case import Case
from meshes.devices.mesh_spec import MeshSpec
from tests.compare.verdict.programs import collective, operand, required, roles

MESH = "tp4pp2"
TICK, LAYERS = (5,), (5, 16)
ACTIVATION = 16_777_216
ROLL = [(d, (d + 4) % 8) for d in range(8)]
FORWARD = [(d, d + 4) for d in range(4)]


def judge_rows(rows, contract, *, mesh=MESH, **options):
    judgement = judge(rows, contract, axes=MeshSpec.parse(mesh).split_axes, **options)
    for verdict in judgement.verdicts:  # conservation, on every program that a test touches
        if verdict.inherent_bytes is None:
            assert verdict.collective.step_wire_bytes is None
            continue
        parts = (verdict.inherent_bytes, verdict.inflated_bytes, verdict.induced_bytes)
        assert sum(parts) == verdict.collective.step_wire_bytes
        assert min(parts) >= 0
        assert sum(verdict.causes.values()) == verdict.inflated_bytes + verdict.induced_bytes
    assert sum(judgement.served_bytes) == sum(verdict.inherent_bytes or 0 for verdict in judgement.verdicts)
    return judgement


def split(verdict):
    return verdict.inherent_bytes, verdict.causes


def case_rows(mesh=MESH, **options):
    return required_rows(Case.read(mesh, **{"phases": ("prefill",), **options}))


def test_the_check_table_of_a_pinned_prefill_with_a_roll():
    rows = [
        collective(MESH, "collective-permute", "pp", "pipeline.shift", ACTIVATION, loops=TICK, pairs=ROLL),
        collective(MESH, "all-reduce", "tp", "embed", ACTIVATION, loops=TICK),
        collective(MESH, "all-reduce", "tp", "layer.attention.out", ACTIVATION, loops=LAYERS),
        collective(MESH, "all-reduce", "tp", "layer.mlp.down", ACTIVATION, loops=LAYERS),
        collective(MESH, "all-gather", "tp", "sample", 4 * 8 * 4, dtype="s32"),
        collective(MESH, "all-gather", "tp", "sample", 4 * 8 * 2),
        collective(
            MESH, "collective-permute", "pp", "pipeline.collect", 32, dtype="s32", pairs=[(d + 4, d) for d in range(4)]
        ),
        collective(MESH, "all-reduce", "pp", "pipeline.collect", 32, dtype="s32", zero_elsewhere=True),
    ]
    judgement = judge_rows(rows, case_rows())
    assert [row.step_wire_bytes for row in rows] == [
        83_886_080,
        125_829_120,
        2_013_265_920,
        2_013_265_920,
        96,
        48,
        16,
        32,
    ]
    shift, embed, out, down, *ends = map(split, judgement.verdicts)
    assert shift == (33_554_432, {"wrap": 41_943_040, "bubble": 8_388_608})
    assert embed == (50_331_648, {"bubble": 25_165_824, "replicated": 50_331_648})
    assert out == down == (1_610_612_736, {"bubble": 402_653_184})
    assert ends == [(48, {"replicated": 48}), (24, {"replicated": 24}), (16, {}), (0, {"replicated": 32})]
    assert sum(row.collective.step_wire_bytes for row in judgement.verdicts) == 4_236_247_232
    assert sum(row.inherent_bytes for row in judgement.verdicts) == 3_305_111_640
    assert sum(row.inflated_bytes for row in judgement.verdicts) == 931_135_592
    assert sum(row.induced_bytes for row in judgement.verdicts) == 0
    assert judgement.served_bytes == tuple(row.step_wire_bytes for row in case_rows())


def test_a_shift_without_wrap_sends_half():
    shift = collective(MESH, "collective-permute", "pp", "pipeline.shift", ACTIVATION, loops=TICK, pairs=FORWARD)
    assert shift.step_wire_bytes == 41_943_040
    assert split(judge_rows([shift], case_rows()).verdicts[0]) == (33_554_432, {"bubble": 8_388_608})


def test_a_shift_by_gathers_sends_every_stage_what_the_next_alone_needs():
    """Four gathers of two stages' parts: each device sends its own, and the row asks for that of the first stage."""
    rows = [collective(MESH, "all-gather", "pp", "pipeline.shift", 2 * ACTIVATION) for _ in range(4)]
    judgement = judge_rows(rows, case_rows())
    assert [split(v) for v in judgement.verdicts] == [(ACTIVATION // 2, {"replicated": ACTIVATION // 2})] * 4
    assert sum(judgement.served_bytes) == 33_554_432


def test_a_stage_active_branch_has_no_bubble():
    # Each stage is active in 4 of 5 ticks: 64 executions on every device, exactly evaluated.
    row = collective(
        MESH,
        "all-reduce",
        "tp",
        "layer.mlp.down",
        ACTIVATION,
        loops=LAYERS,
        in_exact_branch=True,
        device_executions=(64,) * 8,
    )
    assert split(judge_rows([row], case_rows()).verdicts[0]) == (1_610_612_736, {})


def test_unrolled_ticks_have_their_bubble_at_the_end():
    rows = [collective(MESH, "all-reduce", "tp", "layer.mlp.down", ACTIVATION, name=f"ar.{n}") for n in range(80)]
    splits = [split(verdict) for verdict in judge_rows(rows, case_rows()).verdicts]
    assert splits == [(25_165_824, {})] * 64 + [(0, {"bubble": 25_165_824})] * 16


def test_an_unrolled_shift_that_lost_one_tick_overflows_into_its_bubble():
    rows = [collective(MESH, "collective-permute", "pp", "pipeline.shift", ACTIVATION, pairs=ROLL) for _ in range(3)]
    rows += [collective(MESH, "collective-permute", "pp", "pipeline.shift", ACTIVATION, pairs=FORWARD)] * 1
    # 4 executions do not add up to 5 ticks, and 4 shifts are what the row needs: only the wrap is too much.
    judgement = judge_rows(rows, case_rows())
    assert sum(v.causes.get("wrap", 0) for v in judgement.verdicts) == 3 * ACTIVATION // 2
    assert sum(v.causes.get("bubble", 0) for v in judgement.verdicts) == 0
    # Of 6, one is the idle tick's of two stages; the other is in no tick that the plan has.
    more = [
        *rows,
        collective(MESH, "collective-permute", "pp", "pipeline.shift", ACTIVATION, pairs=FORWARD),
        collective(MESH, "collective-permute", "pp", "pipeline.shift", ACTIVATION, pairs=FORWARD),
    ]
    judgement = judge_rows(more, case_rows())
    assert sum(v.causes.get("bubble", 0) for v in judgement.verdicts) == ACTIVATION // 2
    assert sum(v.causes.get("other", 0) for v in judgement.verdicts) == ACTIVATION // 2


@pytest.mark.parametrize(("loops", "times"), [(TICK, 1), ((6,), 1), ((), 5)])
def test_a_state_that_is_shifted_twice_has_its_copy_named_as_one_and_not_as_bubble(loops, times):
    """In a loop of the plan's ticks, in one of more ticks, and unrolled: 4 shifts are needed, and 4 are copies."""
    each = [
        collective(MESH, "collective-permute", "pp", "pipeline.shift", ACTIVATION, loops=loops, pairs=FORWARD)
        for _ in range(2 * times)
    ]
    judgement = judge_rows(each, case_rows())
    causes = {name: sum(v.causes.get(name, 0) for v in judgement.verdicts) for name in ("bubble", "other", "wrap")}
    ticks, half = 6 if loops == (6,) else 5, ACTIVATION // 2
    copies = {TICK: 4, (6,): 6, (): 4}[loops]  # a loop of other ticks than the plan's: which are idle is not known
    assert causes == {"bubble": (2 * ticks - 4 - copies) * half, "other": copies * half, "wrap": 0}
    assert sum(v.inherent_bytes for v in judgement.verdicts) == 33_554_432


@pytest.mark.parametrize(
    ("times", "payload", "inherent"), [(8, ACTIVATION, 4), (4, 2 * ACTIVATION, 4), (12, ACTIVATION, 4)]
)
def test_copies_of_a_shift_that_only_busy_ticks_make_have_no_bubble(times, payload, inherent):
    """Unrolled, by hand: two or three shifts in each of 4 ticks, or both as one; a fifth tick sends nothing."""
    each = [
        collective(MESH, "collective-permute", "pp", "pipeline.shift", payload, pairs=FORWARD) for _ in range(times)
    ]
    judgement = judge_rows(each, case_rows())
    sent = times * payload // 2
    assert sum(v.inherent_bytes for v in judgement.verdicts) == inherent * ACTIVATION // 2
    assert sum(v.causes.get("other", 0) for v in judgement.verdicts) == sent - inherent * ACTIVATION // 2


def test_two_gathers_of_one_sampling_are_no_two_ticks():
    # m = 1, pp = 2: two ticks.  The winners' ids and values come as two gathers, once each.
    contract = case_rows("tp4pp2", microbatches=1)
    rows = [
        collective(MESH, "all-gather", "tp", "sample", 128, dtype="s32"),
        collective(MESH, "all-gather", "tp", "sample", 64),
    ]
    judgement = judge_rows(rows, contract)
    assert [split(v) for v in judgement.verdicts] == [(48, {"replicated": 48}), (24, {"replicated": 24})]


def test_float32_on_the_wire_is_twice_what_bfloat16_needs():
    contract = case_rows("tp8")
    row = collective("tp8", "all-reduce", "tp", "layer.mlp.down", 2 * 64 * 2**20, loops=(32,), dtype="f32")
    assert split(judge_rows([row], contract, mesh="tp8").verdicts[0]) == (32 * 112 * 2**20, {"dtype": 32 * 112 * 2**20})


def test_ids_do_not_serve_a_row_of_floats_nor_floats_a_row_of_ids():
    rows = [
        collective(MESH, "all-reduce", "tp", "layer.mlp.down", 1 << 20, dtype="s32", loops=LAYERS),
        collective(MESH, "collective-permute", "pp", "pipeline.collect", 1 << 20, pairs=FORWARD),
    ]
    judgement = judge_rows(rows, case_rows())
    assert [list(v.causes) for v in judgement.verdicts] == [["activation-gather"], ["layout-change"]]


def test_a_reduce_scatter_and_the_gather_of_what_it_made_are_one_all_reduce():
    contract = case_rows("tp8")
    payload = 64 * 2**20
    rows = [
        collective("tp8", "reduce-scatter", "tp", "layer.mlp.down", payload, loops=(32,), name="rs.7"),
        # Its scope is lost to the next layer's; it carries what rs.7 made.
        collective("tp8", "all-gather", "tp", "layer.attention.qkv", payload, loops=(32,), scattered_by=("rs.7",)),
        collective("tp8", "all-gather", "tp", "layer.attention.qkv", payload, loops=(32,)),
    ]
    judgement = judge_rows(rows, contract, mesh="tp8")
    half = 32 * 56 * 2**20
    assert [split(v) for v in judgement.verdicts] == [(half, {}), (half, {}), (0, {"full-replication": half})]
    assert judgement.served_bytes == (0, 2 * half, 0, 0)


def test_an_all_gather_that_stands_in_for_an_all_reduce_serves_it_with_its_own_bytes():
    contract = case_rows("tp8")
    row = collective("tp8", "all-gather", "tp", "embed", 64 * 2**20)
    judgement = judge_rows([row], contract, mesh="tp8")
    assert split(judgement.verdicts[0]) == (56 * 2**20, {})
    assert judgement.served_bytes[2] == 56 * 2**20  # of 112 MiB: the rest is unserved, and shows


def test_a_masked_sum_serves_a_permute_as_far_as_the_permute_goes():
    row = collective(MESH, "all-reduce", "pp", "pipeline.collect", 32, dtype="s32", zero_elsewhere=True)
    # 32 on the wire of each device, where the permute sends 32 · 4/8 = 16
    assert split(judge_rows([row], case_rows()).verdicts[0]) == (16, {"replicated": 16})


def test_a_windowed_scatter_fills_its_row_and_the_hops_beyond_are_named():
    contract = [required("layer.mlp.down", "reduce-scatter", "tp", 4096, 3072)]
    ring = [(d, d // 4 * 4 + (d + 1) % 4) for d in range(8)]
    hop = {"form": "windowed-einsum", "pairs": ring}
    rows = [
        collective(MESH, "collective-permute", "tp", "layer.mlp.down", 1024, constant=True, **hop),
        *[collective(MESH, "collective-permute", "tp", "layer.mlp.down", 1024, **hop) for _ in range(4)],
    ]
    splits = [split(v) for v in judge_rows(rows, contract).verdicts]
    assert splits == [(0, {"windowed-einsum": 1024})] + [(1024, {})] * 3 + [(0, {"windowed-einsum": 1024})]


def test_hops_beyond_the_scatter_do_not_fill_the_half_that_a_gather_completes():
    """Of four devices, where a scatter is three hops and the compiler makes five: the gather is no surplus."""
    contract = [required("layer.mlp.down", "all-reduce", "tp", 4096, 6144)]
    ring = [(d, d // 4 * 4 + (d + 1) % 4) for d in range(8)]
    rows = [
        collective(
            MESH,
            "collective-permute",
            "tp",
            "layer.mlp.down",
            1024,
            form="windowed-einsum",
            pairs=ring,
            name=f"hop.{number}",
        )
        for number in range(5)
    ]
    rows += [collective(MESH, "all-gather", "tp", "layer.attention.qkv", 4096, scattered_by=("hop.4",))]
    splits = [split(v) for v in judge_rows(rows, contract).verdicts]
    assert splits == [(1024, {})] * 3 + [(0, {"windowed-einsum": 1024})] * 2 + [(3072, {})]


def test_padding_is_what_rounding_up_to_the_shards_added():
    contract = [required("head", "all-gather", "tp", 20, 15, dims=((10, 4),))]
    row = collective(MESH, "all-gather", "tp", "head", operands=[operand(24, scope="head", shape=(12,))])
    assert split(judge_rows([row], contract).verdicts[0]) == (15, {"padding": 3})


def combine_row(executions):
    """A sum of [4, 8] of bf16 over tp4: 64 bytes, 96 on the wire."""
    return required("layer.moe.combine", "all-reduce", "tp", 64, 96, executions=executions)


def outputs_of(parts):
    return collective(
        MESH,
        "all-reduce",
        "tp",
        "layer.moe.combine",
        operands=[operand(64 * parts, scope="layer.moe.combine", shape=(parts, 8, 4))],
    )


def test_experts_that_are_summed_one_by_one_serve_as_much_as_their_combined_output():
    judgement = judge_rows([outputs_of(16), outputs_of(16)], [combine_row(2)])
    assert [split(v) for v in judgement.verdicts] == [(96, {"uncombined": 15 * 96})] * 2


@pytest.mark.parametrize(("shape", "cause"), [((4, 4, 8), "uncombined"), ((4, 32), "other")])
def test_a_sum_of_wider_tokens_is_of_no_experts(shape, cause):
    """Four times 4 tokens of 8 elements: of four experts, or 4 tokens that are four times as wide."""
    sent = operand(64 * 4, scope="layer.moe.combine", shape=shape)
    row = collective(MESH, "all-reduce", "tp", "layer.moe.combine", operands=[sent])
    contract = [replace(combine_row(1), token_width=8)]
    assert split(judge_rows([row], contract).verdicts[0]) == (96, {cause: 3 * 96})


def test_microbatches_that_are_summed_together_are_as_many_executions_of_the_row():
    assert split(judge_rows([outputs_of(16)], [combine_row(16)]).verdicts[0]) == (16 * 96, {})


INDUCED = [
    ("a loop's counter", {"payload": 4, "dtype": "s32", "steers_loop": True}, "loop-predicate"),
    ("a predicate", {"payload": 1, "dtype": "pred"}, "loop-predicate"),
    ("one of each device", {"payload": 4, "dtype": "pred"}, "loop-predicate"),
    ("a mask", {"payload": 256, "dtype": "pred"}, "activation-gather"),
    ("the compiler's own flags", {"payload": 512, "dtype": "u32", "from_parameters": False}, "compiler-sync"),
    ("more than a KiB of them", {"payload": 2048, "dtype": "u32", "from_parameters": False}, "activation-gather"),
    ("a weight", {"payload": 1 << 20, "parameters": (3,)}, "weight-gather"),
    ("a cache", {"payload": 1 << 20, "parameters": (5,)}, "cache-gather"),
    (
        "logits",
        {"scope": "head", "operands": [operand(4 * 128256 * 2, scope="head", shape=(4, 128256))]},
        "logits-gather",
    ),
    (
        "a shard's",
        {"scope": "head", "operands": [operand(4 * 32064 * 2, scope="head", shape=(4, 32064))]},
        "logits-gather",
    ),
    ("the hidden state before them", {"payload": 1 << 20, "scope": "head"}, "activation-gather"),
    (
        "a hop of a windowed einsum",
        {"payload": 1 << 20, "kind": "collective-permute", "axes": "tp", "form": "windowed-einsum"},
        "activation-gather",
    ),
    ("an output", {"payload": 1 << 20, "reaches_root": True}, "output-replication"),
    ("a reshuffle", {"payload": 1 << 20, "kind": "all-to-all"}, "layout-change"),
    ("everything, everywhere", {"payload": 1 << 20, "axes": "pp,tp"}, "full-replication"),
    ("a sum over all", {"payload": 1 << 20, "kind": "all-reduce", "axes": "pp,tp"}, "activation-gather"),
    ("an activation", {"payload": 1 << 20}, "activation-gather"),
    ("a broadcast", {"payload": 1 << 20, "kind": "collective-broadcast"}, "other"),
]


@pytest.mark.parametrize(("row", "cause"), [row[1:] for row in INDUCED], ids=[row[0] for row in INDUCED])
def test_what_serves_nothing_has_the_first_cause_that_holds(row, cause):
    options = {"kind": "all-gather", "axes": "tp", "scope": "layer.attention.core", **row}
    unserved_row = collective(MESH, options.pop("kind"), options.pop("axes"), options.pop("scope"), **options)
    verdict = judge_rows([unserved_row], case_rows(), roles=roles(weight=(3,), cache=(5,))).verdicts[0]
    assert verdict.causes == {cause: unserved_row.step_wire_bytes}
    assert verdict.induced_bytes == unserved_row.step_wire_bytes


def test_a_gathered_weight_serves_nothing_even_in_the_right_place():
    contract = [required("layer.mlp.up", "all-gather", "tp", 1024, 768)]
    row = collective(MESH, "all-gather", "tp", "layer.mlp.up", 1024, parameters=(3,))
    assert judge_rows([row], contract, roles=roles(weight=(3,))).verdicts[0].causes == {"weight-gather": 768}


def test_a_combined_collective_is_judged_operand_by_operand():
    contract = case_rows("tp8")
    parts = [operand(64 * 2**20, scope="layer.mlp.down"), operand(2**20, scope="layer.mlp.up", parameters=(3,))]
    row = collective("tp8", "all-reduce", "tp", "layer.mlp.down", operands=parts, loops=(32,))
    verdict = judge_rows([row], contract, mesh="tp8", roles=roles(weight=(3,))).verdicts[0]
    assert split(verdict) == (32 * 112 * 2**20, {"weight-gather": 32 * 7 * 2**20 // 4})


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)])
def test_causes_stand_in_the_order_of_the_operands_in_every_process(order):
    causes = ["weight-gather", "cache-gather", "logits-gather", "activation-gather"]
    parts = [
        operand(2**20, scope="norm", parameters=(3,)),
        operand(2**20, scope="norm", parameters=(5,)),
        operand(2 * 128256, scope="head"),
        operand(2**20, scope="norm"),
    ]
    row = collective(MESH, "all-gather", "tp", "norm", operands=[parts[number] for number in order])
    verdict = judge_rows([row], case_rows(), roles=roles(weight=(3,), cache=(5,))).verdicts[0]
    assert list(verdict.causes) == [causes[number] for number in order]


def test_unknown_executions_are_in_no_total_and_what_they_serve_is_not_missing():
    row = collective(MESH, "all-reduce", "tp", "layer.mlp.down", ACTIVATION, executions_are="unknown")
    judgement = judge_rows([row], case_rows())
    assert split(judgement.verdicts[0]) == (None, {})
    assert judgement.served_bytes == (0,) * 6
    assert judgement.uncounted == {1}
    assert sum_totals(judgement, case_rows()).missing == 3_305_111_640 - 1_610_612_736


def test_a_stray_gather_before_the_layer_s_own_all_reduce_does_not_take_its_place():
    payload = 64 * 2**20
    rows = [
        collective("tp8", "all-gather", "tp", "layer.mlp.down", payload, loops=(32,)),
        collective("tp8", "all-reduce", "tp", "layer.mlp.down", payload, loops=(32,)),
    ]
    judgement = judge_rows(rows, case_rows("tp8"), mesh="tp8")
    assert [split(v) for v in judgement.verdicts] == [(0, {"replicated": 32 * 56 * 2**20}), (32 * 112 * 2**20, {})]


def test_whole_logits_serve_nothing_where_the_winners_would_do():
    # 8 sequences · 128256 logits of bf16, gathered over 8 shards
    logits = operand(8 * 128256 * 2, scope="sample", shape=(8, 128256))
    row = collective("tp8", "all-gather", "tp", "sample", operands=[logits])
    verdict = judge_rows([row], case_rows("tp8"), mesh="tp8").verdicts[0]
    assert split(verdict) == (0, {"logits-gather": 8 * 128256 * 2 * 7 // 8})


def test_a_sum_of_parts_that_are_zero_elsewhere_serves_a_gather_as_far_as_the_gather_goes():
    # One sequence: the compiler sums the shards' winners, 8 · 4 bytes of ids: 2 · 7/8 of them where a gather sends 7/8.
    contract = case_rows("tp8", batch=1)
    rows = [
        collective("tp8", "all-reduce", "tp", "sample", 32, dtype="s32", zero_elsewhere=True),
        collective("tp8", "all-reduce", "tp", "sample", 16, zero_elsewhere=True),
    ]
    judgement = judge_rows(rows, contract, mesh="tp8")
    assert sum(v.inherent_bytes for v in judgement.verdicts) == 42 == contract[-1].step_wire_bytes
    assert sum(v.causes.get("replicated", 0) for v in judgement.verdicts) == 42


def test_rows_written_by_hand_judge_any_program():
    contract = [required("norm", "collective-broadcast", "rows", 100, 50, carries=INTEGERS)]
    row = collective("dp2", "collective-broadcast", "dp", "norm", 100, dtype="s32")
    named = type(row)(**{slot: getattr(row, slot) for slot in row.__slots__} | {"axes": "rows"})
    assert judge([named], contract, axes={"rows": 2}).verdicts[0].inherent_bytes == 50


def test_thirds_of_a_byte_are_rounded_once_and_conserved():
    # 100 bytes over 3 devices: 2·2/3·100 = 133.3 a device; float32 where bfloat16 would do: half of it.
    contract = [required("norm", "all-reduce", "tp", 50, 67)]
    row = collective("tp3", "all-reduce", "tp", "norm", 100, dtype="f32")
    assert row.device_bytes[0] == Fraction(400, 3)
    assert split(judge_rows([row], contract, mesh="tp3").verdicts[0]) == (67, {"dtype": 66})
