"""The data of a study: which runs are in it, and what each combination of its file came to."""

import json
import shutil
from pathlib import Path

import pytest

from compare.query import query_runs
from compare.query.errors import QueryError
from docs.study.build.errors import StudyError
from docs.study.build.make import answer_query, save_data, save_traces
from docs.study.build.spec import Study, read_study
from tests.compare.query.run_folders import write_run
from tests.places import ROOT

pytestmark = pytest.mark.slow

FILE = """
topology = "v6e:2x4"
batch = 8
seq = 128
[[group]]
name = "both"
models = ["tiny"]
meshes = ["tp8", "dp2tp4"]
[[group]]
name = "decode alone"
models = ["tiny"]
meshes = ["tp8"]
phases = ["decode"]
"""


def write_study(folder: Path) -> Study:
    (folder / "study.toml").write_text(FILE)
    return read_study(folder / "study.toml")


def write_sweep(folder: Path, **meshes: str) -> None:
    """A sweep whose rows have these statuses; what is done has a run folder."""
    rows = []
    for mesh, status in meshes.items():
        name = f"tiny-{mesh}" if status in ("done", "earlier") else None
        if name:
            phases = ("decode",) if folder.parent.name == "decode-alone" else ("prefill", "decode")
            run = write_run(folder / name, mesh=f"{mesh}@v6e:2x4", phases=phases)
            (run / "jax/decode/tpu").mkdir(parents=True)
            seconds = {"lower": {"import": 1.0, "trace": 0.5}, "compile": {"compile": 2.5}}
            (run / "jax/decode/tpu/about.json").write_text(json.dumps({"status": "ok", "seconds": seconds}))
        row = {"model": "tiny", "mesh": mesh, "status": status, "error": "", "folder": name}
        rows.append(row | ({"status": "done", "earlier": True} if status == "earlier" else {}))
    (folder / "sweep.json").write_text(json.dumps({"results": rows}))


def test_the_data_are_of_the_combinations_that_the_file_asks_for(tmp_path: Path) -> None:
    study, runs = write_study(tmp_path), tmp_path / "runs"
    (runs / "both/b8-s128").mkdir(parents=True)
    (runs / "decode-alone/b8-s128").mkdir(parents=True)
    write_sweep(runs / "both/b8-s128", dp2tp4="done", ep8="refused", dp8="earlier")
    write_sweep(runs / "decode-alone/b8-s128", tp8="done")
    save_data(study, runs)
    data = tmp_path / "data"
    assert query_runs("select run, mesh from runs order by run", data).fetchall() == [
        ("tiny-dp2tp4", "dp2tp4"),
        ("tiny-tp8", "tp8"),
    ]
    sql = "select study_group, mesh, status, run, process_s, disk_bytes > 100 from cases order by all"
    assert query_runs(sql, data).fetchall() == [
        ("both", "dp2tp4", "done", "tiny-dp2tp4", 4.0, True),
        ("both", "ep8", "refused", None, None, None),
        ("decode-alone", "tp8", "done", "tiny-tp8", 4.0, True),
    ]


def test_a_query_of_a_study_writes_nothing_and_lies_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "study/queries").mkdir(parents=True)
    study, runs = write_study(tmp_path / "study"), tmp_path / "runs"
    (runs / "both/b8-s128").mkdir(parents=True)
    (runs / "decode-alone/b8-s128").mkdir(parents=True)
    write_sweep(runs / "both/b8-s128", dp2tp4="done")
    write_sweep(runs / "decode-alone/b8-s128", tp8="done")
    save_data(study, runs)
    outside = tmp_path / "outside.csv"
    writes = (
        f"copy (select 1) to '{outside}'",
        "delete from runs returning run",
        "update runs set run = '' returning run",
    )
    for number, sql in enumerate(writes):
        (tmp_path / f"study/queries/q{number}.sql").write_text(f"with x as ({sql}) select * from x")
        with pytest.raises(QueryError):
            answer_query(study, f"q{number}")
    (tmp_path / "secret.sql").write_text("select 1 as a")
    with pytest.raises(StudyError, match=r"no query is named \.\./\.\./secret"):
        answer_query(study, "../../secret")
    assert not outside.exists()


def test_a_step_in_two_groups_would_count_twice_and_is_refused(tmp_path: Path) -> None:
    study, runs = write_study(tmp_path), tmp_path / "runs"
    (runs / "both/b8-s128").mkdir(parents=True)
    (runs / "decode-alone/b8-s128").mkdir(parents=True)
    write_sweep(runs / "both/b8-s128", tp8="done")
    write_sweep(runs / "decode-alone/b8-s128", tp8="done")
    with pytest.raises(StudyError, match=r"tiny-tp8-.*-decode is in both/b8-s128 and in decode-alone/b8-s128"):
        save_data(study, runs)


def test_cases_that_are_not_compiled_are_said(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"sweep\.json cannot be read: .*; compile the cases first"):
        save_data(write_study(tmp_path), tmp_path / "runs")


TRACE = """
[[group]]
name = "one"
models = ["tiny"]
meshes = ["tp8"]
[[trace]]
run = "example"
arm = "jax"
phase = "decode"
"""


def test_a_trace_ships_packed_with_its_workload_card_and_program(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(TRACE)
    runs = tmp_path / "runs"
    shutil.copytree(ROOT / "docs/example-run", runs / "one/b8-s1024/example")
    row = {"model": "tiny", "mesh": "tp8", "status": "done", "error": "", "folder": "example"}
    (runs / "one/b8-s1024/sweep.json").write_text(json.dumps({"results": [row]}))
    study = read_study(tmp_path / "study.toml")
    save_traces(study, runs)
    (folder,) = (tmp_path / "traces").iterdir()
    assert folder.name == "llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4-jax-decode-tpu"
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()) == [
        "gzip/host0.trace.json.gz",
        f"{folder.name}.yaml",
        "program/case.json",
        "program/jax/decode/tpu/about.json",
        "program/jax/decode/tpu/optimized.hlo.gz",
    ]
    (tmp_path / "study.toml").write_text(TRACE.replace("example", "another"))
    with pytest.raises(StudyError, match="no run is named another, of which a trace is asked for"):
        save_traces(read_study(tmp_path / "study.toml"), runs)
