"""A sweep as one value: what its rows say is what the reports of its cases say."""

import copy
import json
import random

import jsonschema
import pytest

from benchmarks.fuzz import mutate
from compare.cli.options.sweep_options import sweep_parser
from compare.cli.options.sweep_request import combinations
from compare.report.model.report import Report
from compare.run.folder.load_run import is_complete as is_whole
from compare.sweep.sweep import CaseEnd, read_result
from compare.sweep.sweep_report import build_summary, check_sweep, earlier_rows, is_complete, result_row, sentence
from meshes.process.documents import parse_json
from tests.compare.sweep.sweeps import REPORT
from tests.places import ROOT

ASKED = sweep_parser().parse_args(["--meshes", "tp4pp2,tp8,ep8"])


@pytest.fixture
def results():
    possible, other, refused = combinations(ASKED)
    return [
        result_row(possible, status="done", folder="first", report=Report.from_json(REPORT)),
        result_row(other, status="crashed", error="died of SIGABRT"),
        result_row(refused, status="refused", error=refused.refused),
    ]


def test_a_program_is_told_as_in_its_report(results):
    decode = results[0]["phases"]["decode"]
    programs = {(program["arm"], program["cell"]): program for program in decode["programs"]}
    assert decode["inherent_total"] == 3_227_736
    assert {name: program["is_default"] for name, program in programs.items()} == {
        ("jax", "tpu"): True,
        ("jax", "tpu+gspmd"): False,
        ("torchxla", "tpu"): True,
        ("torchxla", "tpu+einsum"): False,
        ("torchxla", "tpu+shardy"): False,
    }
    assert programs["jax", "tpu+gspmd"]["is_compared"]
    torch = programs["torchxla", "tpu"]
    report = REPORT["phases"]["decode"]["arms"]["torchxla"]
    assert torch["wire_bytes"] == report["totals"]["wire_bytes"]
    assert torch["ratio"] == torch["wire_bytes"] / 3_227_736
    assert torch["modelled_step_ns"] == report["timing"]["per_step"]["step_ns"]


def test_what_was_measured_is_not_told_as_modelled():
    report = copy.deepcopy(REPORT)
    report["phases"]["prefill"]["arms"]["jax"]["timing"]["source"] = "measured"
    (combination, *_) = combinations(ASKED)
    row = result_row(combination, status="done", folder="first", report=Report.from_json(report))
    programs = row["phases"]["prefill"]["programs"]
    assert [program["modelled_step_ns"] is None for program in programs] == [True, False, False, False, False]


def with_witness(**words):
    """The example's report with a witness beside JAX's program of decode."""
    report = copy.deepcopy(REPORT)
    phase = report["phases"]["decode"]
    phase["arms"]["jax"]["witnesses"] = {"tunix": phase["arms"]["jax"]["controls"]["tpu+gspmd"] | {"cell": "tunix"}}
    phase["arms"]["jax"]["witnesses"]["tunix"] |= words
    line = next(line for line in phase["headline"] if line["cell"] == "tpu+gspmd")
    phase["headline"].append(line | {"cell": "tunix", "title": "tunix"} | words)
    return Report.from_json(report)


def test_a_witness_is_a_program_of_its_case():
    (combination, *_) = combinations(ASKED)
    row = result_row(combination, status="done", folder="first", report=with_witness())
    told = row["phases"]["decode"]["programs"][-1]
    assert (told["arm"], told["cell"], told["title"], told["is_default"]) == ("jax", "tunix", "tunix", False)
    assert told["modelled_step_ns"] == REPORT["phases"]["decode"]["arms"]["jax"]["timing"]["per_step"]["step_ns"]


def test_a_witness_that_refuses_its_case_does_not_fail_it():
    report = with_witness(status="refused", error="tunix is split over dp and tp only")
    assert not is_whole(report)
    assert is_whole(report, may_refuse=["tunix"])
    assert not is_whole(with_witness(status="crashed", error="died of SIGABRT"), may_refuse=["tunix"])


def test_the_sentence_counts_and_names_the_furthest(results):
    assert sentence(results) == (
        "1 of 3 combinations compiled and judged (1 refused, 1 failed). Largest ratio of emitted to inherent "
        "bytes: 177 × (TorchXLA, llama-3.1-8b on tp4pp2, decode)."
    )
    assert sentence(results[2:]) == "0 of 1 combinations compiled and judged (1 refused)."


def test_what_cannot_be_is_no_failure(results):
    assert not is_complete(build_summary(results, asked=vars(ASKED), arms=["jax"]))
    assert is_complete(build_summary([results[0], results[2]], asked=vars(ASKED), arms=["jax"]))


def test_rows_of_an_earlier_sweep_stay_as_long_as_their_runs_do(results, tmp_path):
    before = build_summary(results, asked=vars(ASKED), arms=["jax", "torchxla"])
    (tmp_path / "sweep.json").write_text(json.dumps(before))
    assert earlier_rows(tmp_path, [])["results"] == []  # its run folder is gone
    (tmp_path / "first").mkdir()
    (tmp_path / "first/report.json").write_text("{}")
    assert earlier_rows(tmp_path, results)["results"] == []  # asked for again
    summary = build_summary(results[1:], asked=vars(ASKED), arms=["jax"], before=earlier_rows(tmp_path, results[1:]))
    assert [(result["mesh"], result.get("earlier", False)) for result in summary["results"]] == [
        ("tp8", False),
        ("ep8", False),
        ("tp4pp2", True),
    ]
    assert summary["arms"] == {"jax": "JAX", "torchxla": "TorchXLA"}
    assert summary["sentence"].endswith("(1 refused, 1 failed). 1 row of an earlier sweep in this folder is kept.")
    (tmp_path / "sweep.json").write_text('{"schema": 1, "results')
    assert earlier_rows(tmp_path, [])["results"] == []


def refusal(sweep):
    try:
        check_sweep(sweep)
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_what_is_read_again_is_checked_as_jsonschema_checks_it(results):
    """The same verdict on a whole sweep and on 300 with another value, or one name less, somewhere."""
    schema = json.loads((ROOT / "compare/sweep/sweep.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    text = json.dumps(build_summary(results, asked=vars(ASKED), arms=["jax", "torchxla"]))
    check_sweep(json.loads(text))
    seen = set()
    for seed in range(300):
        try:
            mutated = parse_json(mutate.tree(text, random.Random(seed)))
        except ValueError:
            continue
        seen.add(validator.is_valid(mutated))
        # That a case has its numbers is beyond the schema.
        said = refusal(mutated)
        assert (said == "") == validator.is_valid(mutated) or "has a case" in said
    assert seen == {True, False}


@pytest.mark.parametrize("text", ["[]", "{}", '{"phases": {"decode": 1}}', '{"phases": '])
def test_a_report_that_is_damaged_makes_its_row_failed(results, tmp_path, text):
    (combination, *_) = combinations(ASKED)
    (tmp_path / "report.json").write_text(text)
    row = read_result(combination, CaseEnd("done", at=tmp_path))
    assert row["status"] == "failed"
    assert row["error"].startswith("report.json cannot be read again: ")
    assert row["phases"] == {}


def test_it_follows_its_schema(results):
    schema = json.loads((ROOT / "compare/sweep/sweep.schema.json").read_text())
    summary = build_summary(results, asked=vars(ASKED), arms=["jax", "torchxla"])
    assert json.loads(json.dumps(summary)) == summary
    jsonschema.validate(summary, schema)
    assert summary["asked"]["meshes"] == "tp4pp2,tp8,ep8"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(summary | {"results": [{}]}, schema)
