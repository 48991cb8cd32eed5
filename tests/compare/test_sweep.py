"""Sweeps by their command line: wrong requests, a real one that is killed and goes on, and one on a Ray cluster."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.commands import run_here, run_process
from tests.places import ROOT

TINY = ("--models", "tiny", "--seq", "128", "--phases", "decode", "--arm", "jax", "--controls", "none")
CASES = ("--meshes", "tp8,ep8,tp4pp2,dp2tp4")
NAMES = [
    f"tiny-{mesh}-decode-jax"
    for mesh in ("tp8-v5e-2x4-b8-s128-m1", "pp2tp4-v5e-2x4-b8-s128-m4", "dp2tp4-v5e-2x4-b8-s128-m1")
]


def start_sweep(*words, scratch, environment=None):
    return subprocess.Popen(
        [sys.executable, "-m", "compare.sweep", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=scratch,
        env=os.environ
        | {"PYTHONPATH": str(ROOT), "WIREDIFF_CACHE": str(scratch / "cache"), "COLUMNS": "100"}
        | (environment or {}),
    )


def sweep(*words, **more):
    started = start_sweep(*words, **more)
    out, error = started.communicate(timeout=600)
    return started.returncode, out.splitlines(), error.splitlines()


WRONG = [
    ((), "no mesh is given; write --meshes tp8,tp4pp2"),
    (("--meshes", "tp8,tp3x"), "cannot read mesh 'tp3x'"),
    (("--meshes", "tp8", "--models", "gpt-2"), "unknown model 'gpt-2'"),
    (("--meshes", "ep8", "--models", "tiny"), "none of these 1 combinations is possible"),
    (("--meshes", "tp8", "--arm", "mlx"), "unknown framework 'mlx'"),
    (("--meshes", "tp8", "--engine", "slurm"), "invalid choice: 'slurm'"),
    (("--meshes", "tp8", "--jobs", "0"), "'0' is no whole number from 1"),
    (("--mess", "tp8"), "unrecognized arguments: --mess tp8"),
    (("--meshes", "tp8", "--options", "fast"), "unknown compiler options 'fast'; choose from async-off"),
    (("--meshes", "tp4pp2", "--microbatches", "1,two"), "'two' is no whole number from 1"),
]


@pytest.mark.parametrize(("words", "says"), WRONG, ids=[says for _, says in WRONG])
def test_a_wrong_request_is_one_line_and_status_2(tmp_path, words, says):
    done = run_here("sweep", *words, cwd=tmp_path, environment={"WIREDIFF_CACHE": str(tmp_path / "cache")})
    assert (done.returncode, done.stdout) == (2, "")
    (error,) = done.stderr.splitlines()
    assert says in error
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_of_a_process_is_its_last_word(tmp_path):
    status, out, (error,) = sweep("--meshes", "tp3x", scratch=tmp_path)
    assert (status, out) == (2, [])
    assert "cannot read mesh 'tp3x'" in error


def test_without_ray_its_engine_says_how_to_get_it(tmp_path):
    (tmp_path / "no").mkdir()
    (tmp_path / "no" / "ray.py").write_text("raise ImportError")
    path = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "no"), str(ROOT)])}
    words = ("--meshes", "tp8", "--models", "tiny", "--engine", "ray")
    status, _, error = sweep(*words, scratch=tmp_path, environment=path)
    assert (status, error) == (2, ["error: ray is not installed; get it with pip install -e '.[ray]'"])


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_one_line_at_once(tmp_path):
    pytest.importorskip("ray", reason="ray is not installed: pip install -e '.[ray]'")
    words = ("--meshes", "tp8", "--models", "tiny", "--engine", "ray")
    status, out, (line,) = sweep(*words, scratch=tmp_path, environment={"RAY_ADDRESS": "127.0.0.1:1"})
    assert (status, out) == (2, [])
    assert line.startswith("error: no Ray cluster answers at RAY_ADDRESS=127.0.0.1:1")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("sweep")


def list_made(folder):
    return {name: (folder / name / "report.json").stat().st_mtime_ns for name in NAMES if (folder / name).is_dir()}


@pytest.fixture(scope="module")
def stopped(scratch):
    """A sweep that is killed, without warning, when its first case is done and its second at work."""
    with start_sweep(*CASES, *TINY, "--jobs", 1, "--out", scratch / "out", scratch=scratch) as started:
        deadline = time.monotonic() + 300
        while not list(scratch.glob("out/.sweep/done/*.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1)
        started.send_signal(signal.SIGKILL)
        started.communicate(timeout=20)
    return list_made(scratch / "out")


@pytest.fixture(scope="module")
def done(scratch, stopped):
    return sweep(*CASES, *TINY, "--out", scratch / "out", scratch=scratch)


@pytest.mark.slow
def test_a_killed_sweep_goes_on_where_it_was(scratch, stopped, done):
    status, _, error = done
    assert status == 0, "\n".join(error)
    assert list(stopped) == NAMES[:1]
    joined = [" ".join(line.split()[:3]) for line in error]
    assert f"{NAMES[0]} already done" in joined
    assert list_made(scratch / "out")[NAMES[0]] == stopped[NAMES[0]]
    assert sorted(list_made(scratch / "out")) == sorted(NAMES)
    assert not (scratch / "out/.sweep/begun").exists()


@pytest.mark.slow
def test_it_ends_in_a_table_a_figure_and_a_page(scratch, done):
    _, out, _ = done
    assert out[0].startswith("3 of 4 combinations compiled and judged (1 refused).")
    assert out[-1] == str(scratch / "out/sweep.html")
    joined = " ".join(out)
    assert "tiny on ep8: refused: mesh ep8 splits experts over ep8, but tiny has none" in joined
    assert {path.suffix for path in scratch.glob("out/sweep.*")} == {
        ".json",
        ".csv",
        ".parquet",
        ".png",
        ".svg",
        ".html",
    }
    results = json.loads((scratch / "out/sweep.json").read_text())["results"]
    # Pinned JAX moves what the plan needs; with two stages and four microbatches a fifth of the ticks is a bubble.
    ratios = {item["mesh"]: item["phases"]["decode"]["programs"][0]["ratio"] for item in results if item["phases"]}
    assert ratios["tp8"] == pytest.approx(1, abs=0.01)
    assert ratios["dp2tp4"] == pytest.approx(1, abs=0.01)
    assert ratios["tp4pp2"] == pytest.approx(5 / 4, abs=0.1)


@pytest.mark.slow
def test_again_it_makes_nothing_and_prints_what_is_in_its_file(scratch, done):
    before = list_made(scratch / "out")
    status, out, error = sweep(*CASES, *TINY, "--json", "--out", scratch / "out", scratch=scratch)
    assert status == 0
    assert json.loads("\n".join(out)) == json.loads((scratch / "out/sweep.json").read_text())
    assert [line.split()[1:3] for line in error if line.startswith("tiny-")] == [["already", "done"]] * 3
    assert error[-1] == str(scratch / "out/sweep.html")
    assert list_made(scratch / "out") == before


@pytest.mark.slow
def test_a_case_of_a_sweep_is_what_compare_run_makes(scratch, done):
    words = ("--mesh", "tp8", "--model", "tiny", "--seq", "128", "--phase", "decode", "--arm", "jax")
    words += ("--controls", "none")
    environment = {"WIREDIFF_CACHE": str(scratch / "cache")}
    run_process("-m", "compare.run", *words, "--out", scratch / "runs", environment=environment, check=True)
    run_folder, other = ((scratch / place / NAMES[0]) for place in ("runs", "out"))
    assert (run_folder / "report.json").read_bytes() == (other / "report.json").read_bytes()
    files = [{path.relative_to(run) for path in run.rglob("*")} for run in (run_folder, other)]
    assert files[0] == files[1]


@pytest.mark.long
@pytest.mark.slow
def test_16_to_64_microbatches_have_their_energy_and_what_does_not_divide_says_what_would(tmp_path):
    words = ("--energy", "--models", "tiny", "--seq", "128", "--batch", "64", "--meshes", "tp4pp2", "--no-pages",
             "--phases", "decode", "--controls", "none", "--microbatches", "16,24,32,64")  # fmt: skip
    status, _, error = sweep(*words, "--out", tmp_path / "out", scratch=tmp_path)
    assert status == 0, "\n".join(error)
    line = (
        "tiny on tp4pp2: batch 64 cannot be split evenly over dp1 · ep1 · 24 microbatches; a multiple of 24 fits, like "
        "48; for batch 64 16 or 32 microbatches"
    )
    assert error[0] == line
    results = json.loads((tmp_path / "out/sweep.json").read_text())["results"]
    assert [(row["microbatches"], row["status"]) for row in results] == [
        (16, "done"),
        (None, "refused"),
        (32, "done"),
        (64, "done"),
    ]
    for arm in ("jax", "torchxla"):
        rows = [
            next(program for program in row["phases"]["decode"]["programs"] if program["arm"] == arm)
            for row in results
            if row["phases"]
        ]
        # A step of a tiny model is launches, which the ticks have each: twice the microbatches take longer, and more.
        per_token = [row["energy"]["per_token_j"] for row in rows]
        assert per_token == sorted(per_token)
        steps = [row["modelled_step_ns"] for row in rows]
        assert steps == sorted(steps)
        for row in rows:
            assert row["energy"]["per_token_j"] == pytest.approx(row["energy"]["step_j"] / 64)
            assert len(row["energy"]["chips"]) == 8
    for number in (16, 32, 64):
        report = json.loads((tmp_path / f"out/tiny-pp2tp4-v5e-2x4-b64-s128-m{number}-decode/report.json").read_text())
        for arm in ("jax", "torchxla"):
            pipeline = report["phases"]["decode"]["arms"][arm]["timing"]["pipeline"]
            assert len(pipeline["ticks"]) == number + 1  # m + p − 1
            assert pipeline["bubble_share"] == pytest.approx(1 / (number + 1), rel=1e-6)
    assert (tmp_path / "out/energy-microbatches-tiny-decode.svg").is_file()
    assert not list((tmp_path / "out").glob("tiny-*/report.html"))


CLUSTER = """
    import sys
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    print(cluster.address, *(node.node_id for node in nodes), flush=True)
    sys.stdin.read()
    cluster.shutdown()
