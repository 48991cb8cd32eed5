"""Every witness compiled for v5e, and its bytes by hand: what PyTorch's attention gathers, and what removes it."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from compare.report.model.report import Report
from compare.report.witnesses import WITNESSES
from meshes.process.packages import is_overwritten
from tests.twins.cases import run

pytestmark = pytest.mark.slow

# Widths that libtpu splits as it splits those of a real model, in two layers.
CONFIG = {
    "model_type": "llama",
    "vocab_size": 8192,
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 2,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1e6,
}
MIXTRAL = CONFIG | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None}
LAYERS, SEQUENCES = 2, 4
"""Sequences of one of the two data-parallel groups."""
CACHE = SEQUENCES * 8 * 384 * 64 * 2
"""Bytes of one layer's keys (or values) of 4 sequences: 8 heads, 256 + 1 positions in whole 128s, 64 wide, bf16."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    for package in ("jax", "torch_xla", "torchax", "transformers"):
        if find_spec(package) is None or (package == "torchax" and is_overwritten(package)):
            pytest.skip(f"{package} is not installed as it is: docs/witnesses.md")
    names = [name for name in WITNESSES if find_spec("tunix") or not name.startswith("tunix")]
    return compile_decode(CONFIG, tmp_path_factory.mktemp("llama"), witnesses=names, controls="partitioner,tracer")


