"""The one input of both twins: defaults, refusals, and the round trip that makes it a key."""

import pytest

from meshes.case import Case
from meshes.checkpoint.tables import TABLES
from meshes.memory import cache_bytes, check_fits, explain_misfit, smallest_fit, weight_bytes
from meshes.models import MODELS
from meshes.process.errors import MeshError

MIXTRAL = {"model_name": "mixtral-8x7b"}


@pytest.mark.parametrize(
    ("name", "parameters"),
    # As published with each checkpoint: half the total_size of its index, which is of bf16.
    [
        ("llama-3.2-1b", 1_235_814_400),
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("qwen3-4b", 4_022_468_096),
        ("qwen3-32b", 32_762_123_264),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("mixtral-8x7b", 46_702_792_704),
        ("qwen1.5-moe-a2.7b", 14_315_784_192),
        ("phi-4", 14_659_507_200),
    ],
)
def test_presets_have_as_many_parameters_as_published(name, parameters):
    assert MODELS[name].num_parameters == parameters


def test_a_token_meets_as_many_parameters_as_published():
    """ "A3B" and "A2.7B" in names; 12.9 B of Mixtral (arXiv 2401.04088, section 2.1)."""
    assert round(MODELS["qwen3-30b-a3b"].num_active_parameters / 1e9, 1) == 3.4  # 3.0 without the two tables
    assert round(MODELS["qwen1.5-moe-a2.7b"].num_active_parameters / 1e9, 1) == 2.7
    assert round(MODELS["mixtral-8x7b"].num_active_parameters / 1e9, 1) == 12.9


def test_every_preset_has_its_family_and_a_mesh_of_its_own():
    for name in MODELS:
        assert Case.read("tp2pp2", model_name=name).model.family in TABLES


def test_the_defaults_are_those_of_the_contract():
    case = Case.read("tp4pp2")
    assert (case.model.name, case.batch, case.seq, case.microbatches) == ("llama-3.1-8b", 8, 1024, 4)
    assert (case.phases, case.dtype, case.style) == (("prefill", "decode"), "bf16", "pinned")
    assert (case.loop, case.attention, case.topology.name) == ("scan", "idiomatic", "v5e:2x4")
    assert Case.read("tp8").microbatches == 1


@pytest.mark.parametrize(
    "mesh", ["tp8", "dp2pp2tp2@v6e:2x4", "tp8-vocab-whole.toml", "dp8tp2-data-close.toml", "tp8+sp"]
)
def test_a_case_survives_json(mesh):
    case = Case.read(mesh, attention="einsum", phases=("decode",))
    assert Case.from_json(case.to_json()) == case


@pytest.mark.parametrize("capacity", [1.25, 2.0, None])
def test_a_case_of_experts_survives_json(capacity):
    case = Case.read("ep2tp4", model_name="qwen1.5-moe-a2.7b", capacity=capacity)
    assert Case.from_json(case.to_json()) == case


