"""docs/own_program.md: its examples run, each in a process of its own, as they stand there."""

import os
import re
import subprocess
import sys
from functools import partial

import pytest

from compare.cli.history import main as history
from compare.run.cache import make_key
from tests.places import ROOT

EXAMPLES = dict(
    re.findall(r"<!-- example: (\w+) -->\n```python\n(.*?)```", (ROOT / "docs/own_program.md").read_text(), re.DOTALL)
)
(README,) = re.findall(r"<!-- example: own -->\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
SPELLINGS = """
import sys
from jax._src.interpreters import mlir
before = lowered.as_text(debug_info=True), mlir.module_to_bytecode(lowered.compiler_ir("stablehlo"))
old = lowered.as_text("hlo"), lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
for spelled in (*before, *old):
    again = collectives(spelled, axes=AXES)
    assert not again.diff(table), again.diff(table)
for spelled in (*before, old[0]):
    assert list(collectives(spelled, topology="v5e:2x4").axes.items()) == list(AXES.items())  # Shardy writes them
jax.config.update("jax_use_shardy_partitioner", False)
gspmd = jax.jit(mlp, out_shardings=out).trace(x, up, down).lower(lowering_platforms=("tpu",))
assert "sdy" not in gspmd.as_text()
assert collectives(gspmd, topology="v5e:2x4").counts() == table.counts()
table.save(sys.argv[1])
for wrong in ({"tensor": 4, "data": 2}, {"data": 4, "tensor": 2}):
    try:
        collectives(gspmd, axes=wrong, topology="v5e:2x4")
    except ValueError as error:
        print(error)
try:
    collectives(lowered)
except ValueError as error:
    print(error)
try:
    collectives(lowered, axes={"x": 4}, topology="v5e:2x4")
except ValueError as error:
    print(error)
try:
    collectives(lowered, axes=AXES, topology="v5e:4x4")
except ValueError as error:
    print(error)
"""


@pytest.fixture
def run(shared_cache):
    """Run code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "TPU_"))}
    return partial(_run, env=kept | {"WIREDIFF_CACHE": str(shared_cache)})


def _run(code, *arguments, env):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "E0000" not in done.stderr
    assert "WARNING" not in done.stderr
    return done.stdout


@pytest.fixture
def run_file(run, shared_cache):
    """Run code from a file model.py, whose lines it names; at the same path its programs are found again."""

    def run_code(code):
        folder = shared_cache / "examples" / make_key(code)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.py").write_text(code)
        return run(f"import runpy; runpy.run_path({str(folder / 'model.py')!r})")

    return run_code


def test_there_is_an_example_of_each():
    assert list(EXAMPLES) == ["jax", "torchxla", "judge", "fsdp", "training", "text", "other"]


def test_the_example_of_text_runs(run):
    assert run(EXAMPLES["text"]) == ""


@pytest.mark.slow
def test_the_example_of_pytorch_runs(run):
    run(EXAMPLES["torchxla"])


def test_a_layer_of_another_environment_is_judged_as_the_page_prints_it(run):
    page = (ROOT / "docs/own_program.md").read_text()
    shown = page.partition("<!-- example: other -->")[2].partition("```\n\n```\n")[2].partition("```")[0]
    assert [line.rstrip() for line in run(EXAMPLES["other"]).splitlines()] == shown.splitlines()


@pytest.mark.slow
def test_the_example_of_a_model_is_judged_as_the_page_prints_it_and_its_remedy_leaves_the_contract(run_file):
    page = (ROOT / "docs/own_program.md").read_text()
    printed, shown = run_file(EXAMPLES["judge"]), page.partition("The\nverdict:\n\n```\n")[2].partition("```")[0]
    assert shown.split() == printed.split()
    # Two sums of [4, 2048] bf16 in each of 16 layers and one for the embedding, 24,576 B each on the wire; the winners
    # of four shards for four sequences, 6 B each, of which 3/4 are sent.
    required = 33 * 24_576 + 72
    assert f"The contract requires {required:,} B" in printed
    apart = {"8 * 32": "8, 32", "nqd": "bnqd", "nkd": "bnkd", "nqk": "bnqk"}
    code = EXAMPLES["judge"]
    for merged, kept in apart.items():
        assert merged in code
        code = code.replace(merged, kept)
    assert f"Emitted {required:,} B a step" in run_file(code)


@pytest.mark.slow
def test_gathers_of_weights_that_are_split_on_purpose_are_needed_and_sums_in_their_place_are_not(run_file):
    page, code = (ROOT / "docs/own_program.md").read_text(), EXAMPLES["fsdp"]
    shown = page.partition("<!-- example: fsdp -->")[2].partition("```\n\n```\n")[2].partition("```")[0]
    assert run_file(code).replace("…/", "").split() == shown.split()
    # Gate, up and down of a layer, [2048, 8192 / 4] bf16 each, of which fsdp's two members send one another half.
    gathered = 16 * 3 * 2048 * 2048 * 2 // 2
    assert gathered == 3 * 67_108_864
    # Embedding and 16 sums over tp of [4, 128, 2048] bf16 on the wire.
    summed = 17 * 4 * 128 * 2048 * 2 * 2 * 3 // 4
    assert f"Emitted {gathered + summed:,} B a step, mean over devices: {gathered + summed:,} B inherent" in shown
    # The weights of attention that are not there: q and o of 32 heads of 64, k and v of 8, a quarter on each device.
    missing = 16 * 2048 * 64 * 2 * (8 + 2)
    assert f"{missing:,} B of 243,269,632 B are unserved of all-gather over fsdp of weights, 16 ×." in shown
    wrong = code.replace("return pin(x", "return (x").replace("pin(weights", "(weights")
    printed = run_file(wrong)
    # Gate's and up's [8, 128, 8192 / 4] bf16 of all sequences are summed over two, in each layer.
    assert f"{16 * 2 * 8 * 128 * 2048 * 2:,} B induced, activation-gather" in printed
    assert "Nothing serves all-gather over fsdp of weights, 16 ×: 243,269,632 B." in printed
    assert "Remedy: pin it" in printed
    assert "weight-gather" not in printed
    # Of a case whose contract was not told the axis, the program itself says it.
    found = code.replace(', weights_over="fsdp"', "").replace('"v5e:2x4", scopes', '"v5e:2x4", mesh="dp2tp4", scopes')
    found = found.replace("judge(table, of_block)", "judge(table, contract)")
    printed = " ".join(run_file(found).split())
    assert "Note: the program keeps 3 weights split over dp, to store less of them" in printed
    assert f"Emitted {gathered + summed:,} B a step, mean over devices: {gathered + summed:,} B inherent" in printed
    assert "all-gather over dp of embed" not in printed
    assert "weight-gather" not in printed


@pytest.mark.slow
def test_a_training_step_is_rolled_up_as_the_page_prints_it(run_file):
    page = (ROOT / "docs/own_program.md").read_text()
    shown = page.partition("Below the rows it prints\n\n```\n")[2].partition("```")[0]
    printed = run_file(EXAMPLES["training"])
    assert [line.rstrip() for line in printed.splitlines()][-len(shown.splitlines()) :] == shown.splitlines()
    # Gathered weights of [1024, 1024] bf16, of which fsdp's two members send one another half: two forward, and two
    # behind; sums of [16, 128, 1024] over four, forward and of the gradient of x; both gradients of it, scattered.
    weight, summed = 1024 * 1024 * 2, 16 * 128 * 1024 * 2 * 2 * 3 // 4
    assert f"forward     3  {12 * (2 * weight // 2 + summed):,} B".replace("  ", " ") in printed.replace("  ", " ")
    assert f"{12 * (4 * weight // 2 + 2 * summed + 2 * weight // 2):,} B a step" in printed


@pytest.mark.slow
def test_the_readme_s_example_runs_where_no_device_is(run):
    # [32, 2048] bf16 summed over four: one and a half of 131,072 bytes.
    assert "1 collective moves 196,608 B a step, mean over devices. Compiled for v5e:2x4" in run(README)


@pytest.mark.slow
def test_the_example_of_jax_runs_and_every_spelling_of_it_is_the_same_program(run, tmp_path, capsys):
    printed = run(EXAMPLES["jax"] + SPELLINGS, tmp_path / "saved").splitlines()
    # The sum of [32, 512] bf16 over four: one and a half of 32,768 bytes.
    total = "1 collective moves 49,152 B a step, mean over devices. Compiled for v5e:2x4 by libtpu "
    assert [line for line in printed if line.startswith(total)]
    order = "and its own mesh is data=2,tensor=4, outermost first; give them as the mesh has them, or leave them out"
    assert printed[-5:] == [
        f"this Lowered: the axes are tensor=4,data=2, {order}",
        f"this Lowered: the axes are data=4,tensor=2, {order}",
        "this Lowered is of an abstract mesh, which has no devices that JAX could compile it for; name a TPU, which "
        "need not be there: topology='v5e:2x4'",
        "this Lowered: the axes make 4 devices; the program is for 8",
        "this Lowered: v5e:4x4 has 16 devices; the program is for 8",
    ]
    # What was saved has the passes of its compile: they tell who put the sum there.
    assert history([str(tmp_path / "saved")]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "all-reduce",
        "all-reduce",
        "over",
        "tensor",
        "?",
        "partitioner",
    ]
