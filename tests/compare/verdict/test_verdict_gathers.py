"""Which row a gather serves, and when a sum of parts that are zero elsewhere is one; see test_verdict_sums."""

from dataclasses import replace

import pytest

from tests.compare.verdict.programs import collective, operand
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


@pytest.mark.parametrize(("tokens", "gathers", "serves"), [(T, True, True), (4, True, False), (4, False, True)])
def test_a_sum_of_parts_that_are_zero_elsewhere_makes_as_much_whole_as_a_gather(tokens, gathers, serves):
    """The last tokens of a split stream come as a sum: whose scope it bears, it adds nothing up."""
    part = replace(operand(tokens * D * 2, scope="embed", shape=(tokens, D)), zero_elsewhere=gathers)
    total = collective(MESH, "all-reduce", "tp", "embed", operands=[part])
    (judged,), served = verdicts(total)
    sent = tokens * D * 2 * 2 * 3 // 4
    assert judged == ((sent, {}) if serves else (0, {"activation-gather": sent}))
    assert served["embed"] == (sent if serves else 0)
