"""The run folder: what is in it, and that there is a whole one, or none, at every moment."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from compare.run import scheduler
from compare.run.cache import Cache, file_digest
from compare.run.errors import WorkError
from compare.run.folder import replace_folder, run_folder
from compare.run.results import Outcome
from meshes.case import Case
from tests.places import ROOT


def write(case: Case, parent: Path, text: str = "first") -> Path:
    with replace_folder.open_replacement(run_folder.folder_of(case, parent=parent, arms=run_folder.ARMS)) as into:
        run_folder.write_cells(into, case=case, outcomes=[])
        (into / "report.html").write_text(text)
    return run_folder.folder_of(case, parent=parent, arms=run_folder.ARMS)


def visible(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir())


def test_a_run_folder_holds_every_cell_with_what_was_found(toy, case, tmp_path, monkeypatch):
    pytest.importorskip("libtpu", reason="needs libtpu: pip install -e '.[jax]'")
    monkeypatch.setenv("TOY_DOES", "decode+gspmd=fail")
    outcomes = scheduler.run_case(case, arms=[toy], cache=Cache(tmp_path / "cache"), notify=lambda event: None)
    with replace_folder.open_replacement(
        run_folder.folder_of(case, parent=tmp_path / "runs", arms=run_folder.ARMS)
    ) as into:
        run_folder.write_cells(into, case=case, outcomes=outcomes)
    place = tmp_path / "runs" / case.name
    assert Case.from_json((place / "case.json").read_text()) == case
    made = json.loads((place / "case.json").read_text())["made_by"]
    assert set(made) == {"wirediff", "wirediff_commit", "date"}
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", made["date"])

    good = json.loads((place / "toy/decode/tpu/about.json").read_text())
    assert (good["status"], good["error"], good["failed_step"]) == ("ok", "", "")
    assert set(good["versions"]) == {"toy", "jaxlib", "libtpu"}
    assert (good["partitioner"], good["topology"], good["device_kind"]) == ("gspmd", "v5e:2x4", "TPU v5 lite")
    assert good["compile_options"]["num_partitions"] == 8
    assert good["memory"]["argument_bytes"] == 2 * (256 * 256 + 256 * 512) // 8
    assert good["program_digest"] == file_digest(place / "toy/decode/tpu/program.mlirbc")
    assert good["hlo_digest"] == file_digest(place / "toy/decode/tpu/optimized.hlo.gz")
    assert set(good["seconds"]) == set(good["process_s"]) == set(good["process_peak_bytes"]) == {"lower", "compile"}
    assert "all-reduce" in gzip.decompress((place / "toy/decode/tpu/optimized.hlo.gz").read_bytes()).decode()

    bad = json.loads((place / "toy/decode/tpu+gspmd/about.json").read_text())
    assert (bad["status"], bad["failed_step"]) == ("failed", "lower")
    assert bad["error"] == "ValueError: heads do not divide"
    assert any("toy_arm/lower.py" in line for line in bad["stderr"])
    assert not any(str(tmp_path) in line for line in bad["stderr"])
    assert visible(place / "toy/decode/tpu+gspmd") == ["about.json"]


def test_a_run_takes_the_place_of_the_one_before(case, tmp_path):
    place = write(case, tmp_path / "deep" / "runs")
    assert write(case, place.parent, "second") == place
    assert visible(place) == ["case.json", "report.html"]
    assert (place / "report.html").read_text() == "second"
    assert visible(place.parent) == [case.name]


def test_what_others_keep_in_a_run_folder_survives_a_rerun_and_what_was_drawn_does_not(case, tmp_path):
    place = write(case, tmp_path)
    kept = ["notes.md", "figures/mine.png", "toy/decode/tpu/why.txt", "mine/deep/er/still/plot.py", "mine/report.json"]
    drawn = [
        "report.json",
        "figures/verdicts.svg",
        "figures/traffic-decode-toy.png",
        "tables/collectives.parquet",
        "toy/decode/gone/about.json",
    ]
    for name in [*kept, *drawn]:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name)
    (place / "empty").mkdir()
    (place / "link").symlink_to("mine")
    for _ in range(2):
        write(case, tmp_path, "second")
    assert [(place / name).read_text() for name in kept] == kept
    assert [name for name in drawn if (place / name).exists()] == []
    assert (place / "empty").is_dir()
    assert (place / "link").is_symlink()
    assert (place / "report.html").read_text() == "second"
    assert visible(tmp_path) == [place.name]


def cell(place: Path, status: str) -> None:
    at = place / "toy" / "decode" / "tpu"
    at.mkdir(parents=True)
    (at / "about.json").write_text(json.dumps({"status": status}))
    (at / "optimized.hlo.gz").write_bytes(b"")


@pytest.mark.parametrize(
    ("before", "judged", "stays"), [("ok", False, True), ("ok", True, False), ("failed", False, False)]
)
def test_a_run_that_judged_nothing_goes_beside_one_that_has_programs(case, tmp_path, before, judged, stays):
    place = write(case, tmp_path)
    cell(place, before)
    for _ in range(2):
        with replace_folder.open_replacement(place) as into:
            run_folder.write_cells(into, case=case, outcomes=[])
            (into / "report.html").write_text("second")
            at, note = run_folder.put_in_place(into, place, judged=judged)
    assert (place / "report.html").read_text() == ("first" if stays else "second")
    assert at == (tmp_path / f"{case.name}-failed" if stays else place)
    assert (at / "report.html").read_text() == "second"
    assert len(note) == stays
    assert visible(tmp_path) == sorted({place.name, at.name})


def test_a_system_without_exchange_does_it_in_two_renames(case, tmp_path, monkeypatch):
    monkeypatch.setattr(replace_folder, "_exchange", lambda first, other: False)
    place = write(case, tmp_path)
    assert (write(case, tmp_path, "second") / "report.html").read_text() == "second"
    assert visible(tmp_path) == [place.name]


LOOP = """
    import sys
    sys.path.insert(0, {root!r})
    from pathlib import Path
    from compare.run.folder import replace_folder, run_folder
    from meshes.case import Case
    case = Case.read("tp8", model_name="tiny", attention="einsum", phases=("decode",))
    for number in range({times}):
        folder = run_folder.folder_of(case, parent=Path({parent!r}), arms=run_folder.ARMS)
        with replace_folder.open_replacement(folder) as into:
            run_folder.write_cells(into, case=case, outcomes=[])
            (into / "a").write_text(str(number) * 100_000)
            (into / "b").write_text(str(number) * 100_000)
