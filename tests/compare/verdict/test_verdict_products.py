"""Verdicts on rings, merges, exchanges with experts and split streams, worked out by hand."""

from dataclasses import replace

from compare.contract.reference_algorithms import required_rows
from meshes.case import Case
from meshes.devices.mesh_spec import MeshSpec
from tests.compare.verdict.programs import collective, operand
from tests.compare.verdict.test_verdict import judge_rows, split

MIB = 2**20
MIXTRAL = {"model_name": "mixtral-8x7b"}


def rows_of(mesh, **options):
    return required_rows(Case.read(mesh, **{"phases": ("prefill",), **options}))


def place(contract, scope, kind):
    return next(at for at, row in enumerate(contract) if (row.scope, row.kind) == (scope, kind))


def around(mesh):
    """The pairs of a ring over cp: each rank to the next."""
    return [
        (group[at], group[(at + 1) % len(group)])
        for group in MeshSpec.parse(mesh).groups("cp")
        for at in range(len(group))
    ]


# cp4tp2: the keys of a rank are 2048 tokens · 4 heads · 128 · 2 = 2 MiB, its values too; three hops, 32 layers: 384 MiB
RING = {"pairs": around("cp4tp2")}
CORE = ("collective-permute", "cp", "layer.attention.core")


def test_a_ring_of_three_hops_is_what_four_ranks_need():
    hops = [collective("cp4tp2", *CORE, 2 * MIB, loops=(32,), **RING) for _ in range(6)]
    judgement = judge_rows(hops, rows_of("cp4tp2"), mesh="cp4tp2")
    assert [split(v) for v in judgement.verdicts] == [(64 * MIB, {})] * 6
    assert judgement.served_bytes[0] == 384 * MIB


def test_a_ring_in_a_loop_of_four_hops_brings_everyone_its_own_again():
    keys_and_values = [collective("cp4tp2", *CORE, 2 * MIB, loops=(32, 4), **RING) for _ in range(2)]
    judgement = judge_rows(keys_and_values, rows_of("cp4tp2"), mesh="cp4tp2")
    assert [split(v) for v in judgement.verdicts] == [(192 * MIB, {"wrap": 64 * MIB})] * 2


def test_a_ring_of_four_hops_in_float32_loses_the_hop_first_and_then_the_width():
    keys_and_values = [collective("cp4tp2", *CORE, 4 * MIB, loops=(32, 4), dtype="f32", **RING) for _ in range(2)]
    judgement = judge_rows(keys_and_values, rows_of("cp4tp2"), mesh="cp4tp2")
    assert [split(v) for v in judgement.verdicts] == [(192 * MIB, {"wrap": 128 * MIB, "dtype": 192 * MIB})] * 2


def test_a_loop_over_as_many_layers_as_ranks_is_no_ring():
    case = Case.read("cp4tp2", phases=("prefill",))
    four = required_rows(case.at(model=replace(case.model, layers=4)))
    hops = [collective("cp4tp2", *CORE, 2 * MIB, loops=(4,), **RING) for _ in range(6)]
    assert [split(v) for v in judge_rows(hops, four, mesh="cp4tp2").verdicts] == [(8 * MIB, {})] * 6


def test_keys_sent_again_in_a_loop_over_as_many_layers_as_ranks_leave_the_row_served():
    """Seven permutes of 2 MiB in each of four layers, where six are asked for: the loop is not the ring's."""
    case = Case.read("cp4tp2", phases=("prefill",))
    four = required_rows(case.at(model=replace(case.model, layers=4)))
    hops = [collective("cp4tp2", *CORE, 2 * MIB, loops=(4,), **RING) for _ in range(7)]
    judgement = judge_rows(hops, four, mesh="cp4tp2")
    assert [split(v) for v in judgement.verdicts] == [(8 * MIB, {})] * 6 + [(0, {"other": 8 * MIB})]
    assert judgement.served_bytes[0] == 48 * MIB


