"""What a sweep does again and what not, and that nothing which was done is lost, whoever stops it."""

import json
from pathlib import Path

import pytest
from filelock import FileLock

from compare.run.errors import WorkError
from compare.sweep import sweep
from tests.compare.sweep.sweeps import Copies, parse_combinations, work

MESHES = ("--meshes", "tp8,tp4pp2,ep8,dp2tp4")
NAMES = ["tiny-tp8-v5e-2x4-b8-s128-m1", "tiny-pp2tp4-v5e-2x4-b8-s128-m4", "tiny-dp2tp4-v5e-2x4-b8-s128-m1"]


def run(out: Path, engine: Copies, *, words=MESHES, events=None, **more):
    hear = (lambda *event: events.append(event)) if events is not None else lambda *event: None
    return sweep.run(parse_combinations(*words), work(out, engine, **more), notify=hear)


def statuses(results):
    return {result["mesh"]: result["status"] for result in results}


def report(out: Path, name: str) -> bytes:
    return (out / name / "report.json").read_bytes()


def test_each_case_has_its_run_folder_and_a_refused_one_its_reason(tmp_path):
    results = run(tmp_path, Copies())
    assert [result["mesh"] for result in results] == ["tp8", "tp4pp2", "ep8", "dp2tp4"]
    assert statuses(results) == {"tp8": "done", "tp4pp2": "done", "ep8": "refused", "dp2tp4": "done"}
    assert results[2]["error"].startswith("mesh ep8 splits experts over ep8, but tiny has none")
    assert [result["folder"] for result in results] == [*NAMES[:2], None, NAMES[2]]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([".sweep", *NAMES])
    assert json.loads((tmp_path / NAMES[0] / "case.json").read_text())["name"] == NAMES[0]


def test_what_is_done_is_not_done_again(tmp_path):
    run(tmp_path, Copies())
    before = [report(tmp_path, name) for name in NAMES]
    again, events = Copies(), []
    results = run(tmp_path, again, events=events)
    assert again.made == []
    expected = [(name, stage) for stage in ("waiting", "already done") for name in NAMES]
    assert [(name, stage) for name, stage, _ in events] == expected
    assert [report(tmp_path, name) for name in NAMES] == before
    assert set(statuses(results).values()) == {"done", "refused"}


def test_a_case_without_its_page_is_done_again_where_pages_are_drawn(tmp_path):
    first = Copies()
    run(tmp_path, first, pages=False)
    assert [task.request["pages"] for task in first.tasks] == [False] * 3
    without = Copies()
    run(tmp_path, without, pages=False)
    assert without.made == []
    (tmp_path / NAMES[0] / "report.html").write_text("")  # drawn since, by compare.report
    again = Copies()
    run(tmp_path, again)
    assert again.made == NAMES[1:]
    assert [task.request["pages"] for task in again.tasks] == [True] * 2
    last = Copies()
    run(tmp_path, last, pages=False)
    assert last.made == []


def test_witnesses_are_asked_for_with_every_case_and_one_more_makes_it_again(tmp_path):
    first, again, last = Copies(), Copies(), Copies()
    run(tmp_path, first)
    run(tmp_path, again, witnesses=["tunix"])
    run(tmp_path, last, witnesses=["tunix"])
    assert [task.request["witnesses"] for task in first.tasks] == [[]] * 3
    assert [task.request["witnesses"] for task in again.tasks] == [["tunix"]] * 3
    assert last.made == []


def test_a_mesh_more_is_one_case_more(tmp_path):
    run(tmp_path, Copies())
    again = Copies()
    results = run(tmp_path, again, words=("--meshes", "tp4,tp8"))
    assert again.made == ["tiny-tp4-v5e-2x2-b8-s128-m1"]
    assert statuses(results) == {"tp4": "done", "tp8": "done"}


def test_an_interrupt_loses_the_case_at_work_and_no_other(tmp_path):
    stopped = Copies(pp2tp4="interrupt")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stopped)
    assert stopped.closed
    assert stopped.made == NAMES[:2]
    assert [path.name for path in tmp_path.iterdir() if path.name != ".sweep"] == NAMES[:1]
    assert not (tmp_path / ".sweep/begun").exists()
    again = Copies()
    assert "failed" not in statuses(run(tmp_path, again)).values()
    assert again.made == NAMES[1:]


def test_what_a_killed_sweep_left_half_made_is_not_read_and_goes(tmp_path):
    half = tmp_path / ".sweep/begun/3f/run"
    half.mkdir(parents=True)
    (half / "report.json").write_text("{}")
    assert set(statuses(run(tmp_path, Copies())).values()) == {"done", "refused"}
    assert not (tmp_path / ".sweep/begun").exists()


