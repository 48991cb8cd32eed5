"""The engine of one machine, on real processes: a toy worker that ends well, aborts, or hangs."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from pathlib import Path

import pytest

from compare.sweep.engines import local
from compare.sweep.engines.local import CaseTask
from tests.places import ROOT

WORKER = '''
    """Of each folder on stdin: notes when it begins and ends its case; does what it is asked for."""
    import json, os, sys, time
    from pathlib import Path

    for line in sys.stdin:
        out = Path(json.loads(line))
        asked = json.loads((out / "request.json").read_text())
        log = Path(os.environ["TOY_LOG"])
        log.open("a").write(f"+{asked['at_once']} {os.getpid()}\\n")
        time.sleep(0.15)
        print(json.dumps({"stage": "half way"}), flush=True)
        does = asked["does"]
        if does == "warn": print("this and that is odd", file=sys.stderr, flush=True)
        if does == "abort": os.abort()
        if does == "hang": time.sleep(600)
        if does == "refuse": sys.exit(print("error: no such thing", file=sys.stderr) or 2)
        time.sleep(0.3)
        (out / "run").mkdir()
        made = {"judged": True, "complete": does in ("well", "warn")}
        log.open("a").write("-\\n")
        (out / "made.part").write_text("{" if does == "half" else json.dumps(made))
        (out / "made.part").rename(out / "made.json")
        time.sleep(0.15)  # longer than the engine waits between two looks
        print(json.dumps({"stage": "done"}), flush=True)
'''


@pytest.fixture
def log(tmp_path, monkeypatch):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy_worker.py").write_text(textwrap.dedent(WORKER))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "toy"))
    monkeypatch.setenv("TOY_LOG", str(tmp_path / "log"))
    monkeypatch.setattr(local, "WORKER", "toy_worker")
    return tmp_path / "log"


def tasks(*does):
    return [CaseTask(name=f"{at}-{word}", request={"does": word}) for at, word in enumerate(does)]


def run_tasks(tmp_path, *does, at_once, events=None, **more):
    hear = (lambda *event: events.append(event)) if events is not None else lambda *event: None
    ended = local.run_cases(tasks(*does), at_once=at_once, scratch=tmp_path / "begun", notify=hear, **more)
    return {task.name: outcome for task, outcome in ended}


def most_at_once(log):
    running = most = 0
    for line in log.read_text().split("\n"):
        running += {"+": 1, "-": -1}.get(line[:1], 0)
        most = max(most, running)
    return most


@pytest.mark.parametrize("at_once", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_so_many_cases_are_made_at_a_time_and_no_more(tmp_path, log, at_once):
    cases = at_once + 1
    outcomes = run_tasks(tmp_path, *["well"] * cases, at_once=at_once)
    assert [(outcome.status, outcome.complete, outcome.run.is_dir()) for outcome in outcomes.values()] == [
        ("ok", True, True)
    ] * cases
    assert most_at_once(log) == at_once


@pytest.mark.parametrize(
    ("cases", "at_once", "programs"),
    [(1, None, 8), (3, None, 2), pytest.param(9, None, 1, marks=pytest.mark.slow), (9, 2, 4)],
)
def test_cores_that_no_case_takes_are_left_to_the_programs_of_each(
    tmp_path, log, monkeypatch, cases, at_once, programs
):
    monkeypatch.setattr(local, "cores", lambda: 8)
    run_tasks(tmp_path, *["refuse"] * cases, at_once=at_once)
    assert {line.split()[0] for line in log.read_text().splitlines()} == {f"+{programs}"}


def test_a_worker_that_ends_badly_costs_its_own_case(tmp_path, log):
    outcomes = run_tasks(tmp_path, "abort", "refuse", "half", "part", "well", at_once=5)
    assert {name: (outcome.status, outcome.error, outcome.complete) for name, outcome in outcomes.items()} == {
        "0-abort": ("crashed", "died of SIGABRT", False),
        "1-refuse": ("failed", "no such thing", False),
        "2-half": ("failed", "the process wrote no run folder", False),
        "3-part": ("ok", "", False),
        "4-well": ("ok", "", True),
    }


def test_the_cases_share_as_many_processes_as_run_at_a_time(tmp_path, log):
    run_tasks(tmp_path, *["well"] * 4, at_once=2)
    assert len(pids(log)) == 4
    assert len(set(pids(log))) == 2


@pytest.mark.slow
def test_a_process_is_replaced_after_so_many_cases(tmp_path, log, monkeypatch):
    monkeypatch.setattr(local, "MOST_CASES", 2)
    outcomes = run_tasks(tmp_path, *["well"] * 4, at_once=1)
    assert [outcome.status for outcome in outcomes.values()] == ["ok"] * 4
    assert [pids(log).count(pid) for pid in dict.fromkeys(pids(log))] == [2, 2]


def test_a_crash_says_nothing_of_the_case_before(tmp_path, log):
    outcomes = run_tasks(tmp_path, "warn", "abort", "well", at_once=1)
    assert [(outcome.status, outcome.error) for outcome in outcomes.values()] == [
        ("ok", ""),
        ("crashed", "died of SIGABRT"),
        ("ok", ""),
    ]
    assert len(set(pids(log))) == 2


def test_what_each_is_at_is_told_as_it_comes(tmp_path, log):
    events = []
    run_tasks(tmp_path, "well", at_once=1, events=events)
    stages = list(dict.fromkeys((name, stage) for name, stage, _ in events))
    # That it has started is told while nothing else is heard of it: a quick one is half way before.
    assert [stage for stage in stages if stage[1] != "start"] == [("0-well", "half way")]


def test_a_case_does_not_begin_at_the_stage_of_the_one_before(tmp_path, log):
    events = []
    run_tasks(tmp_path, "well", "well", at_once=1, events=events)
    second = [(stage, seconds) for name, stage, seconds in events if name == "1-well"]
    assert second[0][0] in ("start", "half way")
    assert second[0][1] < 0.3
    assert {stage for stage, _ in second} <= {"start", "half way"}


def is_gone(pid):
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


def soon(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def pids(log):
    return [int(line.split()[1]) for line in log.read_text().splitlines() if line[0] == "+"] if log.exists() else []


def test_left_early_it_ends_what_runs(tmp_path, log):
    engine = local.run_cases(
        tasks("well", "hang", "hang"), at_once=2, scratch=tmp_path / "begun", notify=lambda *_: None
    )
    with closing(engine):
        next(engine)
    assert all(is_gone(pid) for pid in pids(log))


def test_killed_it_takes_its_workers_with_it(tmp_path, log):
    script = f"""
        from pathlib import Path
        from compare.sweep.engines import local
        local.WORKER = "toy_worker"
        tasks = [local.CaseTask(name="only", request={{"does": "hang"}})]
        list(local.run_cases(tasks, at_once=1, scratch=Path({str(tmp_path / "begun")!r}), notify=lambda *_: None))
    """
    path = os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])
    started = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], env=os.environ | {"PYTHONPATH": path})
    assert soon(lambda: bool(pids(log)))
    started.send_signal(signal.SIGKILL)
    started.wait(timeout=10)
    assert soon(lambda: is_gone(pids(log)[0]))


def test_a_request_says_all_that_a_worker_needs(tmp_path, log):
    (outcome,) = run_tasks(tmp_path, "well", at_once=1).values()
    assert json.loads((outcome.run.parent / "request.json").read_text()) == {"does": "well", "at_once": local.cores()}
