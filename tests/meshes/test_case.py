"""The one input of both twins: defaults, refusals, and the round trip that makes it a key."""

import pytest

from meshes.case import Case
from meshes.errors import MeshError
from meshes.memory import cache_bytes, check_fits, does_not_fit, weight_bytes
from meshes.models import MODELS


@pytest.mark.parametrize(
    ("name", "parameters"),
    # As published with each checkpoint.
    [("llama-3.2-1b", 1_235_814_400), ("llama-3.1-8b", 8_030_261_248), ("llama-3.1-70b", 70_553_706_496)],
)
def test_presets_have_as_many_parameters_as_published(name, parameters):
    assert MODELS[name].num_parameters == parameters


def test_the_defaults_are_those_of_the_contract():
    case = Case.read("tp4pp2")
    assert (case.model.name, case.batch, case.seq, case.microbatches) == ("llama-3.1-8b", 8, 1024, 4)
    assert (case.phases, case.dtype, case.style) == (("prefill", "decode"), "bf16", "pinned")
    assert (case.loop, case.attention, case.topology.name) == ("scan", "idiomatic", "v5e:2x4")
    assert Case.read("tp8").microbatches == 1


@pytest.mark.parametrize("mesh", ["tp8", "dp2pp2tp2@v6e:2x4", "tp8-vocab-whole.toml", "dp8tp2-data-close.toml"])
def test_a_case_survives_json(mesh):
    case = Case.read(mesh, attention="einsum", phases=("decode",))
    assert Case.from_json(case.to_json()) == case


def test_different_cases_have_different_names():
    cases = [Case.read("tp8"), Case.read("tp8", loop="unrolled"), Case.read("tp8", seq=2048), Case.read("tp4pp2"),
             Case.read("tp4pp2", microbatches=2), Case.read("tp8@v6e:2x4"), Case.read("tp8-vocab-whole.toml"),
             Case.read("tp8", phases=("decode",)), Case.read("tp8", model_name="llama-3.2-1b"),
             Case.read("dp8tp2-data-close.toml"), Case.read("dp8tp2@v6e:4x4")]  # fmt: skip
    assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize(
    ("mesh", "options", "says"),
    [
        ("tp16", {}, "tp16 does not divide kv_heads=8 of llama-3.1-8b; tp sizes that fit: 1, 2, 4, 8$"),
        ("pp64", {}, "pp64 does not divide layers=32 of llama-3.1-8b; pp sizes that fit: 1, 2, 4, 8, 16, 32$"),
        ("tp8", {"microbatches": 2}, "mesh tp8 has no pipeline; with pp=1 it is 1"),
        ("dp2tp4", {"batch": 3}, "batch 3 does not divide .* a multiple of 2 fits, like 2"),
        ("tp4pp2", {"batch": 6}, "a multiple of 4 fits, like 4"),
        ("tp8", {"batch": 0}, "batch is 0; write a whole number from 1"),
        ("tp8", {"model_name": "gpt-2"}, "unknown model 'gpt-2'; known are llama-3.2-1b"),
        ("tp8", {"phases": ("train",)}, "phases is 'train'; choose from prefill, decode"),
        ("tp8", {"phases": ()}, "phases is ''"),
        ("cp2tp4", {}, "context parallelism is not offered yet"),
        ("ep2tp4", {}, "no preset has experts yet"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_be_right(mesh, options, says):
    with pytest.raises(MeshError, match=says):
        Case.read(mesh, **options)


def test_bytes_that_stay_on_a_device_by_hand():
    case = Case.read("tp4pp2")
    # 16 layers · (4096·4096·2 + 4096·1024·2 + 3·4096·14336)/4 + 2·4096 each; two tables /4; one norm; 2 bytes
    layer = (4096 * 4096 * 2 + 4096 * 1024 * 2 + 3 * 4096 * 14336) // 4 + 2 * 4096
    assert weight_bytes(case) == (16 * layer + 2 * 128256 * 4096 // 4 + 4096) * 2
    # k and v, 16 layers, 8 sequences, 1152 positions, 2 heads of 128, 2 bytes
    assert cache_bytes(case) == 2 * 16 * 8 * 1152 * 2 * 128 * 2


def test_a_model_too_large_for_the_chips_names_the_smallest_mesh_that_fits():
    with pytest.raises(
        MeshError, match=r"needs 18\.0 GB .* has 17\.2 GB; the smallest mesh that fits is pp2tp8@v5e:4x4"
    ):
        check_fits(Case.read("tp8", model_name="llama-3.1-70b"))
    check_fits(Case.read("pp2tp8@v5e:4x4", model_name="llama-3.1-70b"))


def test_what_a_program_needs_beside_its_weights_is_split_over_the_devices_of_another_mesh():
    case = Case.read("tp4@v5e:2x2", phases=("prefill",))
    stay = weight_bytes(case) + cache_bytes(case)  # 4.0 + 0.3 GB of 17.2
    line = does_not_fit(case, needed=stay + 40 * 10**9, there=17_179_869_184)
    # 40 GB on each of 4 devices: 20 on each of 8 do not fit, 10 on each of 16 do; tp8 is the widest for 8 KV heads.
    assert line.endswith("the smallest mesh that should fit, with its activations split as evenly, is pp2tp8@v5e:4x4")


def test_text_that_is_no_case_is_refused():
    for text in ("", "{}", "[]", '{"mesh": 3}'):
        with pytest.raises(MeshError, match="this is not a case"):
            Case.from_json(text)
