"""Collectives that a program writes as permutes: compiled for TPUs, and what must not be taken for one.

One step of T·D·2 = 262,144 bytes: a gather or a scatter sends (n−1)/n of it, a sum 2(n−1)/n.
"""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from compare import collectives
from compare.contract.row import ContractRow
from compare.hlo.collectives.collectives import collectives as read_collectives
from compare.hlo.text.module import read
from compare.verdict.verdict import judge
from tests.compare.verdict.programs import collective, operand
from tests.compare.verdict.test_verdict import judge_rows, split

T, D, F = 256, 512, 1024
SCOPE = "layer.mlp.down"
KIB = 1024


def around(n):
    return [(device, (device + 1) % n) for device in range(n)]


def gather_hop_by_hop(x, w, *, n):
    place, part = jax.lax.axis_index("tp"), 2 * x
    whole = jnp.zeros((T, D), x.dtype)
    for hop in range(n):
        whole = jax.lax.dynamic_update_slice(whole, part, ((place - hop) % n * (T // n), 0))
        part = jax.lax.ppermute(part, "tp", around(n)) if hop < n - 1 else part
    return whole @ w


def gather_in_a_loop(x, w, *, n):
    """All n hops: the last brings each device its own part."""

    def hop(number, carry):
        whole, part = carry
        whole = jax.lax.dynamic_update_slice(whole, part, ((place - number) % n * (T // n), 0))
        return whole, jax.lax.ppermute(part, "tp", around(n))

    place = jax.lax.axis_index("tp")
    return jax.lax.fori_loop(0, n, hop, (jnp.zeros((T, D), x.dtype), 2 * x))[0] @ w


def collective_matmul(x, w, *, n):
    place, part = jax.lax.axis_index("tp"), 2 * x
    out = jnp.zeros((T, w.shape[1]), x.dtype)
    for hop in range(n):
        out = jax.lax.dynamic_update_slice(out, part @ w, ((place - hop) % n * (T // n), 0))
        part = jax.lax.ppermute(part, "tp", around(n)) if hop < n - 1 else part
    return out


def scatter_hop_by_hop(x, w, *, n):
    place, partial = jax.lax.axis_index("tp"), x @ w
    chunks = [jax.lax.dynamic_slice(partial, ((place - hop) % n * (T // n), 0), (T // n, D)) for hop in range(1, n + 1)]
    total = chunks[0]
    for chunk in chunks[1:]:
        total = jax.lax.ppermute(total, "tp", around(n)) + chunk
    return total


def sum_hop_by_hop(x, w, *, n):
    place, part = jax.lax.axis_index("tp"), scatter_hop_by_hop(x, w, n=n)
    whole = jax.lax.dynamic_update_slice(jnp.zeros((T, D), part.dtype), part, (place * (T // n), 0))
    for hop in range(1, n):
        part = jax.lax.ppermute(part, "tp", around(n))
        whole = jax.lax.dynamic_update_slice(whole, part, ((place - hop) % n * (T // n), 0))
    return whole


def sum_by_doubling(x, w, *, n):
    total = x @ w
    for bit in range(n.bit_length() - 1):
        total += jax.lax.ppermute(total, "tp", [(device, device ^ 1 << bit) for device in range(n)])
    return jnp.maximum(total, 0)


def sum_by_turning(x, w, *, n):
    part = total = x @ w
    for _ in range(n - 1):
        part = jax.lax.ppermute(part, "tp", around(n))
        total += part
    return total


COLUMNS, ROWS = PartitionSpec(None, "tp"), PartitionSpec("tp")
GATHERS, SUMS = ((T, D), ROWS, (D, F), COLUMNS, COLUMNS), ((T, F), COLUMNS, (F, D), ROWS, PartitionSpec())
SCATTERS = (*SUMS[:4], ROWS)

COMPILED = [
    # function, its arrays, devices, the row's kind; of its bytes a step: served, replicated (both in KiB)
    (gather_hop_by_hop, GATHERS, 4, "all-gather", 192, 0),
    (gather_in_a_loop, GATHERS, 4, "all-gather", 192, 64),
    (collective_matmul, GATHERS, 4, "all-gather", 192, 0),
    (scatter_hop_by_hop, SCATTERS, 4, "reduce-scatter", 192, 0),
    (scatter_hop_by_hop, SCATTERS, 4, "all-reduce", 192, 0),  # half of 384
    (sum_hop_by_hop, SUMS, 4, "all-reduce", 384, 0),
    (sum_by_doubling, SUMS, 4, "all-reduce", 384, 128),  # twice 256
    (sum_by_turning, SUMS, 4, "all-reduce", 384, 384),  # three times 256
    (sum_by_turning, SUMS, 2, "all-reduce", 256, 0),
]


def row_of(kind, n):
    sends = {"all-reduce": 2}.get(kind, 1) * (n - 1) * 256 * KIB // n
    return ContractRow(
        scope=SCOPE, kind=kind, axes="tp", executions=1, payload_bytes=256 * KIB, wire_bytes=sends,
        step_wire_bytes=sends,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "arrays", "n", "kind", "served", "replicated"), COMPILED,
    ids=[f"{case[0].__name__}-{case[2]}-{case[3]}" for case in COMPILED],
)  # fmt: skip
def test_permutes_that_make_a_collective_serve_its_row(function, arrays, n, kind, served, replicated):
    mesh = AbstractMesh((n,), ("tp",))

    def step(x, w):
        with jax.named_scope(SCOPE):
            return jax.shard_map(
                lambda x, w: function(x, w, n=n), mesh=mesh, in_specs=(arrays[1], arrays[3]), out_specs=arrays[4],
                check_vma=False,
            )(x, w)  # fmt: skip

    inputs = [
        jax.ShapeDtypeStruct(shape, "bfloat16", sharding=NamedSharding(mesh, spec))
        for shape, spec in (arrays[:2], arrays[2:4])
    ]
    lowered = jax.jit(step).trace(*inputs).lower(lowering_platforms=("tpu",))
    text = collectives(lowered, axes={"tp": n}, topology=f"v5e:{n // 2}x2").text
    contract = [row_of(kind, n)]
    judgement = judge(read_collectives(read(text), {"tp": n}, contract=contract), contract, axes={"tp": n})
    assert {verdict.collective.kind for verdict in judgement.verdicts} == {"collective-permute"}
    assert judgement.served_bytes == (served * KIB,)
    assert sum(verdict.inflated_bytes for verdict in judgement.verdicts) == replicated * KIB
    assert not any(verdict.induced_bytes for verdict in judgement.verdicts)


def permutes(elements, *, hops=(0, 0, 0), **uses):
    """To the next of four, each in its own hop of the data that it carries."""
    return [collective("tp4", "collective-permute", "tp", SCOPE, pairs=around(4), name=f"hop.{number}",
                       operands=[operand(2 * elements, scope=SCOPE, earlier_hops=hop, **uses)])
            for number, hop in enumerate(hops)]  # fmt: skip


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
