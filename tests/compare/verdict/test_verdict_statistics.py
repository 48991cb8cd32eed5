"""A statistic over the axis of a row, in its scope, is no part of what the row moves: docs/definitions.md, section 3.

Each statistic stands before the row's own collective, where it would fill the row first.  It is induced, and the row's
own is inherent as a whole.
"""

from dataclasses import replace

import pytest

from compare.contract.reference_algorithms import required_rows
from meshes.case import Case
from meshes.models import Model
from tests.compare.verdict.programs import collective, operand, required
from tests.compare.verdict.test_verdict import judge_rows, split
from tests.compare.verdict.test_verdict_products import MIB, MIXTRAL, around, place, rows_of

LLAMA = {"model_name": "llama-3.2-1b", "seq": 512, "phases": ("decode",)}
PERMUTE = "collective-permute"


def total(axes, scope, elements, *, mesh, reducer="add", dtype="bf16", loops=(), kind="all-reduce", **more):
    size = elements * {"bf16": 2, "f32": 4, "s32": 4, "s8": 1}[dtype]
    return collective(mesh, kind, axes, scope, size, reducer=reducer, dtype=dtype, loops=loops, **more)


@pytest.mark.parametrize(
    ("elements", "dtype", "reducer", "sent"), [(4, "bf16", "maximum", 192), (4, "f32", "add", 384)]
)
def test_the_statistics_of_the_report(elements, dtype, reducer, sent):
    """Llama-3.2-1B, dp2tp4: of 4 tokens one number each, 16 times 3/2; the row is 16 times 3/2·4·2048·2 = 393,216."""
    contract = rows_of("dp2tp4", **LLAMA)
    options = {"mesh": "dp2tp4", "loops": (16,)}
    rows = [
        total("tp", "layer.mlp.down", elements, dtype=dtype, reducer=reducer, **options),
        total("tp", "layer.mlp.down", 4 * 2048, **options),
    ]
    for order in (rows, rows[::-1]):
        judged = judge_rows(order, contract, mesh="dp2tp4").verdicts
        assert {(row.collective.payload_bytes, *map(str, split(row))) for row in judged} == {
            (rows[0].payload_bytes, "0", str({"activation-gather": sent})),
            (16_384, "393216", "{}"),
        }


STATISTICS = [
    # mesh, options, the row, what fills it (kind, payload, …), the statistic's elements
    ("tp8", {}, "layer.attention.out all-reduce", ("all-reduce", 64 * MIB, {"loops": (32,)}), 8192),
    ("tp8", {}, "embed all-reduce", ("all-reduce", 64 * MIB, {}), 8192),
    ("tp8+sp", {}, "layer.mlp.down reduce-scatter", ("reduce-scatter", 64 * MIB, {"loops": (32,)}), 8192),
    ("tp8+sp", {}, "layer.mlp.up all-gather", ("all-gather", 64 * MIB, {"loops": (32,)}), 1024),
    ("tp8+sp", {}, "layer.attention.qkv all-gather", ("all-gather", 64 * MIB, {"loops": (32,)}), 1024),
    ("tp8+sp", {}, "head all-gather", ("all-gather", 65_536, {}), 8),
    (
        "tp4pp2",
        {},
        "pipeline.shift collective-permute",
        (PERMUTE, 16 * MIB, {"loops": (5,), "pairs": [(d, d + 4) for d in range(4)]}),
        2048,
    ),
    ("tp2ep4", MIXTRAL, "layer.moe.dispatch all-to-all", ("all-to-all", 40 * MIB, {"loops": (32,)}), 2048),
    ("tp2ep4", MIXTRAL, "layer.moe.combine all-to-all", ("all-to-all", 40 * MIB, {"loops": (32,)}), 2048),
    ("tp2ep4", MIXTRAL, "layer.moe.combine all-reduce", ("all-reduce", 16 * MIB, {"loops": (32,)}), 2048),
    (
        "cp4tp2",
        {},
        "layer.attention.core collective-permute",
        (PERMUTE, 4 * MIB, {"loops": (32, 3), "pairs": around("cp4tp2")}),
        2048,
    ),
]


@pytest.mark.parametrize("reducer", ["maximum", "add"])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize(("mesh", "options", "name", "own", "elements"), STATISTICS, ids=[row[2] for row in STATISTICS])
def test_a_statistic_is_no_part_of_any_row(mesh, options, name, own, elements, dtype, reducer):
    scope, kind = name.split()
    contract, spec = rows_of(mesh, **options), mesh.partition("+")[0]
    row = contract[place(contract, scope, kind)]
    loops = own[2].get("loops", ())
    statistic = total(row.axes, scope, elements, mesh=spec, dtype=dtype, reducer=reducer, loops=loops)
    filling = collective(spec, own[0], row.axes, scope, own[1], **own[2])
    judgement = judge_rows([statistic, filling], contract, mesh=spec)
    assert judgement.verdicts[0].induced_bytes == statistic.step_wire_bytes
    assert judgement.served_bytes[contract.index(row)] == row.step_wire_bytes