@pytest.fixture(scope="module")
def mixtral(tmp_path_factory: pytest.TempPathFactory) -> Report:
    for package in ("torch_xla", "transformers"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    return compile_decode(MIXTRAL, tmp_path_factory.mktemp("mixtral"), witnesses=["hf-torchxla"], controls="none")


def compile_decode(config: dict[str, object], folder: Path, *, witnesses: list[str], controls: str) -> Report:
    (folder / "config.json").write_text(json.dumps(config))
    done = run(
        sys.executable, "-m", "compare.run", "--mesh", "dp2tp4", "--phase", "decode", "--checkpoint", str(folder),
        "--seq", "256", "--witness", ",".join(witnesses), "--controls", controls, "--out", str(folder), "--json",
        "--no-pages",
    )  # fmt: skip
    return Report.from_json(json.loads(done.stdout))


def beyond(report: Report, arm: str, cell: str) -> dict[str, int]:
    """Cause -> bytes a step of one program."""
    causes: dict[str, int] = {}
    for row in report.phases["decode"].arms[arm].cell(cell).collectives:
        for cause, amount in row.causes.items():
            causes[cause] = causes.get(cause, 0) + amount
    return causes


def compiled(report: Report, cell: str) -> str:
    """The arm of a witness that was compiled."""
    arm = WITNESSES[cell].arm
    if cell not in (report.phases["decode"].arms[arm].witnesses or {}):
        pytest.skip("tunix is not installed")
    return arm


@pytest.mark.parametrize("cell", WITNESSES)
def test_every_byte_of_the_plan_is_there_and_every_row_has_a_scope(report: Report, cell: str) -> None:
    program = report.phases["decode"].arms[compiled(report, cell)].cell(cell)
    assert program.totals is not None
    assert program.totals.unserved == 0
    assert program.totals.inherent == report.phases["decode"].inherent_total
    assert {row.scope for row in program.collectives} <= {
        "embed",
        "layer.attention.qkv",
        "layer.attention.core",
        "layer.attention.out",
        "layer.mlp.up",
        "layer.mlp.down",
        "norm",
        "head",
        "sample",
    }


@pytest.mark.parametrize("cell", ["hf-torchxla", "hf-torchax"])
def test_hugging_faces_attention_gathers_the_whole_cache_under_either_tracer(report: Report, cell: str) -> None:
    rows = report.phases["decode"].arms["torchxla"].cell(cell).collectives
    cache_gathers = [row for row in rows if row.kind == "all-gather" and row.payload_bytes == CACHE]
    # Keys and values of each layer; of a gather over 4 each device sends three quarters.
    assert sum(row.executions or 0 for row in cache_gathers) == LAYERS * 2
    assert sum(row.induced_bytes or 0 for row in cache_gathers) == LAYERS * 2 * CACHE * 3 // 4


def test_the_headline_cites_the_model_that_everybody_runs(report: Report) -> None:
    assert "; the unmodified Hugging Face model (hf-torchxla) all-gathers the same, " in report.sentence


def test_the_twin_gathers_it_under_torchax_too(report: Report) -> None:
    assert beyond(report, "torchxla", "tpu+torchax")["cache-gather"] == LAYERS * 2 * CACHE * 3 // 4
    (owner,) = {
        attribution.owner for attribution in report.phases["decode"].attribution if attribution.cause == "cache-gather"
    }
    assert owner != "tracer"


def test_with_jaxs_attention_nothing_is_left(report: Report) -> None:
    assert beyond(report, "torchxla", "hf-torchax+jax-attention") == {}


def test_the_weight_of_the_norms_is_all_that_tunix_adds(report: Report) -> None:
    arm = compiled(report, "tunix")
    assert sum(beyond(report, arm, "tunix").values()) > 0
    assert beyond(report, arm, "tunix+norm") == {}
    # One for the embedding; of each layer q, k, v, its output and the hidden activation of the MLP.
    assert report.phases["decode"].arms[arm].cell("tunix").constraints == 1 + 5 * LAYERS


@pytest.mark.parametrize("cell", ["hf-torchxla", "hf-torchax", "tunix"])
def test_lines_are_those_of_their_source(report: Report, cell: str) -> None:
    rows = report.phases["decode"].arms[compiled(report, cell)].cell(cell).collectives
    package = "tunix/models/" if cell == "tunix" else "transformers/"
    gathers = [row for row in rows if row.induced_bytes]
    assert gathers
    assert all(row.source_line and package in row.source_line for row in gathers)


def test_mixtrals_experts_are_summed_over_the_wire_once_for_each_that_a_token_chose(mixtral: Report) -> None:
    program = mixtral.phases["decode"].arms["torchxla"].cell("hf-torchxla")
    assert program.totals is not None
    assert (program.totals.unserved, program.totals.inherent) == (0, mixtral.phases["decode"].inherent_total)
    sums = [row for row in program.collectives if row.kind == "all-reduce" and row.scope == "layer.moe.combine"]
    # The plan adds up tokens: 4 of 1024 in bf16.  transformers weighs and adds the two experts of a token afterwards.
    token_bytes = 4 * 1024 * 2
    assert [row.payload_bytes for row in sums] == [2 * token_bytes] * LAYERS
    # Of a sum over 4 each device sends 2 · 3/4; one half is the plan's.
    assert sum(row.inherent_bytes or 0 for row in sums) == LAYERS * token_bytes * 2 * 3 // 4
    assert sum(row.inflated_bytes or 0 for row in sums) == LAYERS * token_bytes * 2 * 3 // 4


def test_mixtrals_gate_and_up_in_one_tensor_have_to_be_moved_apart(mixtral: Report) -> None:
    rows = mixtral.phases["decode"].arms["torchxla"].cell("hf-torchxla").collectives
    moved = [row for row in rows if row.induced_bytes and row.scope.startswith("layer.moe")]
    assert {(row.kind, row.scope) for row in moved} == {("collective-permute", "layer.moe.combine")}
    assert all(row.source_line and "transformers/integrations/moe.py" in row.source_line for row in moved)
    # Two devices of four hold gate, two hold up, and each wants half of a half.  Three quarters of all 8·2·2048
    # elements lie elsewhere; what comes over the wire is at least that, in each of two data-parallel groups.
    wanted = 8 * 2 * 2048 * 2 * 3 // 4
    assert sum(row.induced_bytes or 0 for row in moved) >= LAYERS * wanted // 4