def test_different_cases_have_different_names():
    cases = [
        Case.read("tp8"),
        Case.read("tp8", loop="unrolled"),
        Case.read("tp8", seq=2048),
        Case.read("tp4pp2"),
        Case.read("tp4pp2", microbatches=2),
        Case.read("tp8@v6e:2x4"),
        Case.read("tp8-vocab-whole.toml"),
        Case.read("tp8", phases=("decode",)),
        Case.read("tp8", model_name="llama-3.2-1b"),
        Case.read("dp8tp2-data-close.toml"),
        Case.read("dp8tp2@v6e:4x4"),
        Case.read("tp8+sp"),
        Case.read("ep2tp4", **MIXTRAL),
        Case.read("ep2tp4", **MIXTRAL, capacity=2.0),
        Case.read("ep2tp4", **MIXTRAL, capacity=None),
        Case.read("cp2tp4"),
    ]
    assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize(
    ("mesh", "options", "says"),
    [
        (
            "tp64",
            {},
            r"tp64 does not divide the heads of llama-3.1-8b \(heads=32, kv_heads=8\), .*: 1, 2, 4, 8, 16, 32$",
        ),
        ("pp64", {}, "pp64 does not divide layers=32 of llama-3.1-8b; pp sizes that fit: 1, 2, 4, 8, 16, 32$"),
        ("tp8", {"microbatches": 2}, "mesh tp8 has no pipeline; with pp=1 it is 1"),
        (
            "tp4pp2",
            {"batch": 64, "microbatches": 24},
            "24 microbatches; a multiple of 24 fits, like 48; for batch 64 16 or 32 microbatches$",
        ),
        ("tp4pp2", {"batch": 8, "microbatches": 16}, "like 16; for batch 8 8 microbatches$"),
        ("dp2tp2pp2", {"batch": 7, "microbatches": 4}, "4 microbatches; a multiple of 8 fits, like 8$"),
        ("dp2tp4", {"batch": 3}, "batch 3 cannot be split evenly .* a multiple of 2 fits, like 2"),
        ("tp4pp2", {"batch": 6}, "a multiple of 4 fits, like 4"),
        ("tp8", {"batch": 0}, "batch is 0; write a whole number from 1"),
        ("tp8", {"model_name": "gpt-2"}, "unknown model 'gpt-2'; known are llama-3.2-1b"),
        ("tp8", {"phases": ("train",)}, "phases is 'train'; choose from prefill, decode"),
        ("tp8", {"phases": ()}, "phases is ''"),
        ("ep2tp4", {}, "mesh ep2tp4 splits experts over ep2, but llama-3.1-8b has none"),
        ("ep16", MIXTRAL, "ep16 does not divide experts=8 of mixtral-8x7b; ep sizes that fit: 1, 2, 4, 8$"),
        ("ep2tp4", MIXTRAL | {"batch": 3}, r"batch 3 cannot be split evenly over dp1 · ep2 · 1 microbatches"),
        ("tp8", {"model_name": "qwen1.5-moe-a2.7b", "capacity": 0.0}, "capacity is 0.0; write a factor greater than 0"),
        ("tp8", {"capacity": 2.0}, "capacity is 2.0, but llama-3.1-8b has no experts"),
        ("cp4tp2", {"seq": 1022}, "seq 1022 cannot be split evenly over cp4; a multiple of 4 fits, like 1020"),
        ("cp2tp4+sp", {"seq": 1020}, "seq 1020 cannot be split evenly over cp2 · tp4; a multiple of 8 fits, like 1016"),
        ("cp4+sp", {}, "mesh cp4[+]sp has sequence parallelism over tp, but tp is 1"),
        ("tp8+cp", {}, r"cannot read mesh 'tp8\+cp': 'cp' follows \+"),
        ("pp4tp2", {"model_name": "llama-3.1-405b"}, "pp4 does not divide layers=126 .*: 1, 2, 3, 6, 7, 9, 14, 18, 21"),
        ("tp16", {"model_name": "phi-4"}, "heads=40, kv_heads=10.* tp sizes that fit: 1, 2, 4, 5, 8, 10, 20, 40$"),
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


def test_bytes_of_experts_and_of_a_split_cache_by_hand():
    case = Case.read("cp2ep2tp2", model_name="mixtral-8x7b")
    # 32 layers: attention and its norms whole over cp and ep, experts over ep and tp, the router whole.
    layer = (4096 * 4096 * 2 + 4096 * 1024 * 2) // 2 + 2 * 4096 + 4096 * 8 + 8 * 3 * 4096 * 14336 // 4
    assert weight_bytes(case) == (32 * layer + 2 * 32000 * 4096 // 2 + 4096) * 2
    # k and v, 32 layers, 8/2 sequences, (1024/2 + 1 → 640) positions, 4 heads of 128, 2 bytes
    assert cache_bytes(case) == 2 * 32 * 4 * 640 * 4 * 128 * 2


def test_copies_of_kv_heads_make_the_cache_larger():
    """phi-4 has 10: of 40 on tp8 each shard holds 5, where 1.25 would be its share."""
    assert cache_bytes(Case.read("tp8", model_name="phi-4")) == 2 * 40 * 8 * 1152 * 5 * 128 * 2


def test_a_model_too_large_for_the_chips_names_the_smallest_mesh_that_fits():
    with pytest.raises(
        MeshError, match=r"needs 18\.0 GB .* has 17\.2 GB; the smallest mesh that fits is pp2tp8@v5e:4x4"
    ):
        check_fits(Case.read("tp8", model_name="llama-3.1-70b"))
    check_fits(Case.read("pp2tp8@v5e:4x4", model_name="llama-3.1-70b"))


def test_advice_keeps_what_was_asked_for():
    """Mixtral's 93 GB are split over ep and tp alone: 4 parts are too large for 17 GB, 8 are not."""
    assert smallest_fit(Case.read("cp2ep2tp2", **MIXTRAL)) == "cp2ep2tp4@v5e:4x4"
    assert smallest_fit(Case.read("tp8+sp", model_name="llama-3.1-70b")) == "pp2tp8+sp@v5e:4x4"


def test_what_a_program_needs_beside_its_weights_is_split_over_the_devices_of_another_mesh():
    case = Case.read("tp4@v5e:2x2", phases=("prefill",))
    stay = weight_bytes(case) + cache_bytes(case)  # 4.0 + 0.3 GB of 17.2
    line = explain_misfit(case, needed=stay + 40 * 10**9, capacity=17_179_869_184)
    # 40 GB on each of 4 devices: 20 on each of 8 do not fit, 10 on each of 16 do; tp8 is the widest for 8 KV heads.
    assert line.endswith("the smallest mesh that should fit, if activations split as evenly, is pp2tp8@v5e:4x4")


def test_the_mesh_that_does_not_fit_is_never_the_advice():
    """The compiler gives a program a little less than the memory: what needs more than that fits no device alike."""
    case = Case.read("tp4pp2@v6e:2x4", model_name="mixtral-8x7b", phases=("prefill",))
    line = explain_misfit(case, needed=33_900_000_000, capacity=33_600_000_000)
    assert "has 33.6 GB; " in line
    assert not line.endswith("@v6e:2x4")


def test_text_that_is_no_case_is_refused():
    for text in ("", "{}", "[]", '{"mesh": 3}'):
        with pytest.raises(MeshError, match="this is not a case"):
            Case.from_json(text)
