"""The closed list of variants: what a case may name, and what does not go together."""

import pytest

from meshes.case import Case
from meshes.process.errors import MeshError
from meshes.variants import VARIANTS, check_offered, pins_scope


def test_a_case_with_variants_survives_json_and_has_a_name_and_a_key_of_its_own():
    plain = Case.read("tp8")
    case = plain.at(style="weights", variants=("attention-heads-first", "pin:layer.mlp.up"))
    assert Case.from_json(case.to_json()) == case
    assert case.name == "llama-3.1-8b-tp8-v5e-2x4-b8-s1024-m1-weights-attention-heads-first-pin-layer.mlp.up"
    # A case without any is written as it was before there were variants.
    assert "variants" not in plain.to_dict()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            {"variants": ("attention-fast",)},
            "unknown variant 'attention-fast'; the variants are attention-heads-first,",
        ),
        (
            {"variants": ("attention-heads-first", "attention-kv-grouped")},
            "variants attention-heads-first and attention-kv-grouped change the same part; name one of them",
        ),
        ({"variants": ("attention-heads-first",) * 2}, "change the same"),
        ({"variants": ("pin:head",)}, "variant pin:head pins what style pinned has pinned; use it with style weights"),
        (
            {"variants": ("attention-heads-first",), "style": "explicit"},
            "variant attention-heads-first leaves collectives to XLA; style explicit writes them by hand",
        ),
        (
            {"variants": ("attention-heads-first",), "attention": "einsum"},
            "variant attention-heads-first goes with attention idiomatic, not einsum",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(words, says):
    with pytest.raises(MeshError, match=says):
        Case.read("tp8", **words)


def test_a_pin_holds_in_its_scope_alone():
    case = Case.read("tp8", style="weights", variants=("pin:layer.mlp.up", "pin:step"))
    scopes = ("layer.mlp.up", "layer.mlp.down", "head", "")
    assert [scope for scope in scopes if pins_scope(case, scope)] == ["layer.mlp.up", ""]
    assert pins_scope(case.at(style="pinned", variants=()), "head")


def test_an_arm_refuses_what_it_has_no_way_to_write():
    case = Case.read("tp8", variants=("attention-per-sequence",))
    check_offered(case, arm="torchxla")
    with pytest.raises(MeshError, match="variant attention-per-sequence is not offered by jax; it offers cache-select"):
        check_offered(case, arm="jax")


def test_every_variant_has_lines_of_code_for_each_arm_that_offers_it():
    for row in VARIANTS.values():
        assert row.code
        assert set(row.code) <= {"jax", "torchxla"}
        assert all(line.strip() for code in row.code.values() for line in code.split("\n"))
