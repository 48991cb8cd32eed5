"""Verdicts on collectives written by hand: what stands for a broadcast and a scatter, and which ticks are idle."""

import pytest

from compare.contract.reference_algorithms import required_rows
from meshes.case import Case
from meshes.devices.mesh_spec import MeshSpec
from tests.compare.verdict.programs import collective, operand
from tests.compare.verdict.test_verdict import judge_rows, split

CORE = ("collective-permute", "cp", "layer.attention.core")


def contract_of(mesh, scope, kind, *, phase="prefill", **options):
    rows = required_rows(Case.read(mesh, phases=(phase,), **options))
    return [row for row in rows if (row.scope, row.kind) == (scope, kind)]


def sends(mesh, axis, source, target):
    """One pair in each group of an axis."""
    return [(group[source], group[target]) for group in MeshSpec.parse(mesh).groups(axis)]


def test_permutes_from_one_rank_to_each_other_are_its_broadcast():
    # cp4tp2, 8 sequences: 32 bytes of ids from one rank of four, three times: 3/4 of 32
    contract = contract_of("cp4tp2", "pipeline.collect", "collective-broadcast")
    rows = [
        collective(
            "cp4tp2",
            "collective-permute",
            "cp",
            "pipeline.collect",
            32,
            dtype="s32",
            pairs=sends("cp4tp2", "cp", 3, rank),
        )
        for rank in range(3)
    ]
    judgement = judge_rows(rows, contract, mesh="cp4tp2")
    assert [split(v) for v in judgement.verdicts] == [(8, {})] * 3
    assert judgement.served_bytes == (24,)


def test_a_permute_in_which_all_ranks_send_is_no_broadcast():
    contract = contract_of("cp4tp2", "pipeline.collect", "collective-broadcast")
    around = [pair for rank in range(4) for pair in sends("cp4tp2", "cp", rank, (rank + 1) % 4)]
    row = collective("cp4tp2", "collective-permute", "cp", "pipeline.collect", 32, dtype="s32", pairs=around)
    assert split(judge_rows([row], contract, mesh="cp4tp2").verdicts[0]) == (0, {"layout-change": 32})


def test_the_shard_that_has_the_last_tokens_may_send_them_instead_of_a_gather():
    # tp8+sp: 8·4096·2 bytes from one shard of eight, seven times
    contract = contract_of("tp8+sp", "head", "all-gather")
    rows = [
        collective("tp8", "collective-permute", "tp", "head", 65_536, pairs=sends("tp8", "tp", 7, shard))
        for shard in range(7)
    ]
    judgement = judge_rows(rows, contract, mesh="tp8")
    assert [split(v) for v in judgement.verdicts] == [(8192, {})] * 7
    assert judgement.served_bytes == (contract[0].step_wire_bytes,) == (57_344,)


def test_an_exchange_of_all_partial_sums_is_a_scatter():
    # In decode t·D·b = 8·4096·2, of which 7/8 travel in each of 32 layers
    contract = contract_of("tp8+sp", "layer.mlp.down", "reduce-scatter", phase="decode")
    row = collective("tp8", "all-to-all", "tp", "layer.mlp.down", 65_536, loops=(32,), added_up=True)
    assert split(judge_rows([row], contract, mesh="tp8").verdicts[0]) == (32 * 57_344, {})


@pytest.mark.parametrize(("mesh", "kind"), [("tp8+sp", "reduce-scatter"), ("tp8", "all-reduce")])
def test_an_exchange_that_adds_nothing_up_is_no_sum(mesh, kind):
    contract = contract_of(mesh, "layer.mlp.down", kind, phase="decode")
    row = collective("tp8", "all-to-all", "tp", "layer.mlp.down", 65_536, loops=(32,))
    judgement = judge_rows([row], contract, mesh="tp8")
    assert split(judgement.verdicts[0]) == (0, {"layout-change": 32 * 57_344})
    assert judgement.served_bytes == (0,)


def exchange(payload, *, members=range(1, 8), **uses):
    """Permutes from each shard of eight to others, in each of 32 layers."""
    return [
        collective(
            "tp8",
            "collective-permute",
            "tp",
            "layer.mlp.down",
            payload,
            loops=(32,),
            pairs=[(at, (at + far) % 8) for at in range(8)],
            **uses,
        )
        for far in members
    ]


