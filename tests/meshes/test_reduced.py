"""A case made small: what is kept, what is cut, and that the mesh still divides it."""

from dataclasses import replace

import pytest

from meshes.case import Case
from meshes.dims import rules
from meshes.mesh_argument import read_mesh
from meshes.models import model
from meshes.reduced import describe_reduction, reduce_case

CASES = [
    ("tp4pp2", {}),
    ("tp8", {}),
    ("dp2pp2tp2", {"loop": "unrolled", "attention": "einsum"}),
    ("tp1", {"model_name": "llama-3.2-1b", "phases": ("decode",)}),
    ("dp4tp8", {"model_name": "llama-3.2-1b", "dtype": "f32", "partitioner": "gspmd"}),
    ("tp8pp4-v5p.toml", {"model_name": "llama-3.1-70b", "microbatches": 8}),
    ("tp8-vocab-whole.toml", {}),
    ("dp8tp2-data-close.toml", {"batch": 64}),
    ("dp4tp8@2xv5e:4x4", {}),
    ("tp8+sp", {"model_name": "phi-4"}),
    ("cp2tp4+sp", {}),
]


@pytest.mark.parametrize(("mesh", "words"), CASES, ids=[mesh for mesh, _ in CASES])
def test_the_structure_is_kept_and_the_widths_are_cut(mesh, words):
    case = Case.read(mesh, **words)
    small = reduce_case(case)
    for word in ("plan", "phases", "batch", "microbatches", "style", "loop", "attention", "partitioner"):
        assert getattr(small, word) == getattr(case, word), word
    assert small.dtype == "f32"
    for word in ("layers", "heads", "kv_heads", "rope_scaling", "norm_eps", "tied"):
        assert getattr(small.model, word) == getattr(case.model, word), word
    widths = (small.model.embed, small.model.ffn, small.model.vocab, small.model.head_dim, small.seq)
    assert widths == (128, 256, 512, 16, 32)
    assert small.model.name == f"{case.model.name}-reduced"
    assert Case.from_json(small.to_json()) == small


@pytest.mark.parametrize("mesh", ["dp2ep4", "ep4tp2", "pp2ep4", "cp2ep4", "cp2ep2tp2"])
@pytest.mark.parametrize("name", ["mixtral-8x7b", "qwen3-30b-a3b", "qwen1.5-moe-a2.7b"])
def test_experts_are_kept_and_made_narrow(name, mesh):
    case = Case.read(mesh, model_name=name, capacity=2.0, batch=16)
    small = reduce_case(case)
    for word in ("experts", "experts_per_token", "renormalized", "qk_norm", "qkv_bias", "family", "heads", "kv_heads"):
        assert getattr(small.model, word) == getattr(case.model, word), word
    assert (small.model.expert_ffn, small.model.ffn, small.seq, small.capacity) == (64, 0, 32, 2.0)
    assert small.model.shared_ffn == (128 if case.model.shared_ffn else 0)
    assert Case.from_json(small.to_json()) == small


def of(mesh: str, *, switched_off: tuple[str, ...] = (), **sizes: int) -> Case:
    """Llama-3.1-8B with other sizes, on a mesh of other sizes."""
    plan = replace(read_mesh(mesh), rules=rules(dict.fromkeys(switched_off)))
    return Case(plan=plan, model=replace(model("llama-3.1-8b"), **sizes), batch=16)


def test_a_split_width_stays_a_multiple_of_its_shards():
    """12 shards: 252 = 21 · 12 is the largest multiple up to 256, 504 = 42 · 12 the largest up to 512."""
    small = reduce_case(of("dp16tp12@v5p:4x4x12", heads=24, kv_heads=12, ffn=12_000, vocab=120_000)).model
    assert (small.heads, small.kv_heads, small.ffn, small.vocab) == (24, 12, 252, 504)


def test_a_width_with_more_shards_than_is_enough_keeps_one_for_each():
    case = of("tp768@v5p:8x8x12", switched_off=("heads", "kv_heads"), ffn=7680, vocab=153_600)
    assert (reduce_case(case).model.ffn, reduce_case(case).model.vocab) == (768, 768)


def test_a_case_that_is_small_stays_as_it_is():
    case = Case.read("dp2pp2tp2", model_name="tiny", seq=16, dtype="f32")
    assert reduce_case(case) == case
    assert describe_reduction(case, reduce_case(case)) == ""
    assert reduce_case(reduce_case(Case.read("tp8"))) == reduce_case(Case.read("tp8"))


def test_only_the_prompt_of_a_small_model_is_cut():
    case = Case.read("dp2pp2tp2", model_name="tiny")
    assert reduce_case(case) == case.at(seq=32, dtype="f32")
    assert describe_reduction(case, reduce_case(case)) == "seq 1024 → 32, dtype bf16 → f32"


def test_the_difference_is_said_in_numbers():
    case = Case.read("tp4pp2")
    assert describe_reduction(case, reduce_case(case)) == (
        "embed 4096 → 128, ffn 14336 → 256, vocab 128256 → 512, head_dim 128 → 16, seq 1024 → 32, dtype bf16 → f32"
    )
