"""The command lines: what they promise, and one line for a wrong request."""

import gzip
import json
import os
from pathlib import Path

import pytest

from tests.commands import check_refusal, run_here, run_process
from tests.places import EXAMPLE, copy_example

pytestmark = pytest.mark.slow


def test_the_plan_is_the_published_check_table():
    plan = json.loads(run_here("plan", "--mesh", "tp4pp2", "--json").stdout)
    assert [plan["phases"][phase]["total"] for phase in ("prefill", "decode")] == [3_305_111_640, 3_227_736]
    row = plan["phases"]["prefill"]["inherent"][0]
    assert list(row) == [
        "scope",
        "kind",
        "axes",
        "executions",
        "payload_bytes",
        "wire_bytes",
        "step_wire_bytes",
        "served_bytes",
        "unserved_bytes",
        "formula",
        "source",
        "network",
    ]
    assert (row["scope"], row["kind"], row["axes"], row["served_bytes"]) == (
        "layer.attention.out",
        "all-reduce",
        "tp",
        None,
    )


def test_help_tells_defaults_where_there_are_any():
    help_text = " ".join(run_process("-m", "compare.run", "--help").stdout.split())
    assert "(default: llama-3.1-8b)" in help_text
    assert "(default: None)" not in help_text
    assert "(default: False)" not in help_text


def test_the_order_of_axes_does_not_matter():
    assert (
        run_here("plan", "--mesh", "pp2tp4", "--json").stdout == run_here("plan", "--mesh", "tp4pp2", "--json").stdout
    )


def test_the_plan_in_words_fits_100_columns():
    done = run_process("-m", "compare.plan", "--mesh", "tp4pp2")
    assert done.returncode == 0
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "layer.attention.out" in done.stdout


WRONG = [
    ((), "no mesh was named; write --mesh tp4pp2"),
    (("--mesh", "tp3x"), "cannot read mesh 'tp3x'"),
    (("--mesh", "xp4"), "names xp; the axes are"),
    (("--mesh", "tp8", "--model", "gpt-2"), "unknown model 'gpt-2'; known are"),
    (("--mesh", "tp8@v9:2x4"), "unknown TPU generation 'v9'; known are"),
    (("--mesh", "tp8@v5e:3x3"), "v5e has no slice '3x3'"),
    (("--mesh", "tp64"), "tp64 does not divide the heads of llama-3.1-8b (heads=32, kv_heads=8)"),
    (("--mesh", "dp2ep4"), "llama-3.1-8b has none; use dp, cp, pp and tp, or a model with experts"),
    (("--mesh", "ep8", "--model", "qwen1.5-moe-a2.7b"), "ep8 does not divide experts=60"),
    (("--mesh", "cp8", "--seq", "1001"), "seq 1001 cannot be split evenly over cp8; a multiple of 8 fits, like 1000"),
    (("--mesh", "tp1+sp"), "sequence parallelism over tp, but tp is 1"),
    (("--mesh", "+sp"), "no mesh precedes +sp; write tp8+sp"),
    (("--mesh", "tp8+cp"), "write +sp for sequence parallelism"),
    (("--mesh", "tp8", "--capacity", "half"), "'half' is no factor; write one like 1.25, or full"),
    (("--mesh", "tp8", "--checkpoint", "nowhere"), "nowhere"),
    (("--mesh", "pp3@v5e:1x1"), "mesh pp3 has 3 devices, but v5e:1x1 has 1"),
    (("--mesh", "tp8", "--microbatches", "2"), "with pp=1 it is 1"),
    (("--mesh", "tp8", "--phase", "training"), "error: 'training' is no phase; choose from prefill, decode"),
    (("--mesh", "tp8", "--batch", "many"), "--batch: 'many' is no whole number from 1; write one like 8"),
    (("--mesh", "tp8", "--seq", "1e3"), "--seq: '1e3' is no whole number from 1"),
    (("--mesh", "tp8", "--loop", "rolled"), "invalid choice: 'rolled'"),
    (("--mesh", "tp8", "--style", "free"), "invalid choice: 'free'"),
    (("--mesh", "nowhere.toml"), "cannot read mesh file 'nowhere.toml'"),
    (("--mess", "tp8"), "unrecognized arguments: --mess tp8"),
]