def test_a_maximum_of_the_row_s_size_adds_nothing_up():
    contract = rows_of("tp8")
    row = total("tp", "layer.mlp.down", 32 * MIB, mesh="tp8", reducer="maximum", loops=(32,))
    assert judge_rows([row], contract, mesh="tp8").verdicts[0].induced_bytes == row.step_wire_bytes


def test_the_merge_of_a_split_cache_has_a_maximum_and_two_sums_and_no_third():
    """cp4tp2, decode: 8 tokens · 16 heads.  A maximum over heads and positions has 8 elements, 32 times 3/2·8·4."""
    contract = rows_of("cp4tp2", phases=("decode",))
    words = {"mesh": "cp4tp2", "dtype": "f32", "loops": (32,)}
    rows = [
        total("cp", "layer.attention.core", 8, reducer="maximum", **words),
        total("cp", "layer.attention.core", 8, **words),
        total("cp", "layer.attention.core", 128, reducer="minimum", **words),
        total("cp", "layer.attention.core", 128, reducer="maximum", **words),
        total("cp", "layer.attention.core", 128, **words),
        total("cp", "layer.attention.core", 128 * 128, **words),
    ]
    judgement = judge_rows(rows, contract, mesh="cp4tp2")
    assert [v.induced_bytes for v in judgement.verdicts] == [1536, 1536, 24_576, 0, 0, 0]
    assert judgement.served_bytes[0] == contract[0].step_wire_bytes == 3_194_880


