"""Which folders are runs, and the case beside every row."""

import json
import shutil

import pytest

from compare.query import query_runs
from compare.query.engine import save_tables
from compare.query.errors import QueryError
from compare.query.saved import read_source
from tests.compare.query.run_folders import write_run
from tests.places import EXAMPLE

CASE = [
    "run", "model", "mesh", "topology", "generation", "devices", "dp", "pp", "cp", "ep", "tp", "sp", "batch", "seq",
    "microbatches", "dtype", "style", "loop", "attention",
]  # fmt: skip


@pytest.mark.parametrize("table", ["times", "intervals", "events", "network", "windows"])
def test_the_case_of_a_run_stands_beside_every_row_of_every_table(table):
    ((*row,),) = query_runs(f"select distinct {', '.join(CASE)} from {table}", EXAMPLE).fetchall()
    assert dict(zip(CASE, row, strict=True)) == {
        "run": "example-run", "model": "llama-3.1-8b", "mesh": "pp2tp4", "topology": "v5e:2x4", "generation": "v5e",
        "devices": 8, "dp": 1, "pp": 2, "cp": 1, "ep": 1, "tp": 4, "sp": False, "batch": 8, "seq": 1024,
        "microbatches": 4, "dtype": "bf16", "style": "pinned", "loop": "scan", "attention": "idiomatic",
    }  # fmt: skip


def test_the_words_of_a_program_are_its_own_and_not_those_of_the_case():
    rows = query_runs("select cell, attention from totals where cell like '%einsum' and phase = 'decode'", EXAMPLE)
    assert rows.fetchall() == [("tpu+einsum", "einsum")]
    rows = query_runs("select distinct dtype from collectives order by dtype", EXAMPLE)
    assert rows.fetchall() == [("bf16",), ("s32",)]


VERSIONS = [
    "wirediff",
    "wirediff_commit",
    "date",
    "libtpu",
    "jaxlib",
    "jax",
    "flax",
    "torch",
    "torch_xla",
    "transformers",
]


@pytest.mark.slow
def test_what_made_a_run_is_of_its_default_programs_and_witnesses(tmp_path):
    made = {"wirediff": "0.1.0", "wirediff_commit": "6e20819ac5fa", "date": "2026-11-24"}
    run = write_run(tmp_path / "new")
    case = json.loads((run / "case.json").read_text()) | {"made_by": made}
    (run / "case.json").write_text(json.dumps(case))
    for cell, versions in {
        "jax/prefill/tpu": {"jax": "0.10.2", "libtpu": "0.0.42.1"},
        "jax/decode/tpu": {"jax": "0.10.3", "libtpu": "0.0.42.1"},
        "torchxla/decode/tpu+libtpu-0.0.41": {"libtpu": "0.0.41"},  # a control's is its own
        "torchxla/decode/hf-torchxla": {"transformers": "5.23.0", "libtpu": "0.0.42.1"},
    }.items():
        (run / cell).mkdir(parents=True)
        (run / cell / "about.json").write_text(json.dumps({"status": "ok", "versions": versions}))
    (run / "torchxla/decode/tpu").mkdir()
    (run / "torchxla/decode/tpu/about.json").write_text("{")  # damaged
    write_run(tmp_path / "old", mesh="tp8")
    rows = query_runs(f"select {', '.join(VERSIONS)} from runs order by run", tmp_path).fetchall()
    known = ("0.1.0", "6e20819ac5fa", "2026-11-24", "0.0.42.1", None, "0.10.2, 0.10.3", None, None, None, "5.23.0")
    assert rows == [known, (None,) * 10]
    save_tables(read_source([tmp_path]), tmp_path / "saved")
    assert query_runs(f"select {', '.join(VERSIONS)} from runs order by run", tmp_path / "saved").fetchall() == rows


def test_slices_sequence_parallelism_and_experts_are_columns(tmp_path):
    write_run(tmp_path / "a", mesh="tp8+sp")
    write_run(tmp_path / "b", mesh="dp2ep4@2xv5e:2x2", model_name="tiny-moe")
    rows = query_runs("select run, mesh, sp, ep, topology, slices, experts, devices from runs order by run", tmp_path)
    assert rows.fetchall() == [
        ("a", "tp8+sp", True, 1, "v5e:2x4", 1, 0, 8),
        ("b", "dp2ep4", False, 4, "2xv5e:2x2", 2, 8, 8),
    ]


def test_runs_are_found_at_any_depth_and_each_once(tmp_path):
    for name in ("sweeps/x/tp8", "sweeps/y/tp8", "single", ".hidden/run", "sweeps/x/.tp8.part"):
        write_run(tmp_path / name, mesh="tp8")
    shutil.copytree(tmp_path / "single", tmp_path / "single/copy-inside-a-run")
    folders = (tmp_path, tmp_path / "sweeps", tmp_path / "single", f"{tmp_path}/sweeps/../single")
    rows = query_runs("select run from runs order by run", *folders).fetchall()
    assert rows == [("single",), ("sweeps/x/tp8",), ("sweeps/y/tp8",)]


def test_two_runs_of_one_name_are_told_apart_by_their_paths(tmp_path):
    for name in ("x/tp8", "y/tp8"):
        write_run(tmp_path / name, mesh="tp8")
    rows = query_runs("select run from runs order by run", tmp_path / "x", tmp_path / "y").fetchall()
    assert rows == [(f"{tmp_path}/x/tp8",), (f"{tmp_path}/y/tp8",)]


def test_folders_whose_names_are_patterns_or_have_quotes_are_read(tmp_path):
    for name in ("it's [ab]*?", "a"):
        write_run(tmp_path / name, programs={"tpu": {"source": "modelled", "network": {"tp": {"duty_cycle": 0.5}}}})
    assert query_runs("select run from totals order by run", tmp_path).fetchall() == [("a",), ("it's [ab]*?",)]
    assert len(query_runs("select run from network", tmp_path).fetchall()) == 2


def spoil_case(run):
    (run / "case.json").write_text("{")


def spoil_kind(run):
    (run / "case.json").write_text(json.dumps({"name": "x"}))


def remove_tables(run):
    shutil.rmtree(run / "tables")


def link_out(run):
    case = (run / "case.json").rename(run.parent / "elsewhere.json")
    (run / "case.json").symlink_to(case)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (spoil_case, "run/case.json is not JSON"),
        (spoil_kind, "run/case.json cannot be read: this is not a case"),
        (remove_tables, "run has no tables"),
        (link_out, "run/case.json leads out of the run folder"),
        (shutil.rmtree, "holds no run folder: there is no case.json in it"),
    ],
)
def test_a_folder_that_cannot_be_read_is_one_line_that_names_it(tmp_path, spoil, says):
    (tmp_path / "in").mkdir()
    spoil(write_run(tmp_path / "in/run"))
    with pytest.raises(QueryError) as error:
        query_runs("select * from totals", tmp_path / "in")
    assert says in str(error.value)
    assert "\n" not in str(error.value)