@pytest.mark.parametrize("name", ["plan", "run"])
@pytest.mark.parametrize(("words", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_wrong_request_is_one_line_and_status_2(name, words, says):
    done = run_here(name, *words)
    check_refusal(done, says)


@pytest.mark.parametrize("name", ["plan", "run"])
def test_a_refusal_of_a_process_is_its_last_word(name):
    done = run_process("-m", f"compare.{name}", "--mesh", "tp3x")
    check_refusal(done, "cannot read mesh 'tp3x'")


def test_a_model_that_does_not_fit_names_bytes_and_the_smallest_mesh(tmp_path):
    done = run_here("run", "--mesh", "tp8", "--model", "llama-3.1-70b", "--out", tmp_path / "runs")
    assert done.returncode == 2
    assert "needs 18.0 GB on each device, but a v5e:2x4 device has 17.2 GB" in done.stderr
    assert "the smallest mesh that fits is pp2tp8@v5e:4x4" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_an_arm_that_does_not_exist_is_refused():
    done = run_process("-m", "compare.run", "--mesh", "tp8", "--arm", "mlx")
    check_refusal(done, "unknown framework 'mlx'; choose from jax, torchxla")


WRONG_RUNS = [
    (("--timeout", "0"), "argument --timeout: '0' is no number of seconds greater than 0"),
    (("--timeout=-1",), "'-1' is no number of seconds"),
    (("--timeout", "nan"), "'nan' is no number of seconds"),
    (("--timeout", "inf"), "'inf' is no number of seconds"),
    (("--timeout", "soon"), "'soon' is no number of seconds"),
    (("--arm", "jax,jax"), "framework 'jax' is named twice in --framework jax,jax"),
    (("--arm", ""), "error: --arm is empty; is a variable not set?"),
    (("--arm", "jax,"), "unknown framework ''; choose from jax, torchxla"),
]


@pytest.mark.parametrize(("words", "says"), WRONG_RUNS, ids=[says for _, says in WRONG_RUNS])
def test_a_run_that_cannot_be_meant_is_refused_in_one_line(tmp_path, words, says):
    done = run_here("run", "--mesh", "tp8", *words, "--out", tmp_path / "runs")
    check_refusal(done, says)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("what", ["models", "meshes", "topologies"])
def test_what_there_is_can_be_listed(what):
    done = run_here("run", "--list", what)
    assert done.returncode == 0
    assert {"models": "llama-3.1-70b", "meshes": "tp4pp2.toml", "topologies": "v5p"}[what] in done.stdout


@pytest.mark.parametrize("obstacle", ["file", "read-only", "another's"])
def test_an_output_folder_that_cannot_be_written_is_one_line(tmp_path, obstacle):
    out = tmp_path / "out"
    if obstacle == "file":
        out.write_text("mine")
    elif obstacle == "read-only":
        if os.geteuid() == 0:
            out = Path("/proc/nowhere")  # root writes anywhere else
        else:
            out.mkdir(mode=0o500)
    else:
        place = out / "tiny-tp8-v5e-2x4-b8-s1024-m1-decode"
        place.mkdir(parents=True)
        (place / "thesis.txt").write_text("mine")
    done = run_here("run", "--mesh", "tp8", "--model", "tiny", "--phase", "decode", "--out", out)
    check_refusal(done, str(out))


def test_a_run_that_is_none_is_refused(tmp_path):
    for place in (tmp_path / "nothing", tmp_path):
        done = run_here("report", place)
        check_refusal(done, "is not a run folder: case.json")


CELLS = ["jax/decode/tpu", "torchxla/decode/tpu+einsum"]


@pytest.fixture
def run(tmp_path):
    """The run of the README with two of its decode programs."""
    return copy_example(tmp_path / "run", *CELLS, passes=False, phases=["decode"])


def pack(cell, text):
    (cell / "optimized.hlo.gz").write_bytes(gzip.compress(text.encode()))


def unsealed(cell, text):
    """Another text, in a cell whose about.json knows no digest of it, as those of earlier versions."""
    pack(cell, text)
    about = json.loads((cell / "about.json").read_text())
    del about["hlo_digest"]
    (cell / "about.json").write_text(json.dumps(about))


def set_about(cell, **fields):
    about = json.loads((cell / "about.json").read_text())
    (cell / "about.json").write_text(json.dumps(about | fields))


NO_ABOUT = "about.json cannot be read again: this is not an About of wirediff:"

DAMAGES = [
    (lambda cell: unsealed(cell, "this is no HLO"), "optimized.hlo.gz cannot be understood: "),
    (lambda cell: (cell / "optimized.hlo.gz").write_bytes(b"torn"), "optimized.hlo.gz cannot be read again: "),
    (
        lambda cell: set_about(cell, hlo_digest="0" * 64),
        "optimized.hlo.gz cannot be read again: it is not the file whose",
    ),
    (lambda cell: set_about(cell, memory="x"), f"{NO_ABOUT} memory is 'x', not an object"),
    (lambda cell: set_about(cell, parameters=[3]), f"{NO_ABOUT} parameters is 3, not an object"),
    (lambda cell: (cell / "about.json").write_text("[]"), f"{NO_ABOUT} it is [], not an object"),
    (lambda cell: (cell / "about.json").write_text("{}"), "about.json cannot be read again: it says no status"),
]


@pytest.mark.parametrize(("damage", "says"), DAMAGES, ids=[says for _, says in DAMAGES])
def test_a_damaged_program_costs_only_its_own_cell(run, damage, says):
    damage(run / "torchxla/decode/tpu+einsum")
    done = run_here("report", run, "--json")
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1
    lines = {(line["arm"], line["cell"]): line for line in json.loads(done.stdout)["phases"]["decode"]["headline"]}
    bad = lines.pop(("torchxla", "tpu+einsum"))
    assert (bad["status"], bad["error"].startswith(f"torchxla/decode/tpu+einsum/{says}")) == ("damaged", True), bad
    assert {line["status"] for line in lines.values()} == {"ok"}


def test_a_redrawn_run_keeps_what_others_put_there(run):
    (run / "notes.md").write_text("mine")
    done = run_process("-m", "compare.report", run)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, str(run / "report.html"))
    assert (run / "notes.md").read_text() == "mine"
    for cell in CELLS:
        for name in ("about.json", "optimized.hlo.gz", "program.mlirbc"):
            assert (run / cell / name).read_bytes() == (EXAMPLE / cell / name).read_bytes()


def test_a_redrawn_run_of_which_nothing_is_left_leaves_the_one_before(run):
    assert run_here("report", run).returncode == 0
    page = (run / "report.html").read_text()
    for path in run.glob("*/*/*/optimized.hlo.gz"):
        path.write_bytes(b"torn")
    done = run_here("report", run)
    assert done.returncode == 1
    *words, last = done.stdout.splitlines()
    assert last == f"{run}-failed/report.html"
    assert "this one is beside it" in " ".join(" ".join(words).split())  # wherever the lines are broken
    assert (run / "report.html").read_text() == page


@pytest.mark.parametrize("name", ["plan", "hlo", "report"])
def test_light_doors_import_no_framework(name):
    heavy = "{'jax', 'jaxlib', 'flax', 'torch', 'torch_xla', 'transformers'}"
    code = f"import compare.{name}, sys; print(sorted({heavy} & set(sys.modules)))"
    assert run_process("-c", code, check=True).stdout.strip() == "[]"
