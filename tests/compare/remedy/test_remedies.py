"""Which remedies are worth compiling for which bytes: the table, row by row."""

import pytest

from compare.remedy.remedies import BYTES, CODE, HAND, PLAN, TIME, apply_remedies, candidate_remedies
from meshes.case import Case

GATHER = ("layer.attention.core", "tp", "all-gather", "induced", "activation-gather")
BUBBLE = ("layer.mlp.down", "tp", "all-reduce", "inflated", "bubble")
EMBED = ("embed", "tp", "all-reduce", "inflated", "replicated")
ATTENTION = ["attention-einsum", "attention-heads-first", "attention-kv-grouped", "attention-per-sequence"]


def case(mesh="tp4pp2", phase="prefill", **words):
    return Case.read(mesh, phases=(phase,), **words)


def names(case, *groups, arm="torchxla"):
    amounts = {group: 100 - number for number, group in enumerate(groups)}
    return [remedy.name for remedy in candidate_remedies(case, amounts, arm=arm) if remedy.aim == BYTES]


def test_bytes_of_an_attention_call_are_met_by_other_ways_to_write_it():
    assert names(case(), GATHER) == ATTENTION
    # K and V are not repeated in decode anyway; JAX's call has one other way.
    assert names(case(phase="decode"), GATHER) == [name for name in ATTENTION if name != "attention-kv-grouped"]
    assert names(case(), GATHER, arm="jax") == ["attention-einsum"]
    assert names(case(attention="einsum"), GATHER) == []


def test_a_bubble_is_met_by_more_microbatches_and_by_hand():
    assert names(case(), BUBBLE) == ["microbatches-8", "style-explicit"]
    # Of eight sequences, sixteen microbatches cannot be made.
    assert names(case(microbatches=8), BUBBLE) == ["style-explicit"]


def test_whatever_is_written_otherwise_may_save_time_and_is_tried_once():
    def timed(case, *groups):
        candidates = candidate_remedies(case, dict.fromkeys(groups, 1), arm="torchxla")
        return [remedy.name for remedy in candidates if remedy.aim == TIME and remedy.site == "attention"]

    # Without a byte of attention's its forms are tried for their time; with one they are tried for that.
    assert timed(case()) == ATTENTION[1:]
    assert timed(case(), GATHER) == []
    assert timed(case(attention="einsum")) == []
    assert not [remedy for remedy in candidate_remedies(case(), {}, arm="torchxla") if remedy.name.startswith("pin:")]


def test_a_lookup_on_idle_stages_is_met_by_a_whole_vocabulary():
    by_name = {candidate.name: candidate for candidate in candidate_remedies(case(), {EMBED: 1}, arm="jax")}
    assert names(case(), EMBED, arm="jax") == ["vocab-whole", "style-explicit"]
    assert (by_name["vocab-whole"].kind, by_name["style-explicit"].kind) == (PLAN, HAND)
    # Two tables of 128256 · 4096 · 2 bytes, three quarters of each more.
    assert "takes 1,576.0 MB more" in by_name["vocab-whole"].sentence
    assert apply_remedies(case(), [by_name["vocab-whole"]]).plan.rules["vocab"] is None


@pytest.mark.parametrize(
    ("mesh", "model", "absent"),
    [
        ("tp8", "llama-3.1-8b", {"layer.moe.route", "pipeline.shift", "pipeline.collect"}),
        ("tp4pp2", "llama-3.1-8b", {"layer.moe.route"}),
        ("tp2ep4", "mixtral-8x7b", {"layer.mlp.up", "pipeline.shift"}),
    ],
)
def test_in_style_weights_every_pin_that_the_model_has_is_tried(mesh, model, absent):
    candidates = names(case(mesh, model_name=model, style="weights"), ("embed", "tp", "all-gather", "induced", "other"))
    pins = {name.removeprefix("pin:") for name in candidates}
    assert {"embed", "layer.attention.qkv", "layer.attention.out", "head", "sample", "step"} <= pins
    assert not pins & absent
    assert names(case(mesh, model_name=model), ("embed", "tp", "all-gather", "induced", "other")) == []


def test_the_most_bytes_come_first():
    assert names(case(), BUBBLE, GATHER)[:2] == ["microbatches-8", "style-explicit"]
    assert names(case(), GATHER, BUBBLE)[:4] == ATTENTION


def test_remedies_are_taken_together_as_one_case():
    by_name = {
        candidate.name: candidate
        for candidate in candidate_remedies(case(style="weights"), {GATHER: 1}, arm="torchxla")
    }
    together = apply_remedies(
        case(style="weights"), [by_name["pin:step"], by_name["attention-heads-first"], by_name["pin:embed"]]
    )
    # In the order of the list of variants, so that equal sets are one program.
    assert together.variants == ("attention-heads-first", "pin:embed", "pin:step")
    assert all(candidate.kind == CODE for candidate in by_name.values())