def test_permutes_of_partial_sums_from_each_to_each_other_are_a_scatter():
    # Seven times 1/8 of 8·4096·2
    contract = contract_of("tp8+sp", "layer.mlp.down", "reduce-scatter", phase="decode")
    judgement = judge_rows(exchange(8192, added_up=True), contract, mesh="tp8")
    assert [split(v) for v in judgement.verdicts] == [(32 * 8192, {})] * 7
    assert judgement.served_bytes == (contract[0].step_wire_bytes,) == (32 * 57_344,)


def test_permutes_of_partial_sums_and_a_gather_are_an_all_reduce():
    contract = contract_of("tp8", "layer.mlp.down", "all-reduce", phase="decode")
    gather = collective("tp8", "all-gather", "tp", "layer.mlp.down", 65_536, loops=(32,))
    judgement = judge_rows([*exchange(8192, added_up=True), gather], contract, mesh="tp8")
    assert [split(v) for v in judgement.verdicts] == [(32 * 8192, {})] * 7 + [(32 * 57_344, {})]
    assert judgement.served_bytes == (contract[0].step_wire_bytes,)


@pytest.mark.parametrize(
    "rows",
    [
        exchange(8192),  # not added up
        exchange(8192, added_up=True, members=[1] * 7),  # to one neighbour alone, and not handed on
        exchange(8192, added_up=True, members=range(1, 7)),  # one is left out
        exchange(65_536, added_up=True, members=[1]),  # all of it, once
    ],
)
def test_other_permutes_are_no_scatter(rows):
    contract = contract_of("tp8+sp", "layer.mlp.down", "reduce-scatter", phase="decode")
    judgement = judge_rows(rows, contract, mesh="tp8")
    assert {split(v)[0] for v in judgement.verdicts} == {0}
    assert judgement.served_bytes == (0,)


def test_an_exchange_of_all_partial_sums_and_a_gather_are_an_all_reduce():
    # 7/8 of 8·4096·2 travel twice in each of 32 layers, as in the all-reduce that the plan asks for
    contract = contract_of("tp8", "layer.mlp.down", "all-reduce", phase="decode")
    rows = [
        collective("tp8", kind, "tp", "layer.mlp.down", 65_536, loops=(32,), added_up=kind == "all-to-all")
        for kind in ("all-to-all", "all-gather")
    ]
    judgement = judge_rows(rows, contract, mesh="tp8")
    assert [split(v) for v in judgement.verdicts] == [(32 * 57_344, {})] * 2
    assert judgement.served_bytes == (contract[0].step_wire_bytes,) == (32 * 114_688,)


def test_an_exchange_of_a_product_s_operand_is_no_sum():
    contract = contract_of("tp8", "layer.mlp.down", "all-reduce", phase="decode")
    hidden = operand(65_536, scope="layer.mlp.down", feeds_product=True, added_up=True)
    row = collective("tp8", "all-to-all", "tp", "layer.mlp.down", loops=(32,), operands=[hidden])
    assert split(judge_rows([row], contract, mesh="tp8").verdicts[0]) == (0, {"layout-change": 32 * 57_344})


def test_an_exchange_of_less_is_a_change_of_layout():
    contract = contract_of("tp8+sp", "layer.mlp.down", "reduce-scatter", phase="decode")
    row = collective("tp8", "all-to-all", "tp", "layer.mlp.down", 8192, loops=(32,), added_up=True)
    assert split(judge_rows([row], contract, mesh="tp8").verdicts[0]) == (0, {"layout-change": 32 * 7168})


def test_ticks_of_the_stages_that_they_concern_have_no_bubble():
    """Ring hops of unrolled ticks: four microbatches in five ticks, of one stage in the first and in the last."""
    mesh, contract = "pp2cp2tp2", contract_of("pp2cp2tp2", "layer.attention.core", "collective-permute")
    spec, ring = MeshSpec.parse(mesh), []
    for first, second in spec.groups("cp"):
        ring += [(first, second), (second, first)]
    stages = [{0}, {0, 1}, {0, 1}, {0, 1}, {1}]
    hop = 2 * 1024 * 1024  # t = 2·512: 2·1024·4·128·2, keys and values together
    rows = []
    for busy in stages:
        pairs = [pair for pair in ring if spec.coordinates[pair[0]]["pp"] in busy]
        rows.append(collective(mesh, *CORE, hop, executions=16, pairs=pairs))
    judgement = judge_rows(rows, contract, mesh=mesh)
    assert [split(v) for v in judgement.verdicts] == [(16 * hop // 2, {}), *[(16 * hop, {})] * 3, (16 * hop // 2, {})]
    assert judgement.served_bytes == (64 * hop,)