"""


@pytest.fixture
def cluster(scratch):
    """A real one: a head that takes no work, and two workers of one CPU each.  Its address, and the workers' ids."""
    pytest.importorskip("ray", reason="ray is not installed: pip install -e '.[ray]'")
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "WIREDIFF_CACHE": str(scratch / "cache")}
    with (
        (scratch / "cluster.txt").open("w+") as said,
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CLUSTER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            env=os.environ | quiet,
        ) as started,
    ):
        try:
            words = started.stdout.readline().split()
            assert words, (scratch / "cluster.txt").read_text()
            yield words
        finally:
            started.communicate("")


@pytest.mark.slow
def test_two_workers_of_a_ray_cluster_make_the_same(scratch, done, cluster):
    address, *workers = cluster
    far = NAMES[:2]
    words = ("--meshes", "tp8,ep8,tp4pp2", *TINY, "--engine", "ray", "--out", scratch / "far")
    status, out, error = sweep(*words, scratch=scratch, environment={"RAY_ADDRESS": address})
    assert status == 0, "\n".join([*out, *error])
    at = {line.split()[0]: line.split("start on node ")[1].split()[0] for line in error if "start on node" in line}
    assert sorted(at) == sorted(far)
    assert {node[:8] for node in workers} == set(at.values())
    assert sorted(list_made(scratch / "far")) == sorted(far)
    for name in far:
        assert (scratch / "far" / name / "report.json").read_bytes() == (
            scratch / "out" / name / "report.json"
        ).read_bytes()
    here, remote = (json.loads((scratch / place / "sweep.json").read_text())["results"] for place in ("out", "far"))
    assert remote == [row for row in here if row["folder"] in (*far, None)]