"""


def loop(parent: Path, *, times: int) -> subprocess.Popen:
    script = textwrap.dedent(LOOP.format(root=str(ROOT), parent=str(parent), times=times))
    return subprocess.Popen([sys.executable, "-c", script])


def is_whole(place: Path) -> bool:
    """Of one run; a folder that is open stays that of one run while another takes its place."""
    opened = os.open(place, os.O_RDONLY)
    try:
        a, b = (Path(f"/proc/self/fd/{opened}/{name}").read_text() for name in ("a", "b"))
    except FileNotFoundError:  # it is the one before, and was just removed
        return True
    finally:
        os.close(opened)
    return a == b != ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the exchange of two folders is Linux's")
def test_there_is_a_whole_run_folder_at_every_moment(case, tmp_path):
    """Two runs write the same case at once; a third is killed again and again."""
    write(case, tmp_path)
    place = run_folder.folder_of(case, parent=tmp_path, arms=run_folder.ARMS)
    loop(tmp_path, times=1).wait()
    both = [loop(tmp_path, times=60) for _ in range(2)]
    looks = 0
    while any(started.poll() is None for started in both):
        assert is_whole(place)
        looks += 1
    assert [started.returncode for started in both] == [0, 0]
    assert looks > 5
    for attempt in range(5):
        killed = loop(tmp_path, times=10_000)
        time.sleep(0.15 + 0.02 * attempt)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert is_whole(place)


def test_a_folder_of_another_s_is_refused_and_untouched(case, tmp_path):
    place = run_folder.folder_of(case, parent=tmp_path, arms=run_folder.ARMS)
    place.mkdir()
    assert write(case, tmp_path) == place  # an empty one may be taken
    (place / "case.json").unlink()
    with pytest.raises(WorkError, match=r"no case\.json in it.*choose another --out"):
        write(case, tmp_path)
    assert visible(place) == ["report.html"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WorkError, match="file is no folder; choose another with --out"):
        write(case, tmp_path / "file")


def test_a_file_where_the_run_folder_should_be_is_refused(case, tmp_path):
    run_folder.folder_of(case, parent=tmp_path, arms=run_folder.ARMS).write_text("mine")
    with pytest.raises(WorkError, match="is no folder; choose another with --out"):
        write(case, tmp_path)


def test_a_link_to_a_run_folder_stays_a_link(case, tmp_path):
    linked = write(case, tmp_path / "there")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / case.name).symlink_to(linked)
    place = write(case, tmp_path / "runs", "second")
    assert place.is_symlink()
    assert (linked / "report.html").read_text() == "second"
    assert visible(tmp_path / "there") == [case.name]


FULL = """
    import resource, sys
    sys.path.insert(0, {root!r})
    from pathlib import Path
    from compare.run.folder import replace_folder, run_folder
    from meshes.case import Case
    case = Case.read("tp8", model_name="tiny", attention="einsum", phases=("decode",))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        folder = run_folder.folder_of(case, parent=Path({parent!r}), arms=run_folder.ARMS)
        with replace_folder.open_replacement(folder) as into:
            (into / "case.json").write_text("x" * 5000)
    except replace_folder.WorkError as error:
        print(error)
"""


def test_a_disk_that_refuses_more_is_one_line_and_the_run_before_stays(case, tmp_path):
    place = write(case, tmp_path)
    script = textwrap.dedent(FULL.format(root=str(ROOT), parent=str(tmp_path)))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot write {place}: File too large\n"
    assert (place / "report.html").read_text() == "first"
    assert visible(tmp_path) == [place.name]


def test_a_cell_of_an_arm_that_is_not_installed_says_how_to_get_it(case, tmp_path):
    outcome = Outcome(arm="jax", phase="decode", cell="tpu", status="not-installed", error="get it with pip")
    with replace_folder.open_replacement(run_folder.folder_of(case, parent=tmp_path, arms=run_folder.ARMS)) as into:
        run_folder.write_cells(into, case=case, outcomes=[outcome])
    about = json.loads((tmp_path / case.name / "jax/decode/tpu/about.json").read_text())
    assert (about["status"], about["error"], about["program_digest"]) == ("not-installed", "get it with pip", None)


def test_a_run_drawn_again_keeps_its_remedies_and_a_new_run_goes_without_them(case, tmp_path):
    place = write(case, tmp_path)
    for name in run_folder.REMEDIES:
        (place / name).write_text(name)
    with replace_folder.open_replacement(place) as into:
        run_folder.copy_run(place, into)
    assert [(place / name).read_text() for name in run_folder.REMEDIES] == list(run_folder.REMEDIES)
    write(case, tmp_path)
    assert not any((place / name).exists() for name in run_folder.REMEDIES)
