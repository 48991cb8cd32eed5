"""The quiz as one takes it at the gallery's door: a question, an answer, the truth."""

import io
import json

import pytest

from compare.cli.teach import main
from compare.gallery.lesson_types.lesson import SHARDY
from compare.gallery.lesson_types.lesson_result import LessonResult
from compare.gallery.lessons import find_lesson
from compare.gallery.take_quiz import QUESTIONS, STEP
from compare.run import arms
from tests.compare.verdict.programs import collective

ASKED = find_lesson("matmul-contracting")[0], SHARDY
SEED = next(seed for seed in range(len(QUESTIONS)) if QUESTIONS[seed * STEP % len(QUESTIONS)] == ASKED)
RIGHT = "all-reduce@tp"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """One all-reduce comes out, whatever is asked: a compiler that need not be waited for, and may have changed."""

    def one(lesson, program) -> LessonResult:
        return LessonResult(
            lesson=lesson,
            program=program,
            status="ok",
            error="",
            source=f"@pattern()\ndef {lesson.pattern}(x):\n    return x\n",
            takes=(("", "tp"), ("tp", "")),
            gives=(("", ""),),
            versions={"libtpu": "0"},
            rows=(collective("tp4", "all-reduce", "tp", "?", 64),),
        )

    monkeypatch.setattr(
        "compare.gallery.take_quiz.build_each", lambda asked, cache, notify: [one(*each) for each in asked]
    )


@pytest.mark.slow
def test_a_right_answer_a_wrong_one_and_one_that_cannot_be_read(capsys) -> None:
    assert main(["--quiz", "--seed", str(SEED), "--answer", RIGHT]) == 0
    output = capsys.readouterr().out
    assert f"Right: {RIGHT}" in output
    assert main(["--quiz", "--seed", str(SEED), "--answer", "free"]) == 1
    output = capsys.readouterr().out
    assert f"Wrong: you said free; it is {RIGHT}" in output
    assert "The rule, matmul-contracting (law): Row-parallel" in output
    read = "Read: python -m compare.teach matmul-contracting, or docs/gallery/matmul-contracting.html"
    assert read in " ".join(output.split())
    assert main(["--quiz", "--seed", str(SEED), "--answer", "gather it all"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "'gather it all' is no answer: write N× kind@axes" in output.err


def test_an_answer_is_taken_from_the_keyboard_and_nothing_typed_is_tell_me(compiled, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"what?\n{RIGHT}\n"))
    assert main(["--quiz", "--seed", str(SEED)]) == 0
    output = capsys.readouterr().out
    assert "'what?' is no answer" in output
    assert f"Right: {RIGHT}" in output
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["--quiz", "--seed", str(SEED)]) == 0
    assert f"It is {RIGHT}" in capsys.readouterr().out


@pytest.mark.slow
def test_json_asks_without_telling_and_tells_when_it_is_answered(capsys) -> None:
    assert main(["--quiz", "--seed", str(SEED), "--json"]) == 0
    question = json.loads(capsys.readouterr().out)
    assert question["seed"] == SEED
    assert set(question) == {"seed", "program", "topology", "mesh", "arrays", "signature", "source", "status"}
    assert question["source"].startswith("def f(")
    assert main(["--quiz", "--seed", str(SEED), "--json", "--answer", "free"]) == 1
    output = json.loads(capsys.readouterr().out)
    assert output["is_right"] is False
    assert output["truth"] == {RIGHT: 1}
    assert (output["rule"]["lesson"], output["rule"]["standing"]) == ("matmul-contracting", "law")


def test_a_wrong_number_is_a_wrong_answer_and_told_as_such(compiled, capsys) -> None:
    assert main(["--quiz", "--seed", str(SEED), "--answer", f"2 {RIGHT}"]) == 1
    assert f"Wrong in number only: you said 2 × {RIGHT}; it is {RIGHT}" in " ".join(capsys.readouterr().out.split())


def test_what_is_not_what_the_lesson_says_is_told(compiled, capsys) -> None:
    """The lesson has T·F·2 bytes, this compiler 64."""
    assert main(["--quiz", "--seed", str(SEED), "--answer", RIGHT]) == 0
    assert "This is not what the lesson says" in capsys.readouterr().out


def test_a_question_that_cannot_be_compiled_says_so(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms.Arm, "missing", lambda self: f"{self.title} is not installed")
    assert main(["--quiz", "--seed", str(SEED), "--answer", RIGHT]) == 1
    assert "could not be compiled, not-installed:" in " ".join(capsys.readouterr().out.split())


def test_seed_and_answer_are_of_the_quiz(capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--answer", "free"])
    assert "--seed and --answer need --quiz" in capsys.readouterr().err
