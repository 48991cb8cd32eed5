"""A run folder that somebody else sent: what is not there is said, nothing leads out of it, nothing in it is obeyed."""

import gzip
import hashlib
import io
import json
import lzma
import shutil
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from compare.render import figures
from compare.report.model.report import Report
from compare.report.programs import ProgramResult
from compare.run.errors import WorkError
from compare.run.folder import run_folder
from compare.run.folder.load_run import is_complete, judge_run, read_run
from compare.run.folder.timelines import add_times
from meshes.case import Case
from tests.commands import check_refusal, run_here
from tests.places import EXAMPLE

pytestmark = pytest.mark.slow

CELL = "torchxla/decode/tpu+einsum"


@pytest.fixture
def run(tmp_path):
    """The run of the README with its decode programs only, and the passes of one."""
    place = tmp_path / "run"
    for path in sorted(EXAMPLE.glob("*/decode/*/*")):
        if path.name == "passes.tar.xz" and path.parent != EXAMPLE / CELL:
            continue
        (place / path.relative_to(EXAMPLE)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place / path.relative_to(EXAMPLE))
    case = json.loads((EXAMPLE / "case.json").read_text())
    (place / "case.json").write_text(json.dumps(case | {"phases": ["decode"]}))
    return place


def results(place: Path) -> dict[str, ProgramResult]:
    """By `arm/phase/cell`."""
    return {"/".join(program.result.key): program.result for program in judge_run(read_run(place)).programs}


def statuses(place: Path) -> dict[str, str]:
    return {name: result.status for name, result in results(place).items()}


def report(place: Path) -> Report:
    run = judge_run(read_run(place))
    return add_times(run.report(), run.programs, run.timelines())


def notify(cell: Path, **fields) -> None:
    about = json.loads((cell / "about.json").read_text())
    (cell / "about.json").write_text(json.dumps(about | fields))


def test_a_program_that_is_gone_is_said_and_costs_the_exit_status(run):
    shutil.rmtree(run / CELL)
    assert statuses(run)[CELL] == "missing"
    done = run_here("report", run)
    assert done.returncode == 1
    assert "TorchXLA tpu+einsum: missing: it was made, and is not in the run folder" in done.stdout
    assert run_here("report", run).returncode == 1  # what was drawn knows it, too


def test_an_arm_that_is_gone_is_said_where_the_run_lists_its_programs(run):
    shutil.rmtree(run / "jax")
    listed = statuses(run)
    assert {name for name, status in listed.items() if status == "missing"} == {
        "jax/decode/tpu",
        "jax/decode/tpu+gspmd",
    }
    assert not is_complete(report(run))


@pytest.mark.parametrize("listed", [True, False])
def test_a_phase_that_is_gone_is_said_and_the_other_is_drawn(tmp_path, listed):
    place = tmp_path / "run"
    for path in [EXAMPLE / "case.json", *sorted(EXAMPLE.glob("*/decode/*/*"))]:
        (place / path.relative_to(EXAMPLE)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place / path.relative_to(EXAMPLE))
    if not listed:  # as in run folders of earlier versions
        case = json.loads((place / "case.json").read_text())
        del case["programs"]
        (place / "case.json").write_text(json.dumps(case))
    done = run_here("report", place)
    assert (done.returncode, done.stderr) == (1, "")
    assert "JAX tpu, tpu+gspmd: missing: it was made, and is not in the run folder" in done.stdout
    assert "TorchXLA moves 177 × what the plan needs in decode" in done.stdout
    assert (place / "figures" / "verdicts.svg").is_file()


def test_a_new_run_lists_its_programs_and_is_the_same_case(tmp_path):
    case = Case.read("tp8", model_name="tiny", phases=("decode",))
    outcome = run_folder.Outcome(arm="jax", phase="decode", cell="tpu", status="failed", error="why")
    run_folder.write_cells(tmp_path, case=case, outcomes=[outcome])
    assert json.loads((tmp_path / "case.json").read_text())["programs"] == ["jax/decode/tpu"]
    assert Case.from_json((tmp_path / "case.json").read_text()) == case


@pytest.mark.parametrize("name", ["optimized.hlo.gz", "passes.tar.xz", "about.json"])
def test_a_file_that_is_a_link_out_of_the_run_is_not_read(run, tmp_path, name):
    outside = tmp_path / "outside"
    shutil.move(run / CELL / name, outside)
    (run / CELL / name).symlink_to(outside)
    if name == "passes.tar.xz":
        cell = next(program for program in judge_run(read_run(run)).programs if "/".join(program.result.key) == CELL)
        assert (cell.result.status, cell.result.passes) == ("ok", b"")
    else:
        assert statuses(run)[CELL] == {"about.json": "missing", "optimized.hlo.gz": "damaged"}[name]
    into = tmp_path / "copy"
    into.mkdir()
    run_folder.copy_run(run, into)
    assert not (into / CELL / name).exists()


