"""The gallery, compiled: every program holds to what its lesson says by hand, and docs/gallery is what is built."""

import gzip
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import patch

import pytest

from compare.gallery import compile_lessons
from compare.gallery.compile_lessons import build_each
from compare.gallery.lesson_types.lesson import GSPMD, SHARDY, TORCH, TORCH_SHARDY, Lesson, count_moves
from compare.gallery.lesson_types.lesson_result import LessonResult, needed_wire
from compare.gallery.lessons import LESSONS, find_lesson
from compare.gallery.render.page import render_pages
from compare.gallery.take_quiz import QUESTIONS, STEP, hide_name
from compare.run import arms, cache
from tests.loop_copies import list_loop_copies
from tests.places import ROOT

BATCH = 100
"""Programs for each process: more than `build_each` gives one, so that fewer are started."""


def build(lessons: Sequence[Lesson], kept: cache.Cache, notify: Callable[[str], None]) -> list[LessonResult]:
    """Every program of these lessons."""
    return build_each(
        [(lesson, program) for lesson in lessons for program in lesson.programs], cache=kept, notify=notify
    )


@pytest.fixture(scope="module")
def results() -> list[LessonResult]:
    """Every program of every lesson, from the user's cache where it is there."""
    with cache.open_cache() as kept, patch.object(compile_lessons, "BATCH", BATCH):
        return build(LESSONS, kept, print)


@pytest.mark.slow
def test_every_program_moves_what_its_lesson_says_by_hand(results: list[LessonResult]) -> None:
    # PyTorch/XLA has neither a ring nor a ragged dot, and GSPMD no ragged dot.
    absent = {SHARDY: 0, GSPMD: 1, TORCH: 2, TORCH_SHARDY: 2}
    assert Counter(result.program for result in results) == {
        program: len(LESSONS) - number for program, number in absent.items()
    }
    for result in results:
        named = (result.lesson.name, result.program)
        expected = result.lesson.expected(result.program)
        assert result.ok, (*named, result.error)
        assert result.is_known, named
        assert result.emitted == count_moves(result.lesson, expected), named
        # Who sends in a permute is in no count of executions, but in these bytes.
        assert result.wire_bytes == needed_wire(result.lesson, expected), named


@pytest.mark.slow
def test_a_cache_that_is_written_by_index_and_then_read_is_copied_whole_in_each_turn(
    results: list[LessonResult],
) -> None:
    """No collective shows it: to the layout of the read and back, all four layers, 256 of 1,024 numbers a device."""
    copies = {"cache-loop-index": 2, "cache-loop-masked": 0, "cache-loop-heads": 0}
    compiled = [result for result in results if result.lesson.name in copies]
    assert len(compiled) == 3 * 4
    for result in compiled:
        assert result.compiled is not None
        shapes = list_loop_copies(gzip.decompress(result.compiled.read_bytes()).decode())
        whole = [shape for shape in shapes if shape in ("4,8,1024,256", "4,8,2,1024,128")]
        assert len(whole) == copies[result.lesson.name], (result.lesson.name, result.program)


@pytest.mark.slow
def test_both_frameworks_split_the_same_arrays_in_the_same_way(results: list[LessonResult]) -> None:
    for lesson in LESSONS:
        assert len({(result.takes, result.gives) for result in results if result.lesson is lesson}) == 1, lesson.name


@pytest.mark.slow
def test_a_question_of_the_quiz_shows_the_function_and_does_not_tell_its_lesson(results: list[LessonResult]) -> None:
    assert len({number * STEP % len(QUESTIONS) for number in range(len(QUESTIONS))}) == len(QUESTIONS) == len(results)
    for result in results:
        shown = hide_name(result)
        assert shown.startswith("def f("), (result.lesson.name, result.program)
        assert f"def {result.lesson.pattern}(" not in shown
        compile(shown, "", "exec")


@pytest.mark.slow
def test_the_pages_in_docs_are_those_that_are_built(results: list[LessonResult]) -> None:
    """Rebuild them with `python -m compare.teach --out docs/gallery`."""
    built = render_pages(results)
    folder = ROOT / "docs/gallery"
    assert {path.name for path in folder.iterdir()} == set(built)
    for name, text in built.items():
        shipped = (folder / name).read_text(encoding="utf-8")
        assert without_drawings(shipped) == without_drawings(text), f"rebuild docs/gallery/{name}"


def without_drawings(page: str) -> str:
    """The page without its pictures, whose bytes depend on fonts and versions; what they show is in their labels."""
    return re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)


DYING = """
import json, os, sys
from pathlib import Path
TEXT = "module {{ func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ return %x : tensor<4xf32> }} }}"
OPTIONS = dict(num_replicas=1, num_partitions=4, use_spmd_partitioning=True)
for number, asked in enumerate(json.loads(Path(sys.argv[1]).read_text())["programs"]):
    if asked["pattern"] == "mlp":
        print("Check failed: it is bad", file=sys.stderr, flush=True)
        os.abort()
    out = Path(sys.argv[2]) / str(number)
    out.mkdir()
    if asked["pattern"] == "norm_width":
        (out / "failed.txt").write_text("no such thing")
        continue
    (out / "program.mlirbc").write_text(TEXT.format())
    about = dict(compile_options=OPTIONS, source="def f(x): ...", takes=[], gives=[], versions=dict())
    (out / "about.json").write_text(json.dumps(about))
"""


@pytest.mark.slow
def test_a_worker_that_dies_takes_one_program_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dying" / "patterns").mkdir(parents=True)
    (tmp_path / "dying" / "__init__.py").touch()
    (tmp_path / "dying" / "patterns" / "__init__.py").touch()
    (tmp_path / "dying" / "patterns" / "__main__.py").write_text(DYING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    dying = arms.Arm(name="jax", module="dying", title="Dying", packages=(), extra="", start_s=1)
    monkeypatch.setattr(arms, "ARMS", {**arms.ARMS, "jax": dying})
    monkeypatch.setattr(arms.Arm, "missing", lambda self: "" if self is dying else "not asked")
    names = ("matmul-rows", "mlp", "norm-width", "softmax-split", "context-ring")
    lessons = [lesson for name in names for lesson in find_lesson(name)]
    (tmp_path / "cache" / "begun").mkdir(parents=True)
    said: list[str] = []
    results = build(lessons, cache.Cache(tmp_path / "cache"), said.append)
    ends = {
        (result.lesson.name, result.program): (result.status, result.error)
        for result in results
        if result.program in (SHARDY, GSPMD)
    }
    assert ends["matmul-rows", SHARDY] == ends["softmax-split", GSPMD] == ends["context-ring", GSPMD] == ("ok", "")
    assert ends["norm-width", SHARDY] == ("failed", "no such thing")
    assert ends["mlp", SHARDY] == ("crashed", "died of SIGABRT: Check failed: it is bad")
    assert any("mlp" in line and "crashed" in line for line in said)


def test_an_arm_that_is_not_installed_is_told_and_the_pages_still_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arms.Arm, "missing", lambda self: "not installed; get it with pip install")
    (tmp_path / "begun").mkdir()
    results = build(find_lesson("mlp"), cache.Cache(tmp_path), print)
    assert {result.status for result in results} == {"not-installed"}
    html = render_pages(results)["mlp.html"]
    assert "not-installed: not installed; get it with pip install" in html
    assert "T·D·2" in html