def test_a_kill_between_the_run_folder_and_its_mark_makes_the_case_again(tmp_path):
    run(tmp_path, Copies())
    (tmp_path / f".sweep/done/{NAMES[1]}.json").unlink()
    (tmp_path / f".sweep/done/{NAMES[2]}.json").write_text('{"by": "half')
    again = Copies()
    run(tmp_path, again)
    assert again.made == NAMES[1:]


def test_a_run_folder_that_another_run_has_written_since_is_made_again(tmp_path):
    run(tmp_path, Copies())
    (tmp_path / NAMES[0] / "report.json").write_text("{}")
    again = Copies()
    run(tmp_path, again)
    assert again.made == NAMES[:1]


def test_other_versions_or_a_variable_make_everything_again(tmp_path, monkeypatch):
    run(tmp_path, Copies())
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x")
    again = Copies()
    run(tmp_path, again)
    assert again.made == NAMES


def test_without_the_cache_everything_is_made_again(tmp_path):
    run(tmp_path, Copies())
    again = Copies()
    run(tmp_path, again, no_cache=True)
    assert again.made == NAMES


@pytest.mark.parametrize(("does", "status", "folder"), [("crash", "crashed", None), ("part", "failed", NAMES[1])])
def test_a_case_that_fails_costs_only_itself_and_is_tried_again(tmp_path, does, status, folder):
    results = run(tmp_path, Copies(pp2tp4=does))
    assert statuses(results) == {"tp8": "done", "tp4pp2": status, "ep8": "refused", "dp2tp4": "done"}
    assert results[1]["folder"] == folder
    again = Copies()
    assert statuses(run(tmp_path, again))["tp4pp2"] == "done"
    assert again.made == NAMES[1:2]


def test_a_place_that_is_another_s_is_left_alone(tmp_path):
    (tmp_path / NAMES[0]).mkdir()
    (tmp_path / NAMES[0] / "thesis.tex").write_text("years of work")
    results = run(tmp_path, Copies())
    assert statuses(results) == {"tp8": "failed", "tp4pp2": "done", "ep8": "refused", "dp2tp4": "done"}
    assert "is not a run folder of wirediff" in results[0]["error"]
    assert (tmp_path / NAMES[0] / "thesis.tex").read_text() == "years of work"


def test_two_sweeps_do_not_work_in_one_folder_at_once(tmp_path):
    (tmp_path / ".sweep").mkdir()
    with FileLock(tmp_path / ".sweep/lock"), pytest.raises(WorkError, match="another sweep is running in"):
        run(tmp_path, Copies())
    assert statuses(run(tmp_path, Copies()))["tp8"] == "done"


def test_every_case_has_the_chip_file_and_one_of_other_chips_stops_before_the_first(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('generation = "v5e"\n[voltage]\ngamma = 0.4\n')
    engine = Copies()
    sweep.run(parse_combinations("--meshes", "tp8"), work(tmp_path / "out", engine, chip=own), notify=lambda *_: None)
    (task,) = engine.tasks
    assert task.request["chip"] == 'name = "own"\n' + own.read_text()
    both = parse_combinations("--meshes", "tp8,tp8@v6e:2x4")
    with pytest.raises(WorkError, match=r"own\.toml: generation: this file is of 'v5e', the chips are v6e"):
        sweep.run(both, work(tmp_path / "two", Copies(), chip=own), notify=lambda *_: None)


def test_a_mark_knows_all_that_makes_a_run(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text("[voltage]\ngamma = 0.4\n")
    first, other = parse_combinations("--meshes", "tp8"), parse_combinations("--meshes", "tp8@v6e:2x4")
    names = {
        sweep.digest_inputs(first[0].case, ["jax"]),
        sweep.digest_inputs(first[0].case, ["jax", "torchxla"]),
        sweep.digest_inputs(other[0].case, ["jax"]),
        sweep.digest_inputs(first[0].case, ["jax"], controls=["loop"]),
        sweep.digest_inputs(first[0].case.at(seq=64), ["jax"]),
        sweep.digest_inputs(first[0].case, ["jax"], witnesses=["tunix"]),
        sweep.digest_inputs(first[0].case, ["jax"], chip=own),
    }
    assert len(names) == 7
    assert sweep.digest_inputs(first[0].case, ["jax"]) in names


def test_a_file_in_the_place_of_the_sweep_is_refused_and_stays(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WorkError, match="file is no folder; choose another with --out"):
        run(tmp_path / "file", Copies())
    assert (tmp_path / "file").read_text() == "mine"
