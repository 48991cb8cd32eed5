"""Hostile requests of every door: one clean line, status 2, at once."""

import json
import os
import signal
import subprocess
import sys

import pytest

from compare.cli import diff, history, hlo, plan, remedy, report, run, sweep, teach, trace
from meshes.process.command_line import run_to_status
from tests.places import ROOT

HUGE = "9" * 400
NAME = "no\x1b[31m\nfile" + "x" * 150

REQUESTS = [
    *((plan, ("--mesh", "tp4pp2", option, HUGE)) for option in ("--batch", "--seq", "--microbatches")),
    *((plan, ("--mesh", "tp4pp2", option, "9" * 5_000)) for option in ("--batch", "--seq", "--microbatches")),
    (plan, ("--mesh", "tp4pp2", "--capacity", HUGE)),
    (plan, ("--mesh", f"tp{HUGE}")),
    (plan, ("--mesh", f"tp8@{HUGE}xv5e:2x4")),
    (plan, ("--mesh", "tp8@999999xv5e:16x16")),
    (plan, ("--mesh", "\x1b[31m\n")),
    (plan, ("--mesh", "x" * 100_000)),
    (plan, ("--mesh", f"{NAME}.toml")),
    (plan, ("--mesh", "tp8", "--phase", "\x1b[31m" * 1_000)),
    (plan, ("--mesh", "tp8", "--checkpoint", NAME)),
    (plan, ("--mesh", "tp8", "--\x1b[31m\n" + "x" * 100_000)),
    (run, ("--mesh", "tp8", "--timeout", HUGE)),
    (run, ("--mesh", "tp8", "--arm", "\x1b[31m" * 1_000)),
    (run, ("--mesh", "tp8", "--controls", "\x1b[31m\n" * 1_000)),
    (run, ("--mesh", "tp8", "--libtpu", HUGE, "--arm", "none")),
    (run, ("--mesh", "tp8", "--fail-if", "x" * 10_000 + ">\x1b[31m0")),
    (sweep, ("--meshes", "tp8", "--jobs", HUGE)),
    (sweep, ("--meshes", f"tp{HUGE}")),
    (remedy, ("--mesh", "tp8", "--max-compiles", HUGE)),
    (teach, ("\x1b[31m\n" * 1_000,)),
    (hlo, (NAME,)),
    (trace, (NAME,)),
    (report, (NAME,)),
    (history, (NAME,)),
    (diff, (NAME, NAME)),
]


@pytest.mark.parametrize(
    ("door", "words"), REQUESTS, ids=[f"{door.__name__}-{at}" for at, (door, _) in enumerate(REQUESTS)]
)
def test_a_hostile_request_is_one_clean_line(door, words, capsys):
    def work() -> int:
        try:
            return door.main(words)
        except SystemExit as ended:
            return ended.code

    assert run_to_status(work) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert len(err) <= 501
    assert err[:-1].isprintable()


def test_a_factor_of_any_size_is_a_capacity(capsys):
    words = ("--mesh", "dp2ep4", "--model", "tiny-moe", "--json", "--capacity")
    totals = []
    for capacity in ("1e308", "full"):
        assert plan.main((*words, capacity)) == 0
        totals.append(json.loads(capsys.readouterr().out)["phases"]["prefill"]["total"])
    assert totals[0] == totals[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_asked_to_end_leaves_neither_run_nor_scratch(number, tmp_path):
    pytest.importorskip("jax", reason="needs jax: pip install -e '.[jax]'")
    pytest.importorskip("libtpu", reason="needs libtpu: pip install -e '.[jax]'")
    words = ("--mesh", "tp8", "--model", "tiny", "--arm", "jax", "--controls", "none", "--phase", "decode")
    started = subprocess.Popen(
        [sys.executable, "-m", "compare.run", *words, "--no-passes", "--out", str(tmp_path / "runs")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"WIREDIFF_CACHE": str(tmp_path / "cache")},
    )
    assert started.stderr
    for line in started.stderr:
        if "import" in line:  # a worker is at work
            break
    assert list((tmp_path / "runs").iterdir())
    started.send_signal(number)
    out, err = started.communicate()
    assert (started.returncode, out) == (128 + number, "")
    assert err.splitlines()[-1] == "stopped"
    assert list((tmp_path / "runs").iterdir()) == []
    assert list((tmp_path / "cache" / "begun").iterdir()) == []
