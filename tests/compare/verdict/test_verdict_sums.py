"""What adds the partial sums of tensor parallelism up, and what only looks like it: docs/definitions.md, section 3.

Llama-3.2-1B (D=2048, F=8192, 16 layers) on dp2tp4, B=8, S=512: t = 2048 tokens, so that a row's all-reduce is of
2048·2048·2 = 8,388,608 bytes and 2·3/4 of that on the wire.
"""

import pytest

from tests.compare.verdict.programs import collective, operand
from tests.compare.verdict.test_verdict import case_rows, judge_rows, split

MESH = "dp2tp4"
T, D, F = 2048, 2048, 8192
PAYLOAD = T * D * 2
LAYERS = 16
HALF = LAYERS * PAYLOAD * 3 // 4
"""Of a row's bytes in a step: what its scatter sends, and what its gather does."""


def contract(**options):
    return case_rows(MESH, model_name="llama-3.2-1b", seq=512, **options)


def row(
    kind, scope, shape=(T, D), *, name=None, feeds=False, loops=(LAYERS,), scattered_by=(), form="sync", dtype="bf16"
):
    """One collective over tp of one array."""
    size = shape[0] * shape[1] * {"bf16": 2, "f32": 4}[dtype]
    part = operand(size, scope=scope, shape=shape, dtype=dtype, feeds_product=feeds)
    pairs = [(d, d // 4 * 4 + (d + 1) % 4) for d in range(8)] if kind == "collective-permute" else None
    return collective(
        MESH,
        kind,
        "tp",
        scope,
        operands=[part],
        loops=loops,
        name=name,
        scattered_by=scattered_by,
        form=form,
        pairs=pairs,
    )


def verdicts(*rows, **options):
    judgement = judge_rows(rows, contract(**options), mesh=MESH)
    served = {
        required.scope: amount for required, amount in zip(contract(**options), judgement.served_bytes, strict=True)
    }
    return [split(verdict) for verdict in judgement.verdicts], served


@pytest.mark.parametrize("scope", ["layer.mlp.down", "layer.attention.out"])
def test_a_product_whose_operand_is_gathered_has_that_gather_induced(scope):
    """The weight is split on its output dim: the hidden activation is gathered before, the output after."""
    hidden, full = row("all-gather", scope, (T, F), feeds=True), row("all-gather", scope)
    judged, served = verdicts(hidden, full)
    assert hidden.step_wire_bytes == 402_653_184
    assert judged == [(0, {"activation-gather": 402_653_184}), (HALF, {})]
    assert served[scope] == HALF == 100_663_296  # and as much is not


@pytest.mark.parametrize("kind", ["all-gather", "all-reduce"])
def test_the_scope_that_bears_the_gather_makes_no_difference(kind):
    """Of a sum, one of parts that are zero elsewhere."""
    for scope in ("layer.mlp.down", "layer.mlp.up"):
        gather = row(kind, scope, (T, F), feeds=True)
        assert verdicts(gather)[0] == [(0, {"activation-gather": gather.step_wire_bytes})]


def test_the_permutes_that_gather_a_products_operand_are_no_sum():
    hop = row("collective-permute", "layer.mlp.down", (T, D // 4), form="windowed-einsum", feeds=True)
    (judged,), served = verdicts(hop)
    assert judged == (0, {"activation-gather": hop.step_wire_bytes})
    assert served["layer.mlp.down"] == 0


@pytest.mark.parametrize(
    ("shape", "serves"), [((T, D), True), ((T, F), False), ((T // 2, D), False), ((T, 2 * D), False)]
)
def test_a_gather_makes_as_much_whole_as_the_sum_is(shape, serves):
    gather = row("all-gather", "layer.mlp.down", shape)
    (judged,), _ = verdicts(gather)
    assert judged[0] == (gather.step_wire_bytes if serves else 0)


def test_the_embeddings_gather_may_be_of_all_tokens_or_of_a_microbatch():
    rows = case_rows("tp4pp2", model_name="llama-3.2-1b", seq=512)
    for times, tokens in ((1, 4096), (4, 1024)):
        part = operand(tokens * D * 2, scope="embed", shape=(tokens, D))
        gather = collective("tp4pp2", "all-gather", "tp", "embed", operands=[part], executions=times)
        (judged,) = judge_rows([gather], rows, mesh="tp4pp2").verdicts
        # The first stage alone needs it: the other half of the devices gathers it, too.
        assert split(judged) == (gather.step_wire_bytes // 2, {"replicated": gather.step_wire_bytes // 2})


def scattered_stream(*more):
    """The residual is kept split: each block scatters its sum, and gathers what the next product reads."""
    hops = [
        row("collective-permute", "layer.mlp.down", (T, D // 4), form="windowed-einsum", name=f"hop.{at}")
        for at in range(3)
    ]
    return [
        row("reduce-scatter", "embed", loops=(), name="first"),
        row("all-gather", "layer.attention.qkv", scattered_by=("first", "hop.2", "out"), name="qkv"),
        row("reduce-scatter", "layer.attention.out", name="out"),
        row("all-gather", "layer.mlp.up", scattered_by=("first", "out", "hop.2"), name="up"),
        *hops,
        *more,
    ]


def test_a_stream_that_is_kept_split_moves_what_the_plan_asks():
    judged, served = verdicts(*scattered_stream())
    assert [inherent for inherent, _ in judged] == [6_291_456, HALF, HALF, HALF, *[HALF // 3] * 3]
    assert all(not causes for _, causes in judged)
    assert served == {"layer.attention.out": 2 * HALF, "layer.mlp.down": 2 * HALF, "embed": 6_291_456, "sample": 0}


def test_what_is_gathered_twice_is_replicated():
    again = row("all-gather", "norm", scattered_by=("first", "out", "hop.2"), name="again")
    judged, served = verdicts(*scattered_stream(again))
    assert judged[-1] == (0, {"replicated": HALF})
    assert served["layer.mlp.down"] == 2 * HALF


def test_one_gather_completes_one_scatter():
    """Of a row that is scattered in half of the layers, and reduced in the others, half of the gathers are too many."""
    rows = [
        row("reduce-scatter", "layer.mlp.down", loops=(8,), name="rs"),
        row("all-gather", "layer.mlp.up", scattered_by=("rs",)),
    ]
    judged, served = verdicts(*rows)
    assert judged == [(HALF // 2, {}), (HALF // 2, {"replicated": HALF // 2})]
    assert served["layer.mlp.down"] == HALF


def test_a_gather_of_another_size_completes_nothing():
    rows = [
        row("reduce-scatter", "layer.mlp.down", name="rs"),
        row("all-gather", "layer.mlp.up", (T // 2, D), scattered_by=("rs",)),
    ]
    judged, _ = verdicts(*rows)
    assert judged[1] == (0, {"activation-gather": HALF // 2})


def test_a_gather_after_the_loop_completes_the_last_scatter_before_it():
    """It is one more than layer.mlp.down's scatters where each layer gathers, too; without those it is the only one."""
    ends = row("all-gather", "head", loops=(), scattered_by=("first", "out", "hop.2"), name="last")
    judged, _ = verdicts(*scattered_stream(ends))
    assert judged[-1] == (0, {"replicated": PAYLOAD * 3 // 4})
    alone = [row_of_stream for row_of_stream in scattered_stream(ends) if row_of_stream.name != "qkv"]
    judged, served = verdicts(*alone)
    assert judged[-1] == (PAYLOAD * 3 // 4, {})
    assert served["layer.mlp.down"] == HALF + PAYLOAD * 3 // 4