def test_the_hop_too_many_of_an_unrolled_ring_is_its_wrap():
    """Keys and values, four hops each: the fourth moves what has come through three."""
    hops = [collective("cp4tp2", *CORE, 2 * MIB, executions=32, earlier_hops=hop // 2, **RING) for hop in range(8)]
    splits = [split(v) for v in judge_rows(hops, rows_of("cp4tp2"), mesh="cp4tp2").verdicts]
    assert splits == [(64 * MIB, {})] * 6 + [(0, {"wrap": 64 * MIB})] * 2


def test_keys_that_are_sent_twice_close_no_ring():
    """Keys, values and the keys once more, three hops each, unrolled; in a loop of three trips, which a ring needs."""
    unrolled = [
        collective("cp4tp2", *CORE, 2 * MIB, executions=32, earlier_hops=hop, **RING)
        for hop in range(3)
        for _ in range(3)
    ]
    looped = [
        collective("cp4tp2", *CORE, 2 * MIB, loops=(32, 3), earlier_hops=None, name=f"cp.{n}", **RING) for n in range(3)
    ]
    for hops in (unrolled, looped):
        judgement = judge_rows(hops, rows_of("cp4tp2"), mesh="cp4tp2")
        assert sum(v.causes.get("other", 0) for v in judgement.verdicts) == 192 * MIB
        assert sum(v.inflated_bytes for v in judgement.verdicts) == 192 * MIB
        assert judgement.served_bytes[0] == 384 * MIB


def test_gathers_of_keys_and_values_do_what_the_ring_does_with_as_many_bytes():
    # The result of a gather is four ranks' part: 8 MiB, of which 3/4 travel
    gathers = [collective("cp4tp2", "all-gather", "cp", "layer.attention.core", 8 * MIB, loops=(32,)) for _ in range(2)]
    judgement = judge_rows(gathers, rows_of("cp4tp2"), mesh="cp4tp2")
    assert [split(v) for v in judgement.verdicts] == [(192 * MIB, {})] * 2
    # The queries are eight times the keys where 32 heads share 8: 16 heads of a shard, 4 KV heads
    queries = collective("cp4tp2", "all-gather", "cp", "layer.attention.core", 32 * MIB, loops=(32,))
    judgement = judge_rows([*gathers, queries], rows_of("cp4tp2"), mesh="cp4tp2")
    assert split(judgement.verdicts[2]) == (0, {"replicated": 768 * MIB})


def test_a_sum_that_stands_in_for_a_ring_sends_twice_what_a_gather_does():
    words = {"loops": (32,), "zero_elsewhere": True}
    rows = [collective("cp4tp2", "all-reduce", "cp", "layer.attention.core", 8 * MIB, **words) for _ in range(2)]
    judgement = judge_rows(rows, rows_of("cp4tp2"), mesh="cp4tp2")
    assert [split(v) for v in judgement.verdicts] == [(192 * MIB, {"replicated": 192 * MIB})] * 2


def test_the_permutes_of_a_windowed_gather_are_a_ring():
    hop = {"form": "windowed-einsum", "loops": (32,), **RING}
    rows = [collective("cp4tp2", *CORE, 2 * MIB, **hop) for _ in range(7)]
    splits = [split(v) for v in judge_rows(rows, rows_of("cp4tp2"), mesh="cp4tp2").verdicts]
    assert splits == [(64 * MIB, {})] * 6 + [(0, {"windowed-einsum": 64 * MIB})]


def test_the_bubble_of_a_ring_is_that_of_its_ticks():
    # pp2cp2tp2, four microbatches in five ticks: one hop of 1 MiB of keys, one of values, in 16 layers
    pairs = around("pp2cp2tp2")
    rows = [collective("pp2cp2tp2", *CORE, MIB, loops=(5, 16), pairs=pairs) for _ in range(2)]
    judgement = judge_rows(rows, rows_of("pp2cp2tp2"), mesh="pp2cp2tp2")
    assert [split(v) for v in judgement.verdicts] == [(64 * MIB, {"bubble": 16 * MIB})] * 2


def test_maximum_sum_and_output_of_a_split_cache_fill_the_row_of_their_merge():
    contract = rows_of("cp4tp2", phases=("decode",))
    heads = 8 * 16  # tokens · heads of a shard
    numbers = [1, 1, 128]
    rows = [
        collective("cp4tp2", "all-reduce", "cp", "layer.attention.core", heads * n * 4, loops=(32,), dtype="f32")
        for n in numbers
    ]
    judgement = judge_rows(rows, contract, mesh="cp4tp2")
    assert [split(v) for v in judgement.verdicts] == [(heads * n * 6 * 32, {}) for n in numbers]
    assert judgement.served_bytes[0] == 3_194_880


def test_an_output_merged_in_bfloat16_leaves_half_of_it_unserved():
    contract = rows_of("cp4tp2", phases=("decode",))
    row = collective("cp4tp2", "all-reduce", "cp", "layer.attention.core", 8 * 16 * 128 * 2, loops=(32,))
    judgement = judge_rows([row], contract, mesh="cp4tp2")
    assert split(judgement.verdicts[0]) == (8 * 16 * 128 * 3 * 32, {})


def test_a_gathered_cache_serves_no_merge():
    contract = rows_of("cp4tp2", phases=("decode",))
    row = collective("cp4tp2", "all-gather", "cp", "layer.attention.core", 8 * MIB, loops=(32,), parameters=(5,))
    verdict = judge_rows([row], contract, mesh="cp4tp2", roles={5: "cache"}).verdicts[0]
    assert split(verdict) == (0, {"cache-gather": 192 * MIB})


def test_a_masked_sum_of_ids_serves_a_broadcast():
    contract = rows_of("cp4tp2")
    row = collective("cp4tp2", "all-reduce", "cp", "pipeline.collect", 32, dtype="s32", zero_elsewhere=True)
    # 2·3/4 of 32 bytes, where a broadcast sends 3/4
    assert split(judge_rows([row], contract, mesh="cp4tp2").verdicts[0]) == (24, {"replicated": 24})


def test_ids_that_are_chosen_on_every_rank_are_chosen_three_times_too_often():
    contract = rows_of("cp4tp2")
    rows = [
        collective("cp4tp2", "all-gather", "tp", "sample", 2 * 8 * 4, dtype="s32"),
        collective("cp4tp2", "all-gather", "tp", "sample", 2 * 8 * 2),
    ]
    splits = [split(v) for v in judge_rows(rows, contract, mesh="cp4tp2").verdicts]
    assert splits == [(8, {"replicated": 24}), (4, {"replicated": 12})]


# tp2ep4 of Mixtral: 40 MiB to the experts, 30 of them on the wire, and back; 16 MiB of tokens summed over tp
def test_experts_are_sent_their_tokens_and_the_tokens_are_summed():
    contract = rows_of("tp2ep4", **MIXTRAL)
    rows = [
        collective("tp2ep4", "all-to-all", "ep", "layer.moe.dispatch", 40 * MIB, loops=(32,)),
        collective("tp2ep4", "all-to-all", "ep", "layer.moe.combine", 40 * MIB, loops=(32,)),
        collective("tp2ep4", "all-reduce", "tp", "layer.moe.combine", 16 * MIB, loops=(32,)),
    ]
    judgement = judge_rows(rows, contract, mesh="tp2ep4")
    assert [split(v) for v in judgement.verdicts] == [(960 * MIB, {}), (960 * MIB, {}), (512 * MIB, {})]
    assert [judgement.served_bytes[at] for at in (1, 2, 3)] == [960 * MIB, 960 * MIB, 512 * MIB]


def test_sums_of_the_experts_slots_are_more_than_sums_of_tokens():
    # Before the combine: 8 experts · 2 groups · 320 slots, where 2048 tokens would do; summed where they are made
    contract = rows_of("tp2ep4", **MIXTRAL)
    late = collective("tp2ep4", "all-reduce", "tp", "layer.moe.combine", 40 * MIB, loops=(32,))
    early = collective("tp2ep4", "all-reduce", "tp", "layer.moe.experts", 40 * MIB, loops=(32,))
    judgement = judge_rows([late, early], contract, mesh="tp2ep4")
    assert [split(v) for v in judgement.verdicts] == [
        (512 * MIB, {"other": 768 * MIB}),
        (0, {"activation-gather": 1280 * MIB}),
    ]


def test_tokens_gathered_for_the_experts_and_scattered_back_serve_the_exchange():
    contract = rows_of("dp2ep4", **MIXTRAL)
    # dp2ep4: 15 MiB of 20 are asked.  A device has 1024 tokens, 8 MiB; gathered over ep 32 MiB, 3/4 of it sent: 24 MiB
    rows = [
        collective("dp2ep4", "all-gather", "ep", "layer.moe.dispatch", 32 * MIB, loops=(32,)),
        collective("dp2ep4", "reduce-scatter", "ep", "layer.moe.combine", 32 * MIB, loops=(32,)),
    ]
    judgement = judge_rows(rows, contract, mesh="dp2ep4")
    assert [split(v) for v in judgement.verdicts] == [(480 * MIB, {"replicated": 288 * MIB})] * 2


def test_a_gathered_expert_is_a_gathered_weight():
    contract = rows_of("dp2ep4", **MIXTRAL)
    row = collective("dp2ep4", "all-gather", "ep", "layer.moe.dispatch", MIB, parameters=(7,))
    assert split(judge_rows([row], contract, mesh="dp2ep4", roles={7: "weight"}).verdicts[0])[1] == {
        "weight-gather": 3 * MIB // 4
    }


def test_an_exchange_inside_the_experts_serves_nothing():
    row = collective("dp2ep4", "all-to-all", "ep", "layer.moe.experts", 4 * MIB, loops=(32,))
    assert split(judge_rows([row], rows_of("dp2ep4", **MIXTRAL), mesh="dp2ep4").verdicts[0]) == (
        0,
        {"layout-change": 96 * MIB},
    )


def test_a_stream_that_is_summed_whole_is_twice_what_a_scatter_sends():
    contract = rows_of("tp8+sp")
    rows = [
        collective("tp8", "all-reduce", "tp", "layer.mlp.down", 64 * MIB, loops=(32,)),
        collective("tp8", "all-gather", "tp", "layer.mlp.up", 64 * MIB, loops=(32,)),
    ]
    judgement = judge_rows(rows, contract, mesh="tp8")
    assert [split(v) for v in judgement.verdicts] == [(1792 * MIB, {"replicated": 1792 * MIB}), (1792 * MIB, {})]


def test_sums_in_place_of_scatters_serve_as_often_as_they_run():
    # Sums in 24 of 32 layers send as much as scatters in 48 would; a fourth of the row is not served for that
    contract = rows_of("tp8+sp")
    row = collective("tp8", "all-reduce", "tp", "layer.mlp.down", 64 * MIB, loops=(24,))
    judgement = judge_rows([row], contract, mesh="tp8")
    assert split(judgement.verdicts[0]) == (24 * 56 * MIB, {"replicated": 24 * 56 * MIB})
    assert judgement.served_bytes[place(contract, "layer.mlp.down", "reduce-scatter")] == 24 * 56 * MIB


def test_a_gather_of_everyone_s_ids_serves_a_broadcast_with_one_s():
    # The result is four ranks' 32 bytes, of which 3/4 travel: 96, where a broadcast of one's sends 24
    row = collective("cp4tp2", "all-gather", "cp", "pipeline.collect", 128, dtype="s32")
    assert split(judge_rows([row], rows_of("cp4tp2"), mesh="cp4tp2").verdicts[0]) == (24, {"replicated": 72})


def test_the_last_tokens_are_made_whole_at_the_head_and_logits_are_not():
    contract = rows_of("tp8+sp")
    tokens = collective("tp8", "all-reduce", "tp", "head", 65_536, zero_elsewhere=True)
    logits = collective(
        "tp8", "all-gather", "tp", "head", operands=[operand(8 * 128_256 * 2, scope="head", shape=(8, 128_256))]
    )
    judgement = judge_rows([tokens, logits], contract, mesh="tp8")
    assert split(judgement.verdicts[0]) == (57_344, {"replicated": 57_344})
    assert split(judgement.verdicts[1]) == (0, {"logits-gather": 8 * 128_256 * 2 * 7 // 8})


def test_hidden_states_whose_merged_dims_are_as_large_as_a_vocabulary_are_no_logits():
    # tiny: 8 sequences of 128, laid out as 2 · 512, and a vocabulary of 512
    contract = rows_of("tp8+sp", model_name="tiny", phases=("decode",))
    row = collective("tp8", "all-gather", "tp", "head", operands=[operand(2048, scope="head", shape=(2, 512))])
    assert split(judge_rows([row], contract, mesh="tp8").verdicts[0]) == (1792, {})


def test_a_whole_prompt_at_the_head_is_more_of_what_the_head_asks():
    row = collective(
        "tp8", "all-gather", "tp", "head", operands=[operand(64 * MIB, scope="head", shape=(8, 1024, 4096))]
    )
    assert split(judge_rows([row], rows_of("tp8+sp"), mesh="tp8").verdicts[0]) == (57_344, {"other": 56 * MIB - 57_344})


def shift_of(mesh, payload, **where):
    pairs = [(d, d + 4) for d in range(4)]
    return collective(mesh, "collective-permute", "pp", "pipeline.shift", payload, pairs=pairs, **where)


def test_outside_of_the_loop_of_ticks_nothing_is_a_tick_s():
    # m = 4, pp = 2: five ticks, in a loop; the head's tokens come in five hops, once a step, after it
    contract = rows_of("tp4pp2+sp")
    ring = [(d, d // 4 * 4 + (d + 1) % 4) for d in range(8)]
    hop = {"form": "windowed-einsum", "pairs": ring}
    rows = [
        shift_of("tp4pp2", 4 * MIB, loops=(5,)),
        *[collective("tp4pp2", "collective-permute", "tp", "head", 16_384, **hop) for _ in range(5)],
    ]
    shift, *hops = (split(v) for v in judge_rows(rows, contract).verdicts)
    assert shift == (8 * MIB, {"bubble": 2 * MIB})
    # On one of two stages three hops of 16 KiB are asked, as a mean over all: 24 KiB; the other stage has as much again
    assert [cause for _, causes in hops for cause in causes] == ["replicated"] * 3 + [
        "replicated",
        "windowed-einsum",
    ] * 2
    assert sum(inherent_bytes for inherent_bytes, _ in hops) == 24_576


def test_where_ticks_are_unrolled_a_loop_of_as_many_trips_is_of_something_else():
    # m = 1, pp = 2: two ticks, unrolled; the windowed einsum of one of two layers is a loop of two trips, in each tick
    case = Case.read("tp4pp2+sp", phases=("prefill",), microbatches=1)
    contract = required_rows(case.at(model=replace(case.model, layers=4)))
    chunk = 64 * MIB // 4
    ring = [(d, d // 4 * 4 + (d + 1) % 4) for d in range(8)]
    hop = {"form": "windowed-einsum", "pairs": ring}
    layer = [
        collective("tp4pp2", "collective-permute", "tp", "layer.mlp.down", chunk, loops=(2,), **hop),
        collective("tp4pp2", "collective-permute", "tp", "layer.mlp.down", chunk, **hop),
    ]
    rows = [*layer, *layer, shift_of("tp4pp2", 16 * MIB), *layer, *layer, shift_of("tp4pp2", 16 * MIB)]
    rows = [replace(row, name=f"{row.kind}.{at}") for at, row in enumerate(rows)]
    splits = [split(v) for v in judge_rows(rows, contract).verdicts]
    needed = [(2 * chunk, {}), (chunk, {})] * 2
    idle = [(0, {"bubble": 2 * chunk}), (0, {"bubble": chunk})] * 2
    assert splits == [*needed, (8 * MIB, {}), *idle, (0, {"bubble": 8 * MIB})]


def test_the_scatter_and_the_gather_of_one_sum_are_no_two_ticks():
    # m = 1, pp = 2: two ticks, unrolled; the embedding's sum comes once, as two: 64 MiB · 3/4 each, half on stage 0
    contract = rows_of("tp4pp2", microbatches=1)
    rows = [
        collective("tp4pp2", "reduce-scatter", "tp", "embed", 64 * MIB),
        collective("tp4pp2", "all-gather", "tp", "embed", 64 * MIB),
        shift_of("tp4pp2", 64 * MIB),
        shift_of("tp4pp2", 64 * MIB),
    ]
    splits = [split(v) for v in judge_rows(rows, contract).verdicts]
    assert splits[:2] == [(24 * MIB, {"replicated": 24 * MIB})] * 2
