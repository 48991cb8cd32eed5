"""All cells of a case, by a real toy arm and the real libtpu: what is run, what is reused, what a failure costs."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from compare.run import scheduler, tasks
from compare.run.arms import Cell
from compare.run.cache import Cache
from compare.run.processes import ProcessEnd, Reason
from meshes.case import Case
from meshes.process.errors import MeshError
from tests.places import ROOT

pytestmark = pytest.mark.slow

pytest.importorskip("libtpu", reason="needs libtpu: pip install -e '.[jax]'")

CELLS = [("prefill", "tpu"), ("prefill", "tpu+gspmd"), ("decode", "tpu"), ("decode", "tpu+gspmd")]


def run(case, arm, cache, *, events=None, **more):
    tasks.arm_sources.cache_clear()
    hear = events.append if events is not None else lambda event: None
    return scheduler.run_case(case, arms=[arm], cache=cache, notify=hear, **more)


def count_lowered(tmp_path: Path) -> Counter:
    return Counter((tmp_path / "log").read_text().split()) if (tmp_path / "log").exists() else Counter()


def test_every_cell_is_lowered_and_compiled_once(toy, case, tmp_path):
    cache, events = Cache(tmp_path / "cache"), []
    outcomes = run(case.at(phases=("prefill", "decode")), toy, cache, events=events)
    assert [(o.phase, o.cell, o.status) for o in outcomes] == [(*cell, "ok") for cell in CELLS]
    assert set(count_lowered(tmp_path).values()) == {1}
    assert len(count_lowered(tmp_path)) == 4
    for outcome in outcomes:
        assert (outcome.program / "program.mlirbc").is_file()
        assert (outcome.compiled / "optimized.hlo.gz").is_file()
        process = json.loads((outcome.compiled / "process.json").read_text())
        assert process["process_s"] > 0
        assert process["peak_bytes"] > 50e6
    assert list((tmp_path / "cache" / "begun").iterdir()) == []
    changes = list(dict.fromkeys((e.step, e.stage) for e in events if (e.phase, e.cell) == CELLS[0]))
    assert changes[0] == ("lower", "start")
    assert [stage for stage in changes if stage[1] == "done"] == [("lower", "done"), ("compile", "done")]
    assert ("compile", "compile") in changes


def test_a_second_run_starts_no_process(toy, case, tmp_path, made):
    events = []
    second = run(case, toy, made, events=events)
    assert count_lowered(tmp_path) == {}
    assert {event.stage for event in events} == {"cached"}
    assert {o.compiled for o in second} == set((tmp_path / "cache/compiled").iterdir())
    assert {o.cached for o in second} == {("lower", "compile")}


def test_a_changed_source_is_lowered_again_and_compiled_again_only_if_the_program_changed(toy, case, tmp_path, made):
    source = tmp_path / "arms" / "toy_arm" / "lower.py"
    source.write_text(source.read_text() + "\n# a comment\n")
    assert {o.cached for o in run(case, toy, made)} == {("compile",)}
    source.write_text(source.read_text().replace("512xbf16", "1024xbf16"))
    assert {o.cached for o in run(case, toy, made)} == {()}


def test_another_topology_is_compiled_again_but_not_lowered(toy, made):
    other = Case.read("tp8@v6e:2x4", model_name="tiny", attention="einsum", phases=("decode",))
    assert {o.cached for o in run(other, toy, made)} == {("lower",)}


def test_a_variable_that_can_change_a_program_is_part_of_its_key(toy, case, monkeypatch, made):
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    assert {o.cached for o in run(case, toy, made)} == {()}


def test_a_damaged_entry_is_made_again(toy, case, made):
    first = run(case, toy, made)
    os.truncate(first[0].compiled / "optimized.hlo.gz", 10)
    os.truncate(first[1].program / "program.mlirbc", 10)
    second = run(case, toy, made)
    assert [o.status for o in second] == ["ok", "ok"]
    assert [o.cached for o in second] == [("lower",), ("compile",)]


FAILURES = [  # what one program does, status, step, error
    ("abort", "crashed", "lower", "died of SIGABRT"),
    ("fail", "failed", "lower", "ValueError: heads do not divide"),
    ("refuse", "refused", "lower", "no such model"),
    ("nothing", "failed", "lower", "toy_arm.lower ended well, but wrote no program.mlirbc and no about.json"),
    ("silent", "failed", "", "toy_arm.lower wrote an about.json without compile_options"),
    ("vector", "crashed", "compile", "died of SIGABRT: Check failed: "),
    ("garbage", "refused", "compile", "the program is not StableHLO: "),
]


@pytest.mark.parametrize(("does", "status", "step", "error"), FAILURES)
def test_a_failure_costs_only_its_own_cell(toy, case, tmp_path, monkeypatch, does, status, step, error):
    monkeypatch.setenv("TOY_DOES", f"decode+native={does}")
    check_failure(case, toy, Cache(tmp_path / "cache"), status, step, error)
    assert list((tmp_path / "cache" / "begun").iterdir()) == []


def test_one_that_hangs_is_killed(toy, case, tmp_path, monkeypatch, made):
    """The other is there from before: on a loaded machine its compile takes longer than one would wait for this."""
    shutil.rmtree(run(case, toy, made)[0].program)
    monkeypatch.setenv("TOY_DOES", "decode+native=hang")
    check_failure(case, toy, made, "timeout", "lower", "killed after 4 s in trace", timeout_s=4)
    assert list((tmp_path / "cache" / "begun").iterdir()) == []


def check_failure(case, arm, cache, status, step, error, **more):
    """Of two cells the first goes wrong, and the second is well."""
    events = []
    bad, good = run(case, arm, cache, events=events, **more)
    assert (bad.status, good.status) == (status, "ok")
    assert bad.error.startswith(error)
    assert "\n" not in bad.error
    assert (bad.step, bad.compiled) == (step, None)
    last = [event for event in events if event.cell == "tpu"][-1]
    assert (last.stage, last.error) == (status, bad.error)


def test_a_failure_is_tried_again(toy, case, tmp_path, monkeypatch):
    cache = Cache(tmp_path / "cache")
    monkeypatch.setenv("TOY_DOES", "decode+native=abort")
    assert run(case, toy, cache)[0].status == "crashed"
    monkeypatch.delenv("TOY_DOES")
    assert run(case, toy, cache)[0].status == "ok"


def test_an_arm_that_is_not_installed_says_how_to_get_it_and_the_others_run(toy, case, tmp_path):
    absent = replace(toy, name="absent", packages=("surely-not-there",), extra="absent")
    events = []
    outcomes = scheduler.run_case(case, arms=[absent, toy], cache=Cache(tmp_path / "cache"), notify=events.append)
    assert [o.status for o in outcomes] == ["not-installed"] * 2 + ["ok"] * 2
    assert outcomes[0].error == (
        "surely-not-there not installed; get it with pip install -e '.[absent]' "
        "(without a checkout: pip install 'wirediff[absent]')"
    )


def test_a_control_that_is_no_other_program_is_no_cell(toy, case):
    assert [cell.name for cell in toy.cells(case)] == ["tpu", "tpu+gspmd"]
    assert [cell.name for cell in toy.cells(case.at(attention="idiomatic"))] == ["tpu", "tpu+gspmd", "tpu+einsum"]
    assert toy.cells(case.at(partitioner="gspmd")) == (Cell("tpu"),)


def test_a_mesh_that_cannot_be_laid_is_refused_before_anything_starts(toy, tmp_path):
    """An outermost axis of 2 over three slices."""
    events = []
    with pytest.raises(MeshError, match="cannot be laid"):
        run(Case.read("dp2cp6@3xv5e:2x2", model_name="tiny", seq=96), toy, Cache(tmp_path / "cache"), events=events)
    assert (events, count_lowered(tmp_path)) == ([], {})


MAIN = """
    import sys
    sys.path.insert(0, {root!r})
    from pathlib import Path
    from compare.run import scheduler
    from compare.run.cache import Cache
    from tests.compare.run.toy_framework import TOY
    from meshes.case import Case
    case = Case.read("tp8", model_name="tiny", attention="einsum", phases=("decode",))
    outcomes = scheduler.run_case(case, arms=[TOY], cache=Cache(Path({cache!r})), notify=lambda event: None)
    print(sorted(set(o.status for o in outcomes)), sorted({{"jax", "torch", "jaxlib"}} & set(sys.modules)))