def test_a_folder_that_is_a_link_out_of_the_run_is_not_read(run, tmp_path):
    shutil.move(run / "torchxla", tmp_path / "outside")
    (run / "torchxla").symlink_to(tmp_path / "outside")
    assert {name for name, status in statuses(run).items() if status == "missing"} == {
        f"torchxla/decode/{cell}" for cell in ("tpu", "tpu+einsum", "tpu+shardy")
    }


def test_a_case_that_is_a_link_out_of_the_run_is_not_read(run, tmp_path):
    shutil.move(run / "case.json", tmp_path / "secret")
    (run / "case.json").symlink_to(tmp_path / "secret")
    with pytest.raises(WorkError, match=r"is not a run folder: case.json: it leads out of the folder"):
        read_run(run)


@pytest.mark.parametrize(
    "listed", ["../../jax", "jax/decode/../tpu", "/etc/decode/tpu", "a/decode/\x1b[31m", "", 3, [1]]
)
def test_listed_names_that_lead_elsewhere_are_no_programs(run, listed):
    case = json.loads((run / "case.json").read_text())
    (run / "case.json").write_text(json.dumps(case | {"programs": [listed]}))
    assert set(statuses(run).values()) == {"ok"}


def test_a_program_in_a_folder_that_no_arm_has_is_refused_in_one_line(run):
    (run / "jax").rename(run / "jax\x1b[31m\nred")
    done = run_here("report", run)
    check_refusal(done, "which no run has; rename it")
    assert done.stderr.strip().isprintable()


def test_a_bomb_in_a_run_folder_is_one_damaged_program(run):
    packed = gzip.compress(bytes(300 << 20), compresslevel=9)
    (run / CELL / "optimized.hlo.gz").write_bytes(packed)
    notify(run / CELL, hlo_digest=hashlib.sha256(packed).hexdigest())
    assert "is larger than 256 MiB, which is the most that is read" in results(run)[CELL].error


def test_recorded_passes_that_are_a_bomb_are_not_read(run):
    packed = io.BytesIO()
    with lzma.open(packed, "wb", preset=0) as stream, tarfile.open(fileobj=stream, mode="w|") as archive:
        for number in range(3):
            entry = tarfile.TarInfo(f"{number:04}.p.after_a.before_b.txt")
            entry.size = 200 << 20
            archive.addfile(entry, Endless())
    (run / CELL / "passes.tar.xz").write_bytes(packed.getvalue())
    notify(run / CELL, passes_digest=hashlib.sha256(packed.getvalue()).hexdigest())
    cell = next(program for program in judge_run(read_run(run)).programs if "/".join(program.result.key) == CELL)
    assert (cell.result.status, cell.lineage) == ("ok", None)
    assert "more than 512 MiB" in cell.why_no_lineage


class Endless(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        return b" " * size


def test_what_about_json_says_is_one_clean_line_wherever_it_is_told(run):
    notify(run / CELL, status="failed", error="\x1b[31mred\n" + "x" * 400_000 + "\x00\x9b the end")
    error = results(run)[CELL].error
    assert error.isprintable()
    assert len(error) <= 500
    assert error.endswith("the end")


def test_a_figure_is_xml_whatever_is_written_in_it(run):
    notify(run / CELL, status="\x1b[31mred\x00")
    picture = figures.draw_verdicts(report(run))
    assert b"\x1b" not in picture.svg
    assert "\N{REPLACEMENT CHARACTER}[31mred" in picture.svg.decode()
    ET.fromstring(picture.svg)


DAMAGES = {
    "deep": "[" * 100_000,
    "deep tables": '{"a": ' * 100_000,
    "400 digits": '{"status": "ok", "memory": {"a": 1' + "0" * 400 + "}}",
    "surrogate": '{"status": "ok", "error": "\\ud800"}',
    "no number": '{"status": "ok", "cost": NaN}',
    "too large": " " * (33 << 20),
    "rules": '{"status": "ok", "case": {"rules": true}}',
}


@pytest.mark.parametrize("text", DAMAGES.values(), ids=DAMAGES)
def test_an_about_json_that_nobody_writes_costs_only_its_own_program(run, text):
    (run / CELL / "about.json").write_text(text)
    listed = results(run)
    damaged = listed.pop(CELL)
    assert damaged.status == "damaged"
    assert {result.status for result in listed.values()} == {"ok"}
    assert damaged.error.startswith(f"{CELL}/about.json cannot be read again: ")
    assert len(damaged.error) <= 500
