"""JAX's explicit sharding: its collectives are those of pinned arrays, one by one, but for sums in float32.

`jnp.sum` adds bf16 in float32.  With a sharding in each type the sum over devices belongs to that sum, before its
result is narrowed; of pinned arrays XLA narrows the partial sums first, and sends half of it.
"""

from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from compare.report.model.about import About
from compare.report.programs import ProgramResult, judge_program
from compare.report.rows import sum_totals
from meshes.case import Case
from meshes.process.documents import read_json
from tests.laws.programs import Found, Job, compile_jobs, count_collectives, read_text

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (find_spec("jax") and find_spec("libtpu")), reason="JAX or libtpu is not installed"),
]

WAYS: Mapping[str, Mapping[str, str]] = {
    "typed": {"style": "typed"},
    "shardy": {},
    "gspmd": {"partitioner": "gspmd"},
    "typed by gspmd": {"style": "typed", "partitioner": "gspmd"},
}

BF16, F32, ID = 2, 4, 4
SUMS = ("all-reduce@tp", "reduce-scatter@tp")

ROWS = [
    pytest.param("dp2tp4", "tiny", "decode"),
    pytest.param("dp2tp4", "tiny", "prefill", marks=pytest.mark.long),
    pytest.param("ep4tp2", "tiny-moe", "decode"),
    pytest.param("tp8+sp", "tiny", "prefill", marks=pytest.mark.long),
    pytest.param("tp4pp2", "tiny", "decode", marks=pytest.mark.long),
    pytest.param("cp4tp2", "tiny", "prefill", marks=pytest.mark.long),
]


def case(mesh: str, model: str, phase: str, way: str) -> Case:
    return Case.read(mesh, model_name=model, phases=(phase,), batch=8, seq=256, **WAYS[way])


@pytest.fixture(scope="module")
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    asked = [item.callspec.params for item in request.session.items if item.path == request.path]
    jobs = [
        Job("jax_impl", case(each["mesh"], each["model"], each["phase"], way), "tpu") for each in asked for way in WAYS
    ]
    return compile_jobs(jobs, tmp_path_factory.mktemp("typed"))


def dense(wanted: Case) -> Found:
    """Megatron's collectives of a dense model on dp and tp: an all-reduce a block, and the choice of a token."""
    rows, tp = wanted.batch // wanted.mesh.dp, wanted.mesh.tp
    tokens = rows * (wanted.seq if wanted.phase == "prefill" else 1)
    stream, layers = tokens * wanted.model.embed * BF16, wanted.model.layers
    return Counter(
        {
            ("embed", "all-reduce@tp", stream): 1,
            ("layer.attention.out", "all-reduce@tp", stream): layers,
            ("layer.mlp.down", "all-reduce@tp", stream): layers,
            ("sample", "all-gather@tp", tp * rows * BF16): 1,
            ("sample", "all-gather@tp", tp * rows * ID): 1,
        }
    )


def widened(found: Found, wanted: Case) -> Found:
    """What is found of pinned arrays, with each sum that `jnp.sum` makes over `tp` in float32."""
    last = wanted.phase == "prefill" and "head"  # the masked sum of the last tokens of a split stream
    in_float32 = {scope for scope in (wanted.model.experts and "layer.moe.combine", last) if scope}
    return Counter(
        {
            (scope, kind, size // BF16 * F32 if scope in in_float32 and kind in SUMS else size): count
            for (scope, kind, size), count in found.items()
        }
    )


@pytest.mark.parametrize(("mesh", "model", "phase"), ROWS)
def test_types_send_what_pins_send_and_sums_in_float32(
    mesh: str, model: str, phase: str, folders: Mapping[str, Path]
) -> None:
    cases = {way: case(mesh, model, phase, way) for way in WAYS}
    jobs = {way: folders[Job("jax_impl", each, "tpu").key] for way, each in cases.items()}
    found = {way: count_collectives(folder) for way, folder in jobs.items()}
    assert found["shardy"] == found["gspmd"]
    assert found["typed"] == found["typed by gspmd"] == widened(found["shardy"], cases["shardy"])
    wire = {way: sum_wire(each, jobs[way]) for way, each in cases.items()}
    if mesh == "dp2tp4":
        assert found["typed"] == dense(cases["typed"])
        assert all(sent == required for sent, required in wire.values())
    if (mesh, phase) == ("ep4tp2", "decode"):
        # 8 sequences over ep4: 2 tokens of a device, in each layer added over two shards, which takes 2 · 1/2 of them.
        extra = 2 * cases["typed"].model.embed * (F32 - BF16) * cases["typed"].model.layers
        assert wire["typed"][0] == wire["shardy"][0] + extra
        assert wire["shardy"][0] == wire["shardy"][1]


def sum_wire(wanted: Case, folder: Path) -> tuple[int, int]:
    """Bytes that the busiest device sends in a step, and those of the contract; no output is left open."""
    about = read_json(folder / "about.json")
    assert not any(about["compile_options"]["allow_spmd_sharding_propagation_to_output"])
    made = ProgramResult(
        arm="jax",
        phase=wanted.phase,
        cell="tpu+typed",
        status="ok",
        about=About.from_json(about),
        hlo=read_text(folder),
    )
    cell = judge_program(wanted, made)
    return sum_totals(cell.judgement, cell.contract).wire_bytes, sum(row.step_wire_bytes for row in cell.contract)
