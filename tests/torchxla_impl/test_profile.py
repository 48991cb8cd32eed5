"""The worker that runs a case: what it writes and says, how it refuses, and that only its start knows the platform."""

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from meshes.case import Case
from tests.torchxla_impl.workers import ROOT, run, run_twin
from tests.twins.recorded import (
    LAWS,
    TINY_STEP,
    CarriedProgram,
    ProfileRecord,
    cache_aliases,
    check_about,
    declared_shapes,
)

FORMS = {"prefill": "scan", "decode": "unrolled"}

ELSEWHERE = """
import sys
from torchxla_impl import profile
from torchxla_impl.process.start import start
profile.start = lambda *, num_devices, platform: start(num_devices=num_devices)
sys.exit(profile.main(sys.argv[1:]))
"""
"""The worker, with CPU devices in the place of those that it is asked for."""


@dataclass(frozen=True)
class Done:
    case: Case
    out: Path
    said: list[str]

    @property
    def profile(self) -> Path:
        return self.out / "trace" / "plugins" / "profile" / self.case.phase / "torchxla.xplane.pb"

    @property
    def about(self) -> dict[str, Any]:
        described: dict[str, Any] = json.loads((self.out / "about.json").read_text())
        return described


def tiny(out: Path, **words: Any) -> Path:
    """Attention as einsum: the framework's own call adds gathers."""
    case = Case.read("dp2pp2tp2", model_name="tiny", seq=32, attention="einsum", **words)
    (out / "case.json").write_text(case.to_json())
    return out / "case.json"


@pytest.fixture(scope="module", params=FORMS)
def done(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Done:
    out = tmp_path_factory.mktemp(request.param)
    path = tiny(out, phases=(request.param,), loop=FORMS[request.param])
    ended = run_twin(out, "-m", "torchxla_impl.profile", path, out, "cpu")
    assert ended.returncode == 0, ended.stderr[-3000:]
    said = [json.loads(line)["stage"] for line in ended.stdout.splitlines()]
    return Done(Case.from_json(path.read_text()), out, said)


@pytest.mark.slow
def test_it_says_where_it_is_and_writes_what_it_found(done: Done) -> None:
    assert done.said == ["import", "load", "compile", "warm up", "record", "write"]
    check_about(done.about, arm="torchxla", phase=done.case.phase, runtime="torch_xla")
    written = {str(path.relative_to(done.out)) for path in done.out.rglob("*") if path.is_file()}
    assert written == {"case.json", "about.json", str(done.profile.relative_to(done.out))}


@pytest.mark.slow
def test_five_steps_are_marked_and_follow_each_other(done: Done) -> None:
    steps = ProfileRecord.read(done.profile).steps
    assert [(step.name, step.number) for step in steps] == [(done.case.phase, number) for number in range(5)]
    assert all(earlier.end_ns <= other.start_ns for earlier, other in pairwise(steps))


@pytest.mark.slow
def test_the_collectives_of_all_devices_run_in_every_step_and_none_between(done: Done) -> None:
    """Eight times those of one device: this runtime does not say which is whose."""
    read_back = ProfileRecord.read(done.profile)
    assert read_back.executions == [{(kind, None): 8 * n for kind, n in TINY_STEP.items()}] * 5
    assert read_back.outside == 0
    assert read_back.python_frames == 0


@pytest.mark.slow
def test_the_profile_carries_the_program_with_its_scopes(done: Done) -> None:
    """One program: nothing is compiled again while it is recorded."""
    assert CarriedProgram.read(done.profile).rows == LAWS


@pytest.mark.slow
def test_the_program_has_the_declared_parameters_and_overwrites_the_cache(done: Done) -> None:
    """This runtime donates both caches, and leaves it to XLA which of the results takes whose place."""
    carried = CarriedProgram.read(done.profile)
    assert carried.parameters == declared_shapes(done.about, axes=done.case.mesh.axes)
    pairs = cache_aliases(done.about)
    assert (set(carried.overwritten), set(carried.overwritten.values())) == (set(pairs), set(pairs.values()))


@pytest.mark.slow
def test_without_a_tpu_it_says_so_at_the_end(tmp_path: Path) -> None:
    path = tiny(tmp_path, phases=("decode",))
    ended = run(["-m", "torchxla_impl.profile", str(path), str(tmp_path), "tpu"])
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith("no TPU is attached to this machine: ")
    assert "Traceback" not in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["case.json"]


def test_only_the_start_depends_on_the_platform() -> None:
    """The rest of a run on TPUs is what the tests above run on CPUs."""
    lines = (ROOT / "torchxla_impl" / "profile.py").read_text().splitlines()
    assert [line.strip() for line in lines if "platform" in line] == [
        "def profile(case: Case, out: Path, platform: str) -> None:",
        "start(platform=platform, num_devices=case.mesh.num_devices)",
        '"platform": platform,',
    ]


@pytest.mark.slow
def test_asked_for_tpus_it_does_with_what_it_gets_what_it_does_with_cpus(tmp_path: Path) -> None:
    done = run_twin(tmp_path, "-c", ELSEWHERE, tiny(tmp_path, phases=("decode",)), tmp_path, "tpu")
    assert done.returncode == 0, done.stderr[-3000:]
    about = json.loads((tmp_path / "about.json").read_text())
    assert (about["executed"]["platform"], about["executed"]["steps"]) == ("tpu", 5)
    profile = tmp_path / "trace/plugins/profile/decode/torchxla.xplane.pb"
    assert len(ProfileRecord.read(profile).steps) == 5
    assert CarriedProgram.read(profile).rows == LAWS


def test_what_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tiny(tmp_path, phases=("decode",))
    two = tmp_path / "two"
    two.mkdir()
    for says, arguments in {
        "platform is 'gpu'; choose from cpu, tpu": (path, tmp_path, "gpu"),
        "usage: python -m torchxla_impl.profile CASE.json OUTDIR cpu|tpu": (path, tmp_path),
        "this case has the phases prefill, decode; a program is of one phase": (tiny(two), tmp_path, "cpu"),
    }.items():
        ended = run(["-m", "torchxla_impl.profile", *map(str, arguments)])
        assert (ended.returncode, ended.stderr) == (2, f"{says}\n")
