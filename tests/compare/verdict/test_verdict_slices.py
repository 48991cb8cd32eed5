"""Contracts and verdicts where axes lie over several slices."""

import pytest

from compare.verdict.verdict import judge
from tests.compare.verdict.programs import collective
from tests.compare.verdict.test_verdict import split
from tests.compare.verdict.test_verdict_products import MIB, MIXTRAL, place, rows_of


@pytest.mark.parametrize("mesh", ["tp32@2xv5e:4x4", "ep32@2xv5e:4x4"])
def test_an_axis_over_slices_says_both_networks(mesh):
    axis = mesh[:2]
    options = {} if axis == "tp" else {**MIXTRAL, "batch": 32}
    if axis == "ep":  # 8 experts cannot be on 32 devices
        options |= {"model_name": "qwen3-30b-a3b"}
    assert {row.network for row in rows_of(mesh, **options) if row.axes == axis} == {"ici+dcn"}


def test_an_axis_between_slices_is_on_their_network_and_one_inside_is_not():
    networks = {row.scope: row.network for row in rows_of("pp2tp16@2xv5e:4x4")}
    assert networks["pipeline.shift"] == networks["pipeline.collect"] == "dcn"
    assert networks["layer.mlp.down"] == "ici"


WITHIN, BETWEEN = [(0, 1, 2, 3), (4, 5, 6, 7)], [(d, d + 4) for d in range(4)]
STEPS = [
    collective("tp8", kind, "tp:sub", "layer.mlp.down", payload, groups=groups, loops=(32,), part_of="tp")
    for kind, payload, groups in (
        ("reduce-scatter", 64 * MIB, WITHIN),
        ("all-reduce", 16 * MIB, BETWEEN),
        ("all-gather", 64 * MIB, WITHIN),
    )
]
"""A sum of 64 MiB over two slices of four: scattered over 4, summed over 2 slices, gathered over 4."""


def test_the_steps_of_a_sum_over_slices_fill_its_row_together():
    # 64 MiB · 2·7/8 = 112 MiB
    contract = rows_of("tp8")
    judgement = judge(STEPS, contract, axes={"tp": 8})
    assert [split(v) for v in judgement.verdicts] == [(32 * 48 * MIB, {}), (32 * 16 * MIB, {}), (32 * 48 * MIB, {})]
    assert judgement.served_bytes[place(contract, "layer.mlp.down", "all-reduce")] == 32 * 112 * MIB


def test_the_gather_that_ends_a_sum_over_slices_is_too_much_where_a_scatter_would_do():
    # As above, for reduce-scatters of 64 MiB · 7/8 = 56 MiB: 48 of them within, 8 of the 16 between; no gather
    contract = rows_of("tp8+sp")
    splits = [split(v) for v in judge(STEPS, contract, axes={"tp": 8}).verdicts]
    assert splits == [
        (32 * 48 * MIB, {}),
        (32 * 8 * MIB, {"replicated": 32 * 8 * MIB}),
        (0, {"replicated": 32 * 48 * MIB}),
    ]
