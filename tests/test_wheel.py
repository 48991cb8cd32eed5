"""The wheel, installed outside the checkout, has all that its commands read."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.places import ROOT, copy_example

pytestmark = pytest.mark.slow

PACKAGES = {"compare", "jax_impl", "meshes", "torchxla_impl", "witnesses"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's files alone; what it depends on is this environment's."""
    out = tmp_path_factory.mktemp("wheel")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, out / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, out / "source")
    words = ["wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(out), "./source"]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False, cwd=out)
    assert done.returncode == 0, done.stderr[-2000:]
    (wheel,) = out.glob("wirediff-*.whl")
    zipfile.ZipFile(wheel).extractall(out / "site")
    return out / "site"


def call(site: Path, *words: str) -> str:
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    # The checkout may be installed in this environment as editable: its finder comes behind PYTHONPATH.
    done = subprocess.run(
        [sys.executable, "-P", "-m", "compare", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=site.parent,
        env=environment | {"PYTHONPATH": str(site)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


RUN = ROOT / "docs" / "example-run"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("plan --mesh tp4pp2", "Required communication: llama-3.1-8b on pp2tp4"),
        (f"hlo {RUN}/jax/decode/tpu/optimized.hlo.gz --mesh tp4pp2", "layer.attention.out"),
        (f"query {RUN} --name volume-by-axis", "axes"),
        (f"metric --trace {RUN} --arm jax --phase decode --metric avg_step_time", "0.02"),
        ("teach --list", "matmul-contracting"),
        ("cost --collective all-reduce --bytes 1048576 --machine v6e:2x4", "ns"),
    ],
)
def test_a_command_of_the_wheel_answers(words: str, says: str, site: Path) -> None:
    assert says in call(site, *words.split())


def test_a_report_is_drawn_by_the_wheel(site: Path, tmp_path: Path) -> None:
    run = copy_example(tmp_path / "run", "jax/prefill/tpu", "torchxla/prefill/tpu", phases=["prefill"])
    page = call(site, "report", str(run), "--out", str(tmp_path / "again")).splitlines()[-1]
    assert "TorchXLA moves 1.95" in Path(page).read_text(encoding="utf-8")


def test_the_wheel_has_the_commands_script_and_no_tests(site: Path) -> None:
    (scripts,) = site.glob("wirediff-*.dist-info/entry_points.txt")
    assert "wirediff = compare.cli.front_door:script" in scripts.read_text(encoding="utf-8")
    assert {path.name for path in site.iterdir() if path.suffix != ".dist-info"} == PACKAGES
