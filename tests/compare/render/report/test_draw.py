"""What is written into a run folder: with its page or without, by a process of its own or by a shared one."""

from pathlib import Path

import pytest

from compare.render.report.draw import judge_and_draw, judge_and_save
from compare.render.report.figure_process import FigureProcess
from compare.run.folder.load_run import read_run
from tests.places import copy_example

pytestmark = pytest.mark.slow

PROGRAMS = ("jax/decode/tpu", "torchxla/decode/tpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default decode programs of the README's run."""
    return copy_example(tmp_path_factory.mktemp("example") / "run", *PROGRAMS, phases=["decode"])


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def drawn(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("drawn")
    judge_and_draw(read_run(run), folder)
    return files(folder)


def test_without_a_page_the_report_and_the_tables_are_the_same(
    run: Path, drawn: dict[str, bytes], tmp_path: Path
) -> None:
    judge_and_save(read_run(run), tmp_path)
    saved = files(tmp_path)
    assert {"report.json", "tables/events.parquet"} <= set(saved)
    assert saved.items() <= drawn.items()
    assert {name.partition("/")[0] for name in set(drawn) - set(saved)} == {
        "figures",
        "report.html",
        "timeline.perfetto.json.gz",
    }


def test_a_process_that_has_drawn_another_run_draws_the_same(
    run: Path, drawn: dict[str, bytes], tmp_path: Path
) -> None:
    with FigureProcess() as process:
        for name in ("first", "second"):
            (tmp_path / name).mkdir()
            judge_and_draw(read_run(run), tmp_path / name, process=process)
    assert files(tmp_path / "second") == drawn
