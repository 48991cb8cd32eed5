"""The whole job on a tiny model: both arms lowered, compiled for the TPU, read, judged and drawn."""

import json
import os
import re
import sysconfig
from pathlib import Path

import duckdb
import jsonschema
import pytest

from compare.contract.reference_algorithms import required_rows
from compare.report.schema import report_schema
from meshes.case import Case
from tests.commands import run_here, run_process
from tests.compare.energy.conserving import check_report_energy
from tests.places import ROOT

TINY = ("--mesh", "tp4pp2", "--model", "tiny", "--seq", "128")
ARMS = {"jax": "tpu+gspmd", "torchxla": "tpu+einsum"}

pytestmark = pytest.mark.slow


def run(*words, cache, out, options=(), path=()):
    """options: of Python."""
    environment = {"PYTHONPATH": os.pathsep.join([str(ROOT), *map(str, path)]), "WIREDIFF_CACHE": str(cache)}
    words = (*options, "-m", "compare.run", *words, "--out", out)
    return run_process(*words, cwd=out.parent, environment=environment)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def done(scratch, shared_cache):
    return run(*TINY, cache=shared_cache, out=scratch / "runs")


@pytest.fixture(scope="module")
def folder(done):
    assert done.returncode == 0, done.stderr
    page = Path(done.stdout.splitlines()[-1])
    assert page.name == "report.html"
    return page.parent


@pytest.fixture(scope="module")
def report(folder):
    return json.loads((folder / "report.json").read_text())


def programs(report):
    for phase, phase_report in report["phases"].items():
        for arm, default in phase_report["arms"].items():
            for cell in (default, *default["controls"].values()):
                yield phase, arm, cell


def test_the_run_folder_holds_all_that_was_promised(folder):
    assert {path.name for path in folder.iterdir()} == {
        "case.json",
        "report.json",
        "report.html",
        "timeline.perfetto.json.gz",
        "figures",
        "tables",
        *ARMS,
    }
    for arm, control in ARMS.items():
        for phase in ("prefill", "decode"):
            for cell in ("tpu", control):
                held = {path.name for path in (folder / arm / phase / cell).iterdir()}
                assert held >= {"program.mlirbc", "optimized.hlo.gz", "about.json"}


def test_the_report_follows_its_schema(report):
    jsonschema.validate(report, report_schema())


def test_every_program_runs_to_its_end_as_a_trace(folder, report, tmp_path):
    """Exported, read again, and simulated by ASTRA-sim's rules, which name a rank that never ends."""
    exported = run_here("export", folder, "--to", "chakra", "--out", "traces", cwd=tmp_path)
    assert exported.returncode == 0, exported.stderr
    names = exported.stdout.splitlines()
    assert len(names) == len(list(programs(report)))
    for name in names:
        simulated = json.loads(run_here("simulate", name, "--as", "astra-sim", "--json", cwd=tmp_path).stdout)
        assert len(simulated["ranks"]) == 8
        assert 0 < simulated["exposed"] < simulated["cycles"]


def test_bytes_are_conserved_in_every_program(report):
    for phase, arm, cell in programs(report):
        for row in cell["collectives"]:
            assert row["inherent_bytes"] + row["inflated_bytes"] + row["induced_bytes"] == row["step_wire_bytes"]
            assert sum(row["causes"].values()) == row["inflated_bytes"] + row["induced_bytes"]
        totals = cell["totals"]
        assert totals["wire_bytes"] == sum(row["step_wire_bytes"] for row in cell["collectives"])
        assert totals["inherent"] == sum(row["served_bytes"] for row in cell["served"]), (phase, arm)
        assert totals["unknown_rows"] == totals["upper_bound_rows"] == 0


def test_joules_are_conserved_in_every_program(folder, report):
    assert sum(check_report_energy(report, folder / "tables/events.parquet").values()) == len(list(programs(report)))


def test_the_contract_in_the_report_is_the_contract(report):
    case = Case.from_json(json.dumps(report["case"]))
    for phase, phase_report in report["phases"].items():
        rows = required_rows(case.at(phases=(phase,)))
        assert [row["step_wire_bytes"] for row in phase_report["inherent"]] == [row.step_wire_bytes for row in rows]


def test_extra_bytes_add_up_from_common_framework_and_partitioner(report):
    for _, _, cell in programs(report):
        totals = cell["totals"]
        if totals["common"] is not None:
            extra = totals["common"] + totals["framework_induced"] + totals["partitioner_induced"]
            assert extra == totals["inflated"] + totals["induced"]


def test_a_pinned_jax_program_adds_nothing_but_bubble_and_replicas(report):
    for phase_report in report["phases"].values():
        jax = phase_report["arms"]["jax"]
        assert jax["totals"]["induced"] == jax["totals"]["unserved"] == 0
        assert {cause for row in jax["collectives"] for cause in row["causes"]} <= {"bubble", "replicated"}