def test_the_winner_may_be_chosen_by_a_maximum_and_the_rest_of_a_softmax_is_a_statistic():
    """tp8, 8 sequences: a maximum of 8 values and a minimum of 8 ids do what the gather of 8·8 of each does.

    Where the winners are gathered, the maximum is a statistic, too.
    """
    contract = rows_of("tp8")
    rows = [
        total("tp", "sample", 8, mesh="tp8", reducer="maximum"),
        total("tp", "sample", 8, mesh="tp8", reducer="minimum", dtype="s32"),
        total("tp", "sample", 8, mesh="tp8"),
    ]
    judged = judge_rows(rows, contract, mesh="tp8").verdicts
    assert [v.induced_bytes for v in judged] == [0, 0, 8 * 2 * 7 // 4]
    gathers = [
        collective("tp8", "all-gather", "tp", "sample", 64 * size, dtype=dtype)
        for size, dtype in ((2, "bf16"), (4, "s32"))
    ]
    judgement = judge_rows([rows[0], rows[2], *gathers], contract, mesh="tp8")
    assert [v.induced_bytes for v in judgement.verdicts] == [28, 28, 0, 0]
    assert judgement.served_bytes[-1] == 64 * 6 * 7 // 8


def test_a_mean_over_stages_of_the_state_s_size_shifts_nothing():
    """A maximum or a mean over stages has as many elements as the state, and is no masked sum of it."""
    contract = rows_of("tp4pp2")
    for reducer in ("maximum", "add"):
        row = total("pp", "pipeline.shift", 8 * MIB, mesh="tp4pp2", reducer=reducer, loops=(5,))
        assert judge_rows([row], contract, mesh="tp4pp2").verdicts[0].induced_bytes == row.step_wire_bytes


def test_the_parts_of_a_sum_serve_it_where_they_make_it_whole():
    """Sixteen sums of 1/16 of the tokens in each of 32 layers; fifteen are no whole, and one in a loop of 16 is."""
    contract = rows_of("tp8")
    whole = 32 * 112 * MIB
    for loops, count, served in [((32,), 16, whole), ((32,), 15, 0), ((32, 16), 1, whole)]:
        rows = [total("tp", "layer.mlp.down", 2 * MIB, mesh="tp8", loops=loops) for _ in range(count)]
        assert judge_rows(rows, contract, mesh="tp8").served_bytes[1] == served


def test_halves_and_quarters_make_a_row_together():
    """Keys as two halves, which the rotation of positions makes, and values whole; and a statistic beside them."""
    contract = rows_of("cp4tp2")
    hop = {"loops": (32, 3), "pairs": around("cp4tp2")}
    rows = [
        collective("cp4tp2", PERMUTE, "cp", "layer.attention.core", size, **hop) for size in (MIB, MIB, 2 * MIB, 4096)
    ]
    judgement = judge_rows(rows, contract, mesh="cp4tp2")
    assert [v.induced_bytes for v in judgement.verdicts] == [0, 0, 0, 96 * 4096]
    assert judgement.served_bytes[0] == 384 * MIB


def test_of_two_sums_that_are_alike_the_one_nearest_the_end_of_the_scope_is_the_row_s():
    """tp8, decode: 8·4096 in float32 before the product, and the sum after it: 2·7/8 of 65,536 B, 32 times."""
    contract = rows_of("tp8", phases=("decode",))
    before = total("tp", "layer.mlp.down", 32_768, mesh="tp8", dtype="f32", loops=(32,))
    after = total("tp", "layer.mlp.down", 32_768, mesh="tp8", loops=(32,), steps_to_end=2)
    judged = judge_rows([before, after], contract, mesh="tp8").verdicts
    assert [split(v) for v in judged] == [(0, {"dtype": 3_670_016, "other": 3_670_016}), (3_670_016, {})]


def test_gathered_partial_sums_that_are_added_up_where_they_come_are_a_sum():
    """tp8: 8 · 64 MiB come to each device, 7/8 of them sent, where the sum sends 2·7/8 of 64 MiB: a fourth of it."""
    words = {"operands": [operand(512 * MIB, scope="layer.mlp.down", added_up=True)], "loops": (32,)}
    row = collective("tp8", "all-gather", "tp", "layer.mlp.down", **words)
    judgement = judge_rows([row], rows_of("tp8"), mesh="tp8")
    assert split(judgement.verdicts[0]) == (32 * 112 * MIB, {"replicated": 32 * 336 * MIB})
    assert judgement.served_bytes[1] == 32 * 112 * MIB
    judgement = judge_rows([row], rows_of("tp8+sp"), mesh="tp8")
    assert split(judgement.verdicts[0]) == (32 * 56 * MIB, {"replicated": 32 * 392 * MIB})


def test_gathered_numbers_that_are_not_added_up_are_no_sum():
    row = collective("tp8", "all-gather", "tp", "layer.mlp.down", 512 * MIB, loops=(32,))
    assert judge_rows([row], rows_of("tp8"), mesh="tp8").verdicts[0].inherent_bytes == 0


def exchange(*shifts):
    """dp2ep4: permutes of 5 MiB, each from every member to the one that is `shift` further."""
    pairs = {
        shift: [(dp * 4 + at, dp * 4 + (at + shift) % 4) for dp in range(2) for at in range(4)] for shift in shifts
    }
    return [
        collective("dp2ep4", PERMUTE, "ep", "layer.moe.dispatch", 5 * MIB, loops=(32,), pairs=pairs[shift])
        for shift in shifts
    ]


def test_a_permute_to_each_other_member_is_an_exchange():
    """dp2ep4 of Mixtral: 20 MiB of places, 5 MiB for each of four members, three of them others: 15 MiB a layer."""
    contract = rows_of("dp2ep4", **MIXTRAL)
    judgement = judge_rows(exchange(1, 2, 3), contract, mesh="dp2ep4")
    assert [split(v) for v in judgement.verdicts] == [(160 * MIB, {})] * 3
    at = place(contract, "layer.moe.dispatch", "all-to-all")
    assert judgement.served_bytes[at] == contract[at].step_wire_bytes == 480 * MIB


@pytest.mark.parametrize("shifts", [(1,), (1, 2), (1, 1, 1)])
def test_permutes_that_leave_a_member_out_are_no_exchange(shifts):
    judgement = judge_rows(exchange(*shifts), rows_of("dp2ep4", **MIXTRAL), mesh="dp2ep4")
    assert [split(v) for v in judgement.verdicts] == [(0, {"layout-change": 160 * MIB})] * len(shifts)


def test_the_permutes_of_a_windowed_einsum_are_an_exchange_as_they_come():
    hops = [replace(row, form="windowed-einsum") for row in exchange(1, 1)]
    judgement = judge_rows(hops, rows_of("dp2ep4", **MIXTRAL), mesh="dp2ep4")
    assert [split(v) for v in judgement.verdicts] == [(160 * MIB, {})] * 2


def test_ids_in_place_of_an_exchange_whose_tokens_are_not_told_serve_nothing():
    contract = [required("moe", "all-to-all", "ep", 4096, 3072)]
    rows = [total("ep", "moe", 1024, mesh="dp2ep4", dtype=dtype, kind="all-gather") for dtype in ("s32", "bf16")]
    judgement = judge_rows(rows, contract, mesh="dp2ep4")
    assert [v.inherent_bytes for v in judgement.verdicts] == [0, 1536]


@pytest.mark.parametrize(("dtype", "split_bytes"), [("s8", (1, 0)), ("s32", (2, 2))])
def test_a_sum_of_quantized_numbers_is_a_sum(dtype, split_bytes):
    """32 Mi elements, 2·7/8 of them sent in each of 32 layers; the plan's have two bytes."""
    row = total("tp", "layer.mlp.down", 32 * MIB, mesh="tp8", dtype=dtype, loops=(32,))
    judgement = judge_rows([row], rows_of("tp8"), mesh="tp8")
    inherent, wide = (32 * 56 * MIB * part for part in split_bytes)
    assert split(judgement.verdicts[0]) == (inherent, {"dtype": wide} if wide else {})


@pytest.mark.parametrize("elements", [8192, 64 * MIB])
def test_ids_and_masks_have_other_elements_than_the_numbers_of_a_sum(elements):
    row = total("tp", "layer.mlp.down", elements, mesh="tp8", dtype="s32", loops=(32,))
    assert judge_rows([row], rows_of("tp8"), mesh="tp8").verdicts[0].inherent_bytes == 0


def test_a_statistic_of_weights_is_no_gather_of_them():
    contract = [required("weights", "all-gather", "dp", 4096, 2048, executions=16, of_weights=True)]
    row = total("dp", "layer.mlp.up", 4, mesh="dp2", reducer="maximum", parameters=(3,), loops=(16,))
    judgement = judge_rows([row], contract, mesh="dp2", roles={3: "weight"})
    assert split(judgement.verdicts[0]) == (0, {"weight-gather": 16 * 8})


def test_the_last_layer_may_sum_the_last_tokens_alone():
    """Llama-3.2-1B, dp2tp4, 4 sequences of 512 tokens: 15 layers of 16 whole, one of 4 tokens of 2048 elements."""
    contract = rows_of("dp2tp4", **{**LLAMA, "phases": ("prefill",)})
    whole = total("tp", "layer.mlp.down", 4 * 512 * 2048, mesh="dp2tp4", loops=(15,), shape=(4, 512, 2048))
    last = total("tp", "layer.mlp.down", 4 * 2048, mesh="dp2tp4", shape=(4, 1, 2048))
    judgement = judge_rows([whole, last], contract, mesh="dp2tp4")
    assert [split(row) for row in judgement.verdicts] == [(15 * 3 * 4 * 512 * 2048, {}), (3 * 4 * 2048, {})]
    # A number of each token is a statistic, whatever the row lacks.
    scale = total("tp", "layer.mlp.down", 4 * 512, mesh="dp2tp4", shape=(4, 512, 1))
    assert judge_rows([whole, scale], contract, mesh="dp2tp4").verdicts[1].causes == {"activation-gather": 3 * 4 * 512}


@pytest.mark.parametrize(
    ("shape", "cause"),
    [((4, 1), "activation-gather"), ((4, 32_064), "logits-gather"), ((4, 128_256), "logits-gather")],
)
def test_softmax_s_sum_in_sample_is_no_gather_of_logits(shape, cause):
    """Of a vocabulary of 128,256 over four: a shard of it, and all, are logits, of which the parts are added up."""
    contract = rows_of("dp2tp4", **LLAMA)
    elements = shape[0] * shape[1]
    row = total("tp", "sample", elements, mesh="dp2tp4", dtype="f32", shape=shape)
    assert judge_rows([row], contract, mesh="dp2tp4").verdicts[0].causes == {cause: elements * 4 * 3 // 2}


@pytest.mark.parametrize(
    ("mesh", "axes", "width", "cause"),
    [
        ("dp2tp4", "tp", 256, "activation-gather"),
        ("dp2tp4", "tp", 2048, "logits-gather"),
        ("dp2tp4", "dp", 512, "logits-gather"),
        # What a gather over dp gives may be split over tp: it is as wide as either.
        ("dp2tp8", "dp", 256, "logits-gather"),
    ],
)
def test_hidden_state_as_wide_as_a_shard_of_the_vocabulary_is_no_logits(mesh, axes, width, cause):
    """Of 2048 words over eight devices 256, which is the width, too: a gather over four leaves a shard of a half."""
    small = Model(name="small", vocab=2048, embed=256, ffn=1024, layers=2, heads=16, kv_heads=8, head_dim=32)
    case = Case.read(mesh, shapes=small, batch=8, seq=128, phases=("decode",))
    row = collective(
        mesh, "all-gather", axes, "head", operands=[operand(4 * width * 2, scope="head", shape=(4, width))]
    )
    sent = {"tp": 4 * width * 2 * 3 // 4, "dp": 4 * width * 2 // 2}[axes]
    assert judge_rows([row], required_rows(case), mesh=mesh).verdicts[0].causes == {cause: sent}
