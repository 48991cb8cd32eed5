"""What a notebook types first: `from compare import …`, with answers that show themselves."""

import inspect
import re
import subprocess
import sys
from types import ModuleType

import pytest

import compare
from compare import LoadedRun, load_run, notebook, plan, query_runs, read_profile, run
from compare.contract.reference_algorithms import required_rows
from compare.query.errors import QueryError
from compare.run.errors import WorkError
from compare.timeline.errors import TimingError
from meshes.case import Case
from meshes.process.errors import MeshError
from tests.compare.test_trace import make_profile
from tests.places import ROOT

RUN = ROOT / "docs" / "example-run"
NAMES = [name for name in compare.__all__ if name != "__version__"]


IMPORT_EACH = """
import os, sys
import numpy, pandas  # once: what takes long to load
first, *lines = sys.argv[1:]
exec(first)
for names in lines:
    if not os.fork():
        exec(f"from compare import {names}\\nassert all(map(callable, [{names}])), {names!r}")
        os._exit(0)
    assert not os.wait()[1], names
"""
"""Each line of names in a process of its own, into which no other was imported."""


BEHIND = pytest.param("import compare.run.cache, compare.plan", id="behind the rooms", marks=pytest.mark.slow)


@pytest.mark.parametrize("first", [pytest.param("", id="alone"), BEHIND])
def test_every_name_is_imported_and_called_whatever_was_imported_before(first: str) -> None:
    """Names from one file come together; `run` and `plan`, which are modules, too, alone."""
    lines: dict[str, list[str]] = {}
    for name in NAMES:
        place = name if name in ("run", "plan") else getattr(compare, name).__module__
        lines.setdefault(place, []).append(name)
    assert len(lines) == 8
    words = map(", ".join, lines.values())
    subprocess.run([sys.executable, "-c", IMPORT_EACH, first, *words], cwd=ROOT, check=True)


def test_a_plan_is_a_table_of_the_contract() -> None:
    table = plan("tp4pp2", phases=["decode"], batch=8)
    rows = required_rows(Case.read("tp4pp2", phases=("decode",), batch=8))
    assert list(table["scope"]) == [row.scope for row in rows]
    assert table["step_wire_bytes"].sum() == sum(row.step_wire_bytes for row in rows)


def test_a_loaded_run_has_the_totals_of_its_report_and_shows_them() -> None:
    loaded = load_run(RUN)
    totals = loaded.totals.set_index(["phase", "arm", "cell"])
    assert len(totals) == 10
    row = totals.loc["prefill", "torchxla", "tpu"]
    # README: 3.31 GB inherent, 864 MB inflated, 2.26 GB induced, of 467 ms.
    assert [f"{row[name] / 1e9:.3g}" for name in ("inherent", "inflated", "induced")] == ["3.31", "0.864", "2.26"]
    assert f"{row['step_ns'] / 1e6:.0f}" == "467"
    assert row["wire_bytes"] == row["inherent"] + row["inflated"] + row["induced"]
    html = loaded._repr_html_()
    assert "TorchXLA moves 1.95" in html
    assert html.count("<tr") == 11
    assert repr(loaded).splitlines()[0].startswith("TorchXLA moves 1.95")


def test_a_loaded_run_has_its_tables_and_answers_sql() -> None:
    loaded = load_run(str(RUN))
    assert loaded.table("totals")["wire_bytes"].sum() == loaded.totals["wire_bytes"].sum()
    assert loaded.query("select count(*) from totals").fetchall() == [(10,)]
    with pytest.raises(WorkError, match=r"has no table 'total'; it has collectives, differences"):
        loaded.table("total")


def test_a_profile_has_the_times_of_the_trace_command(tmp_path) -> None:
    path = make_profile().write(tmp_path)
    read = read_profile(path, axes="dp=2,tp=2")
    assert read.summary.devices == 4
    assert "4 devices" in repr(read)
    assert "<table" in read._repr_html_()
    assert read_profile([path], axes={"dp": 2, "tp": 2}).times.equals(read.times)


def test_a_module_that_is_called_shows_the_function() -> None:
    import compare.run

    assert isinstance(compare.run, ModuleType)
    assert inspect.signature(compare.run) == inspect.signature(notebook.run)
    assert inspect.getdoc(compare.run) == inspect.getdoc(notebook.run)


def test_phases_are_a_list_or_one_text() -> None:
    assert plan("tp8", phases="decode").equals(plan("tp8", phases=["decode"]))
    assert plan("tp8", phases="prefill,decode").equals(plan("tp8"))


def test_what_cannot_be_is_one_line(tmp_path) -> None:
    (tmp_path / "case.json").touch()
    with pytest.raises(WorkError, match=r"has no report\.json; python -m compare\.report"):
        load_run(tmp_path)
    with pytest.raises(WorkError, match=r"/nowhere has no report\.json; a run folder has one, and case\.json$"):
        load_run("/nowhere")
    (tmp_path / "report.json").write_text("{")
    with pytest.raises(WorkError, match=r"report\.json: not JSON"):
        load_run(tmp_path)
    with pytest.raises(WorkError, match=r"^a case has no 'phase'; it has mesh, model, phases, "):
        plan("tp8", phase="decode")
    with pytest.raises(WorkError, match=r"^unknown framework 'keras'"):
        run("tp8", arms=["jax", "keras"])
    for query in (["runs"], str(RUN)):
        with pytest.raises(QueryError, match=r"^the query comes first, then the folders"):
            query_runs(query, "select 1")
    with pytest.raises(MeshError):
        plan("nonsense")
    with pytest.raises(MeshError):
        run("tp4pp2", model="nobody")
    with pytest.raises((TimingError, OSError)):
        read_profile(tmp_path)


def test_the_example_of_the_page_runs(monkeypatch, capsys) -> None:
    page = (ROOT / "docs/reading.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"<!-- example: notebook -->\n```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(compile(code, "docs/reading.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "TorchXLA moves 1.95" in printed
    assert "layer.attention.out" in printed


@pytest.mark.slow
def test_a_run_is_that_of_the_command(tmp_path) -> None:
    made = run("tp4pp2", model="tiny", phases=["decode"], seq=128, controls="none", out=tmp_path)
    assert isinstance(made, LoadedRun)
    assert made.folder.parent == tmp_path
    assert set(made.totals["arm"]) == {"jax", "torchxla"}
    assert load_run(made.folder).report == made.report
