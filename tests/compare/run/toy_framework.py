"""A toy arm: a real folder with the worker protocol; libtpu compiles its programs, and its ways to fail are real."""

import shutil
import textwrap
from pathlib import Path

import pytest

from compare.run import scheduler
from compare.run.arms import Arm, Cell
from compare.run.cache import Cache
from meshes.case import Case
from tests.places import PROFILES

LOWER = '''
    """The protocol's shortest worker: y = x @ w over 8 devices, one all-reduce."""
    import json, os, sys, time
    from pathlib import Path
    from meshes.case import Case

    case, out = Case.from_json(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    word = f"{case.phase}+{case.partitioner}"
    does = dict(pair.split("=") for pair in os.environ.get("TOY_DOES", "").split(",") if pair).get(word, "well")
    open(os.environ["TOY_LOG"], "a").write(f"{word}\\n")
    print(json.dumps({"stage": "trace", "seconds": 0.0}), flush=True)
    if does == "abort": os.abort()
    if does == "hang": time.sleep(600)
    if does == "fail": raise ValueError("heads do not divide")
    if does == "refuse": sys.exit(print("no such model", file=sys.stderr) or 2)
    if does == "decline": print(json.dumps({"reason": "not offered"}), flush=True)
    if does in ("decline", "say"): sys.exit(print("not offered: this toy has one partitioner", file=sys.stderr) or 2)
    if does == "nothing": sys.exit(0)
    width = {"prefill": 512, "decode": 256}[case.phase] * (3 if case.partitioner == "gspmd" else 1)
    x, w, y = f"tensor<256x{width}xbf16>", f"tensor<{width}x512xbf16>", "tensor<256x512xbf16>"
    program = f"""module @toy attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
      func.func public @main(%x: {x} {{mhlo.sharding = "{{devices=[1,8]<=[8]}}"}},
                             %w: {w} {{mhlo.sharding = "{{devices=[8,1]<=[8]}}"}})
                             -> ({y} {{mhlo.sharding = "{{replicated}}"}}) {{
        %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {y}
        return %y : {y}
      }}
    }}"""
    def row(index, name, role, dims, *shape):
        return {"index": index, "name": name, "role": role, "dims": dims, "shape": shape, "dtype": "bf16"}
    options = {
        "num_replicas": 1, "num_partitions": 8, "use_spmd_partitioning": True, "use_shardy_partitioner": False,
        "allow_spmd_sharding_propagation_to_output": [False] * (3 if does == "vector" else 1),
    }
    if does == "vector": options["allow_spmd_sharding_propagation_to_output"][2] = True
    (out / "program.mlirbc").write_text("not a program" if does == "garbage" else program)
    about = {"arm": "toy", "phase": case.phase, "versions": {"toy": "1"}, "partitioner": "gspmd",
             "compile_options": options, "seconds": {"trace": 0.1},
             "parameters": [row(0, "x", "input", "batch embed", 256, width),
                            row(1, "w", "weight", "embed mlp", width, 512)],
             "outputs": [row(0, "y", "", "batch mlp", 256, 512)]}
    if does == "silent": del about["compile_options"]
    (out / "about.json").write_text(json.dumps(about))
'''

PROFILE = '''
    """Measures nothing: it hands over a real profile that was recorded before."""
    import gzip, json, os, sys
    from pathlib import Path
    from meshes.case import Case

    case, out, platform = Case.from_json(Path(sys.argv[1]).read_text()), Path(sys.argv[2]), sys.argv[3]
    open(os.environ["TOY_LOG"], "a").write(f"profile+{platform}\\n")
    if os.environ.get("TOY_PROFILE") == "refuse": sys.exit(print("no TPU is attached", file=sys.stderr) or 2)
    packed = Path(os.environ["TOY_RECORDED"]).read_bytes()
    folder = out / "trace" / "plugins" / "profile" / case.phase
    folder.mkdir(parents=True)
    (folder / "toy.xplane.pb").write_bytes(gzip.decompress(packed) if os.environ.get("TOY_PROFILE") != "cut" else b"no")
    about = {"arm": "toy", "phase": case.phase, "versions": {"toy": "1"}, "partitioner": "gspmd", "seconds": {},
             "executed": {"platform": platform, "device_kind": "cpu", "num_devices": 8, "runtime": "toy"}}
    (out / "about.json").write_text(json.dumps(about))
'''

TOY = Arm(
    name="toy",
    module="toy_arm",
    title="Toy",
    packages=("numpy",),
    extra="toy",
    controls=(
        Cell("tpu+gspmd", {"partitioner": "gspmd"}, control="partitioner"),
        Cell("tpu+einsum", {"attention": "einsum"}, control="attention"),
    ),
    start_s=1,
)

RECORDED = PROFILES / "jax.xplane.pb.gz"


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Arm:
    """The arm, installed; `TOY_DOES=decode+native=abort` says how one of its programs goes wrong."""
    folder = tmp_path / "arms" / "toy_arm"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "lower.py").write_text(textwrap.dedent(LOWER))
    (folder / "profile.py").write_text(textwrap.dedent(PROFILE))
    monkeypatch.setenv("TOY_RECORDED", str(RECORDED))
    monkeypatch.delenv("TOY_PROFILE", raising=False)
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    monkeypatch.delenv("TOY_DOES", raising=False)
    return TOY


@pytest.fixture
def case() -> Case:
    """Decode on a v5e:2x4; asks for einsum itself, so that the arm's einsum cell is no other program."""
    return Case.read("tp8", model_name="tiny", attention="einsum", phases=("decode",))


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By mesh a cache that has the toy's decode programs."""
    return tmp_path_factory.mktemp("toy-programs")


@pytest.fixture
def made(toy: Arm, case: Case, tmp_path: Path, made_once: Path) -> Cache:
    """A cache that has the programs of the case, as an earlier run left it: `tmp_path / "cache"`."""
    kept = made_once / str(case.mesh)
    if not kept.exists():
        outcomes = scheduler.run_case(case, arms=[toy], cache=Cache(kept), notify=lambda event: None)
        assert [outcome.status for outcome in outcomes] == ["ok"] * 2
        (tmp_path / "log").unlink()
    return Cache(Path(shutil.copytree(kept, tmp_path / "cache")))
