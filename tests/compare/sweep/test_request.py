"""What a sweep may be asked for: every combination is a case, or says why it is none."""

import json

import pytest

from compare.cli.options.sweep_options import sweep_parser
from compare.cli.options.sweep_request import combinations
from compare.run.errors import WorkError
from compare.sweep.sweep import name_sweep
from meshes.process.errors import MeshError

DENSE, MIXED = "tiny", "tiny-moe"


def parse(*words):
    return sweep_parser().parse_args(["--models", DENSE, "--seq", "128", *words])


def parse_error(*words):
    return [
        (combination.model, combination.mesh, combination.case.name if combination.case else combination.refused)
        for combination in combinations(parse(*words))
    ]


def test_every_model_meets_every_mesh_in_the_order_in_which_they_were_named():
    error = parse_error("--models", f"{MIXED},{DENSE}", "--meshes", "tp8, dp2tp4")
    assert [(model, mesh) for model, mesh, _ in error] == [
        (MIXED, "tp8"),
        (MIXED, "dp2tp4"),
        (DENSE, "tp8"),
        (DENSE, "dp2tp4"),
    ]
    assert error[0][2] == "tiny-moe-tp8-v5e-2x4-b8-s128-m1"


def test_what_cannot_be_is_its_own_and_stops_nothing():
    (_, _, refused), (_, _, name) = parse_error("--meshes", "ep2tp4,tp8")
    assert refused.startswith("mesh ep2tp4 splits experts over ep2, but tiny has none")
    assert name == "tiny-tp8-v5e-2x4-b8-s128-m1"


@pytest.mark.parametrize(
    ("mesh", "why"),
    [
        ("tp6", "no single v5e slice has 6 devices"),
        ("tp32", "tp32 does not divide the heads of tiny"),
        ("tp8@v9:2x4", "unknown TPU generation 'v9'"),
        ("tp8@v5e:4x4", "mesh tp8 has 8 devices, but v5e:4x4 has 16"),
        ("dp8tp2@v5e:4x4", "batch 12 cannot be split evenly over dp8"),
    ],
)
def test_a_mesh_that_nothing_fits_is_listed_with_its_reason(mesh, why):
    listed = combinations(parse("--meshes", f"{mesh},tp4", "--batch", "12"))
    assert why in listed[0].refused
    assert "\n" not in listed[0].refused
    assert listed[1].case


def test_a_model_that_is_larger_than_the_chips_is_refused_before_anything_starts():
    (first, _) = combinations(parse("--models", "llama-3.1-70b,tiny", "--meshes", "tp8"))
    assert "but a v5e:2x4 device has 17.2 GB; the smallest mesh that fits is pp2tp8" in first.refused


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no mesh is given; write --meshes tp8,tp4pp2"),
        (("--meshes", "tp8,tp3x"), "cannot read mesh 'tp3x'"),
        (("--meshes", "tp8,xp4"), "names xp; the axes are"),
        (("--meshes", "tp8,nowhere.toml"), "cannot read mesh file 'nowhere.toml'"),
        (("--meshes", "tp8,"), "has an empty entry"),
        (("--meshes", "tp8", "--models", "gpt-2"), "unknown model 'gpt-2'"),
        (("--meshes", "ep8,ep2tp4"), "none of these 2 combinations is possible: mesh ep8 splits experts"),
        (("--meshes", "tp8", "--phases", "training"), "choose from prefill, decode"),
    ],
)
def test_a_slip_of_the_pen_stops_it(words, says):
    with pytest.raises((MeshError, WorkError)) as error:
        combinations(parse(*words))
    assert says in str(error.value)


def test_two_spellings_of_one_mesh_are_one_case():
    assert [mesh for _, mesh, _ in parse_error("--meshes", "tp4pp2,pp2tp4,tp4pp2@v5e:2x4")] == ["tp4pp2"]


def test_microbatches_are_of_the_meshes_that_have_a_pipeline():
    first, other = combinations(parse("--meshes", "tp8,tp4pp2", "--microbatches", "2"))
    assert (first.case.microbatches, other.case.microbatches) == (1, 2)


def test_a_capacity_is_of_the_models_that_have_experts():
    first, other = combinations(parse("--models", f"{DENSE},{MIXED}", "--meshes", "tp4", "--capacity", "2"))
    assert (first.refused, other.case.capacity) == ("", 2)


def test_a_checkpoint_gives_the_shapes_of_every_case(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    config = {
        "model_type": "llama",
        "vocab_size": 1024,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "rope_theta": 10000.0,
    }
    (folder / "config.json").write_text(json.dumps(config))
    parsed = sweep_parser().parse_args(["--checkpoint", str(folder), "--meshes", "tp8,ep8,dp2tp4", "--seq", "128"])
    first, refused, other = combinations(parsed)
    assert (first.model, first.case.model.vocab, other.case.name) == ("mine", 1024, "mine-dp2tp4-v5e-2x4-b8-s128-m1")
    assert "mine has none" in refused.refused
    with pytest.raises(MeshError, match=r"config\.json"):
        combinations(sweep_parser().parse_args(["--checkpoint", str(tmp_path), "--meshes", "tp8"]))


def test_phases_and_the_other_words_of_a_case_reach_it():
    (first,) = combinations(parse("--meshes", "tp4", "--phases", "decode", "--batch", "4", "--attention", "einsum"))
    assert first.case.name == "tiny-tp4-v5e-2x2-b4-s128-m1-einsum-decode"
    (first,) = combinations(parse("--meshes", "tp4", "--style", "weights"))
    assert first.case.style == "weights"


def test_a_sweep_s_folder_is_named_by_its_cases():
    few = combinations(parse("--meshes", "tp8,tp4pp2,ep8"))
    same = combinations(parse("--meshes", "pp2tp4,tp8"))
    more = combinations(parse("--meshes", "tp8,tp4pp2,tp4"))
    assert name_sweep(few, arms=["jax"]) == name_sweep(same, arms=["jax"])
    assert name_sweep(few, arms=["jax"]).startswith("tiny-2-cases-")
    assert len({name_sweep(first, arms=arms) for first in (few, more) for arms in (["jax"], ["jax", "torchxla"])}) == 4


@pytest.mark.parametrize("words", ["0", "-1", "many", "1.5"])
def test_a_number_of_jobs_that_is_none_is_refused(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse("--meshes", "tp8", f"--jobs={words}")
    assert stopped.value.code == 2
    assert "is no whole number from 1" in capsys.readouterr().err