def test_what_torchxla_adds_is_its_attention_call_and_einsum_adds_nothing(report):
    for phase_report in report["phases"].values():
        torch = phase_report["arms"]["torchxla"]
        scopes = {row["scope"] for row in torch["collectives"] if row["induced_bytes"]}
        assert scopes == {"layer.attention.core"}
        assert torch["controls"]["tpu+einsum"]["totals"]["induced"] == 0
        assert "other" not in {cause for row in torch["collectives"] for cause in row["causes"]}


def test_both_arms_put_the_same_coordinate_on_the_same_chip(folder):
    abouts = [json.loads(path.read_text()) for path in sorted(folder.glob("*/*/*/about.json"))]
    assert len(abouts) == 10
    assert len({json.dumps(about["mesh_chips"]) for about in abouts}) == 1


def test_every_program_was_compiled_by_the_same_compiler(folder):
    abouts = [json.loads(path.read_text()) for path in sorted(folder.glob("*/*/*/about.json"))]
    assert len({about["versions"]["libtpu"] for about in abouts}) == 1
    assert {about["partitioner"] for about in abouts} == {"shardy", "gspmd"}


def test_the_tables_answer_sql(folder, report):
    sql = f"select arm, sum(induced_bytes) from '{folder}/tables/collectives.parquet' where cell = 'tpu' group by arm"
    answers = dict(duckdb.sql(sql).fetchall())
    induced = {
        arm: sum(report["phases"][phase]["arms"][arm]["totals"]["induced"] for phase in report["phases"])
        for arm in ARMS
    }
    assert answers == induced


def test_the_words_fit_100_columns_and_end_in_the_page(done, folder):
    assert max(len(line) for line in done.stdout.splitlines()[:-1]) <= 100
    assert done.stdout.startswith("TorchXLA moves")


def test_a_warm_run_starts_no_worker(scratch, shared_cache, folder):
    again = run(*TINY, cache=shared_cache, out=scratch / "runs")
    assert again.returncode == 0
    workers = {line.split()[4] for line in again.stderr.splitlines()}
    assert workers == {"cached"}


def bare_site(place, *, without):
    """A folder of all installed packages but those that match."""
    place.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not re.match(without, entry.name) and entry.suffix != ".pth":
            (place / entry.name).symlink_to(entry)
    return place


def test_a_run_is_drawn_again_with_no_framework_installed(scratch, folder, report):
    site = bare_site(scratch / "light", without=r"(jax|flax|torch|libtpu|transformers|orbax|tensor|xprof)")
    out = scratch / "again"
    paths = {"PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    done = run_process("-S", "-m", "compare.report", folder, "--out", out, environment=paths)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "report.json").read_text()) == report
    assert (out / "report.html").read_text() == (folder / "report.html").read_text()


def test_an_arm_that_is_not_installed_costs_only_itself(scratch, shared_cache, folder):
    site = bare_site(scratch / "no-torch", without=r"(torch|functorch)")
    words = (*TINY, "--phase", "decode", "--controls", "none")
    done = run(*words, cache=shared_cache, out=scratch / "half", options=("-S",), path=(site,))
    assert done.returncode == 1, done.stderr
    written = json.loads((Path(done.stdout.splitlines()[-1]).parent / "report.json").read_text())
    assert written["arms"]["jax"]["status"] == "ok"
    assert written["arms"]["torchxla"]["status"] == "not-installed"
    assert "pip install -e '.[torchxla]'" in done.stdout.replace("\n", " ")


def test_programs_that_take_too_long_are_reported_and_nothing_hangs(scratch):
    done = run(*TINY, "--phase", "decode", "--timeout", "0.3", cache=scratch / "cache3", out=scratch / "late")
    assert done.returncode == 1
    phase_report = json.loads((Path(done.stdout.splitlines()[-1]).parent / "report.json").read_text())
    assert {arm["status"] for arm in phase_report["arms"].values()} == {"timeout"}
    assert "Traceback" not in done.stderr


def test_on_two_slices_the_attention_s_gathers_are_still_the_attention_s(scratch, shared_cache):
    # Programs of several slices come without names; the gathers must not be taken for the MLP's or the embedding's.
    words = ("--mesh", "dp2tp4@2xv5e:2x2", "--model", "tiny", "--seq", "128", "--phase", "prefill", "--arm", "torchxla")
    done = run(*words, "--controls", "attention", "--no-pages", cache=shared_cache, out=scratch / "slices")
    assert done.returncode == 0, done.stderr
    written = json.loads((Path(done.stdout.splitlines()[-1]).parent / "report.json").read_text())
    torch = written["phases"]["prefill"]["arms"]["torchxla"]
    scopes = {row["scope"] for row in torch["collectives"] if row["induced_bytes"]}
    assert scopes <= {"layer.attention.core", "layer.attention.qkv"}
    assert torch["totals"]["unserved"] == torch["totals"]["inflated"] == 0
    assert torch["controls"]["tpu+einsum"]["totals"]["induced"] == 0