"""


def main(cache: Path) -> subprocess.Popen:
    script = textwrap.dedent(MAIN.format(root=str(ROOT), cache=str(cache)))
    return subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_two_runs_at_once_both_end_well_and_import_no_framework(toy, tmp_path):
    both = [main(tmp_path / "cache") for _ in range(2)]
    for started in both:
        out, error = started.communicate(timeout=60)
        assert (out.strip(), started.returncode) == ("['ok'] []", 0), error


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_half_way_leaves_nothing_half_written(toy, case, tmp_path, monkeypatch, by):
    monkeypatch.setenv("TOY_DOES", "decode+native=hang")
    cache = tmp_path / "cache"
    started = main(cache)
    while len(list(cache.glob("compiled/*"))) < 1:
        assert started.poll() is None, started.communicate()
        time.sleep(0.02)
    started.send_signal(by)
    _, error = started.communicate(timeout=20)
    assert started.returncode != 0
    if by == signal.SIGINT:
        assert "KeyboardInterrupt" in error
        assert list((cache / "begun").iterdir()) == []
    monkeypatch.delenv("TOY_DOES")
    done = len(list(cache.glob("compiled/*")))
    outcomes = run(case, toy, Cache(cache))
    assert [o.status for o in outcomes] == ["ok"] * 2
    assert sum("compile" in o.cached for o in outcomes) == done


SHARED = Cell("tpu+shardy", {"partitioner": "shardy"}, control="partitioner")


def test_a_step_that_two_cells_share_is_run_once(toy, case, tmp_path):
    arm = replace(toy, controls=(SHARED,), ignored_words=("partitioner",))
    outcomes = run(case, arm, Cache(tmp_path / "cache"))
    assert [(o.cell, o.status) for o in outcomes] == [("tpu", "ok"), ("tpu+shardy", "ok")]
    assert count_lowered(tmp_path) == {"decode+native": 1}
    assert outcomes[0].program == outcomes[1].program


def test_what_a_shared_step_fails_of_is_told_of_each_cell(toy, case, tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_DOES", "decode+native=fail")
    outcomes = run(case, replace(toy, controls=(SHARED,), ignored_words=("partitioner",)), Cache(tmp_path / "cache"))
    assert [(o.cell, o.status, o.error) for o in outcomes] == [
        (cell, "failed", "ValueError: heads do not divide") for cell in ("tpu", "tpu+shardy")
    ]
    assert count_lowered(tmp_path) == {"decode+native": 1}


def test_a_control_that_is_not_offered_says_why_and_is_no_failure(toy, case, tmp_path, monkeypatch):
    monkeypatch.setenv("TOY_DOES", "decode+gspmd=decline")
    outcomes = run(case, toy, Cache(tmp_path / "cache"))
    assert [(o.cell, o.status) for o in outcomes] == [("tpu", "ok"), ("tpu+gspmd", "not offered")]
    assert outcomes[1].error == "not offered: this toy has one partitioner"
    # Words alone are no reason: a worker that says them and gives none has refused.
    monkeypatch.setenv("TOY_DOES", "decode+gspmd=say")
    assert run(case.at(seq=512), toy, Cache(tmp_path / "cache"))[1].status == "refused"
    # The default program is what was asked for: there it is a refusal.
    monkeypatch.setenv("TOY_DOES", "decode+native=decline")
    assert run(case.at(seq=2048), toy, Cache(tmp_path / "cache"))[0].status == "refused"


@pytest.mark.parametrize(
    ("cell", "reason", "status"),
    [
        ("tunix", Reason(kind="does not fit", needed_bytes=2**40, available_bytes=2**34), "refused"),
        ("tunix", None, "failed"),
        ("tpu", Reason(kind="does not fit", needed_bytes=2**40, available_bytes=2**34), "failed"),
    ],
)
def test_a_witness_that_gives_its_reason_has_refused(toy, case, tmp_path, cell, reason, status):
    job = scheduler._Job(toy, Cell(cell), case, False)
    run = scheduler._Run([job], cache=Cache(tmp_path), notify=lambda event: None, timeout_s=9, at_once=1)
    task = scheduler._Task(job, job.step())
    run.begun[task] = tmp_path / "begun"
    run._finish(task, ProcessEnd(status="failed", error="it needs more", seconds=1, peak_bytes=0, reason=reason))
    assert run.ended[job].status == status
