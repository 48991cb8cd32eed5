"""A run one of whose programs cannot be read: every command says which, and why, and its exit status is not 0."""

import json
import shutil

import pytest

from compare.cli import energy, export, history, metric, simulate
from compare.report.programs import DAMAGED, MISSING, NOT_OFFERED, ProgramResult, list_failures
from meshes.process.command_line import run_to_status
from tests.places import copy_example

GOOD, BAD = "jax/decode/tpu", "torchxla/decode/tpu"
FILE = f"{BAD}/optimized.hlo.gz"
REASON = f"{FILE} cannot be read again: it is not the file whose digest about.json has"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The two decode programs of the example run, the second one cut short."""
    place = copy_example(tmp_path_factory.mktemp("unreadable") / "run", GOOD, BAD, phases=["decode"])
    (place / FILE).write_bytes((place / FILE).read_bytes()[:3000])
    return place


def ask(command, *words):
    return run_to_status(lambda: command.main([str(word) for word in words]))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (simulate, ()),
        (simulate, ("--as", "astra-sim")),
        (history, ()),
        (energy, ()),
        (energy, ("--json",)),
        (energy, ("--frequency", "0.9:1.1:0.1")),
    ],
)
def test_what_can_be_answered_is_and_the_other_program_is_named(run, capsys, command, words):
    assert ask(command, run, *words) == 1
    printed = capsys.readouterr()
    # ASTRA-sim simulates the line of four chips as a ring, and says so.
    said = [line for line in printed.err.splitlines() if not line.startswith("note: ASTRA-sim has no lines")]
    assert said == [f"left out: {REASON}"]
    assert "jax" in printed.out.lower()


@pytest.mark.parametrize("tool", ["chakra", "ccl-bench"])
def test_an_export_is_of_all_programs_or_of_none(run, capsys, tmp_path, tool):
    with pytest.raises(ValueError, match=f"nothing of .* is written: {REASON}; choose by --framework, --phase"):
        export.main([str(run), "--to", tool, "--out", str(tmp_path / "out")])
    assert list(tmp_path.iterdir()) == []
    assert ask(export, run, "--to", tool, "--out", tmp_path / "out", "--arm", "jax") == 0
    printed = capsys.readouterr()
    assert (printed.err, len(printed.out.splitlines())) == ("", 1)


def test_a_program_that_is_not_understood_is_named_too(run, capsys, tmp_path):
    """Its bytes are those that were written, and no HLO."""
    place = tmp_path / "run"
    shutil.copytree(run, place)
    shutil.copy(place / GOOD / "program.mlirbc", place / FILE)
    about = json.loads((place / BAD / "about.json").read_text())
    (place / BAD / "about.json").write_text(json.dumps(about | {"hlo_digest": None}))
    assert ask(energy, place) == 1
    assert capsys.readouterr().err.startswith(f"left out: {FILE} cannot be")


def test_a_metric_is_not_of_another_program_than_the_one_that_is_meant(run, capsys):
    words = ["--trace", run, "--phase", "decode", "--metric", "avg_step_time"]
    assert ask(metric, *words) == 2
    assert "2 programs; choose by --framework, --phase, --variant" in capsys.readouterr().err
    assert ask(metric, *words, "--arm", "torchxla") == 2
    assert capsys.readouterr().err == f"error: {REASON}\n"


def test_where_nothing_can_be_read_the_one_line_says_why(run, capsys, tmp_path):
    place = tmp_path / "run"
    shutil.copytree(run, place)
    shutil.rmtree(place / GOOD)
    for command in (simulate, energy):
        assert ask(command, place) == 2
        printed = capsys.readouterr()
        assert (len(printed.err.splitlines()), printed.out) == (1, "")
        assert REASON in printed.err
        assert f"left out: {GOOD}: it was made, and is not in the run folder" in printed.err


def test_what_is_not_offered_is_no_failure():
    def result(status, error=None):
        return ProgramResult(arm="jax", phase="decode", cell="tpu", status=status, error=error)

    assert list_failures([result("ok"), result(NOT_OFFERED, "there is none")]) == ()
    failed = [result("timeout"), result(MISSING, "gone"), result(DAMAGED, f"{GOOD}/about.json is empty")]
    assert list_failures(failed) == (
        f"left out: {GOOD}: timeout",
        f"left out: {GOOD}: gone",
        f"left out: {GOOD}/about.json is empty",
    )
