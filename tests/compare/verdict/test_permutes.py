"""Collectives that a program writes as permutes: compiled for TPUs, and what must not be taken for one.

One step of T·D·2 = 262,144 bytes: a gather or a scatter sends (n−1)/n of it, a sum 2(n−1)/n.
"""

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.verdict.verdict import judge
from tests.compare.verdict.programs import collective, operand, required
from tests.compare.verdict.test_verdict import judge_rows, split

T, D = 256, 512
SCOPE = "layer.mlp.down"
KIB = 1024

COMPILED = [
    # program, devices, the row's kind; of its bytes a step: served, replicated (both in KiB)
    ("gather_hop_by_hop", 4, "all-gather", 192, 0),
    ("gather_in_a_loop", 4, "all-gather", 192, 64),
    ("collective_matmul", 4, "all-gather", 192, 0),
    ("scatter_hop_by_hop", 4, "reduce-scatter", 192, 0),
    ("scatter_hop_by_hop", 4, "all-reduce", 192, 0),  # half of 384
    ("sum_hop_by_hop", 4, "all-reduce", 384, 0),
    ("sum_by_doubling", 4, "all-reduce", 384, 128),  # twice 256
    ("sum_by_turning", 4, "all-reduce", 384, 384),  # three times 256
    ("sum_by_turning", 2, "all-reduce", 256, 0),
]


def row_of(kind, n):
    sends = {"all-reduce": 2}.get(kind, 1) * (n - 1) * 256 * KIB // n
    return required(SCOPE, kind, "tp", 256 * KIB, sends)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n", "kind", "served", "replicated"), COMPILED)
def test_permutes_that_make_a_collective_serve_its_row(name, n, kind, served, replicated):
    from tests.compare.verdict import hop_programs

    contract = [row_of(kind, n)]
    module = read(hop_programs.compile_step(name, n))
    judgement = judge(collectives(module, {"tp": n}, contract=contract), contract, axes={"tp": n})
    assert {verdict.collective.kind for verdict in judgement.verdicts} == {"collective-permute"}
    assert judgement.served_bytes == (served * KIB,)
    assert sum(verdict.inflated_bytes for verdict in judgement.verdicts) == replicated * KIB
    assert not any(verdict.induced_bytes for verdict in judgement.verdicts)


def around(n):
    return [(device, (device + 1) % n) for device in range(n)]


def permutes(elements, *, hops=(0, 0, 0), **uses):
    """To the next of four, each in its own hop of the data that it carries."""
    return [
        collective(
            "tp4",
            "collective-permute",
            "tp",
            SCOPE,
            pairs=around(4),
            name=f"hop.{number}",
            operands=[operand(2 * elements, scope=SCOPE, earlier_hops=hop, **uses)],
        )
        for number, hop in enumerate(hops)
    ]


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("all-gather", permutes(T * D // 4)),  # a halo: three arrays, each to the next device, and no further
        ("all-gather", permutes(T * D // 4, hops=(0, 1))),  # one hop too few
        ("all-gather", permutes(T * D // 8, hops=(0, 1, 2))),  # too little of it
        ("all-reduce", permutes(T * D, added_up=True)),  # three neighbours' sums, of four
        ("all-reduce", permutes(T * D, hops=(0, 1, 2))),  # moved, and not added up
    ],
)
def test_other_permutes_are_neither_gather_nor_sum(kind, rows):
    judgement = judge_rows(rows, [row_of(kind, 4)], mesh="tp4")
    assert judgement.served_bytes == (0,)
    assert {cause for verdict in judgement.verdicts for cause in verdict.causes} == {"layout-change"}


def test_a_permute_beside_the_row_s_own_sum_is_no_sum():
    """What it brings is added to a residual: `added_up` alone does not tell it from a partial sum."""
    total = collective("tp4", "all-reduce", "tp", SCOPE, 256 * KIB, reducer="add")
    (moved,) = permutes(T * D, hops=(0,), added_up=True)
    judged = judge_rows([moved, total], [row_of("all-reduce", 4)], mesh="tp4").verdicts
    assert [split(verdict) for verdict in judged] == [(0, {"layout-change": 256 * KIB}), (384 * KIB, {})]
