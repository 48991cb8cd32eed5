"""Which row a gather serves, and when a sum of parts that are zero elsewhere is one; see test_verdict_sums."""

from dataclasses import replace

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.verdict.verdict import judge
from tests.compare.verdict.programs import collective, operand, required
from tests.compare.verdict.test_verdict_sums import HALF, LAYERS, MESH, D, T, row, verdicts

ONE = T * D * 2 * 3 // 4
"""What a gather of all tokens sends, once."""


@pytest.mark.parametrize("scope", ["embed", "layer.mlp.down", "norm"])
def test_a_gather_completes_what_was_scattered_whatever_scope_it_bears(scope):
    """The stream is made whole after the last layer: a 17th gather of what the layers have scattered 16 times."""
    rows = [
        row("reduce-scatter", "embed", loops=(), name="first"),
        row("reduce-scatter", "layer.mlp.down", name="down"),
        row("all-gather", "layer.attention.qkv", scattered_by=("first", "down"), name="qkv"),
        row("all-gather", scope, loops=(), scattered_by=("first", "down"), name="last"),
    ]
    judged, served = verdicts(*rows)
    assert judged == [(ONE, {}), (HALF, {}), (HALF, {}), (0, {"replicated": ONE})]
    assert served["embed"] == ONE
    assert served["layer.mlp.down"] == 2 * HALF == 2 * LAYERS * ONE


@pytest.mark.parametrize(
    ("tokens", "gathers", "serves"), [(T, True, True), (T, False, True), (4, True, False), (4, False, False)]
)
def test_a_sum_of_parts_that_are_zero_elsewhere_makes_as_much_whole_as_a_gather(tokens, gathers, serves):
    """The last tokens of a split stream come as a sum: they are too few to be the row of the scope that it bears."""
    part = replace(operand(tokens * D * 2, scope="embed", shape=(tokens, D)), zero_elsewhere=gathers)
    total = collective(MESH, "all-reduce", "tp", "embed", operands=[part])
    (judged,), served = verdicts(total)
    sent = tokens * D * 2 * 2 * 3 // 4
    assert judged == ((sent, {}) if serves else (0, {"activation-gather": sent}))
    assert served["embed"] == (sent if serves else 0)


SCALED = """HloModule scaled, is_scheduled=true, num_partitions=8

ENTRY main {
  weight = bf16[64,1024] parameter(0)
  tokens = bf16[64,1024] parameter(1)
  scale = bf16[] constant(1.5)
  scales = bf16[64,1024] broadcast(scale), dimensions={}
  scaled = bf16[64,1024] multiply(weight, scales)
  both = bf16[64,1024] multiply(scaled, tokens)
  c0 = bf16[256,1024] all-gather(scaled), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}, use_global_device_ids=true, metadata={op_name="layer.mlp.up/x"}
  c1 = bf16[256,1024] all-gather(both), channel_id=2, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={0}, use_global_device_ids=true, metadata={op_name="layer.mlp.up/x"}
  ROOT end = bf16[] constant(0)
}
"""  # noqa: E501


def test_what_is_computed_from_weights_alone_is_a_weight_and_serves_no_row_of_tokens():
    """Gathers of 256·1024·2 bytes, of which 3/4 travel: the plan asks for one, of tokens, and the weights' is first."""
    size = 256 * 1024 * 2
    plan = [required("layer.mlp.up", "all-gather", "tp", size, size * 3 // 4)]
    axes, roles = {"dp": 2, "tp": 4}, {0: "weight", 1: "input"}
    rows = collectives(read(SCALED), axes, contract=plan, weights=frozenset({0}))
    assert [row.operands[0].of_weights for row in rows] == [True, False]
    judged = judge(rows, plan, axes=axes, roles=roles).verdicts
    assert [(v.inherent_bytes, dict(v.causes)) for v in judged] == [(0, {"weight-gather": 393_216}), (393_216, {})]
    unknown = collectives(read(SCALED), axes, contract=plan)
    assert [row.operands[0].of_weights for row in unknown] == [False, False]
