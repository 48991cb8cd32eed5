"""Lessons as files: every file is read, whole, and what is wrong in one is a line with its name and the key."""

import re

import pytest

from compare.gallery.lesson_types.lesson import Move
from compare.gallery.lessons import FOLDER, LESSONS, LessonError, read_lesson

TEXT = """+++
title = "A sum"
standing = "law"
mesh = {tp = 4}
sizes = {T = 8, D = 1024}
takes = {x = "T D"}
gives = {y = "T D"}
alone = [{name = "y", dims = "T D", axes = ["", "tp"], partial = "tp"}]
needs = [
    {collective = "all-reduce@tp", formula = "T·D·2/tp", what = "the sums", times = 2},
]

[[but]]
programs = ["jax/gspmd"]
moves = []
why = "It is free there."
+++

First paragraph,
in two lines.

Second.

## Rule

A rule
in two lines.

## Question

Why?

## Answer

Because.
"""


def test_a_file_is_its_lesson() -> None:
    lesson = read_lesson("a-sum", TEXT)
    assert (lesson.name, lesson.pattern, lesson.standing) == ("a-sum", "a_sum", "law")
    assert lesson.story == "First paragraph,\nin two lines.\n\nSecond."
    assert (lesson.rule, lesson.border, lesson.question) == ("A rule in two lines.", "", "Why?")
    assert lesson.needs == (Move("all-reduce@tp", "T·D·2/tp", "the sums", times=2),)
    assert lesson.alone[0].axes == (None, "tp")
    assert lesson.expected("jax/gspmd") == ()
    assert lesson.expected("jax/shardy") == lesson.needs


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("+++\ntitle", "title", "a lesson has a header in TOML between +++ and +++"),
        ("mesh = {tp = 4}", "mesh = {tp = 4", "its header is no TOML"),
        ('title = "A sum"\n', "", "lacks 'title'"),
        ("sizes =", "size =", "lacks 'sizes'"),
        ("standing =", "loud = 1\nstanding =", "has 'loud'"),
        ('"law"', '"rumour"', "not 'rumour'"),
        ("## Answer\n\nBecause.\n", "", "lacks 'Answer'"),
        ("## Question", "## Questions", "lacks 'Question'"),
        ("T·D·2/tp", "T·X·2", "'X' is neither a size nor an axis"),
        ("T·D·2/tp", "T/3", "no whole number of bytes"),
        ("all-reduce@tp", "all-reduce@dp", "'dp' is neither a size nor an axis"),
        (", times = 2", ", time = 2", "a collective has 'time'"),
        ('what = "the sums", ', "", "a collective lacks 'what'"),
        ("moves = []\n", "", "but lacks 'moves'"),
        ("needs = [\n", "needs = [1,\n", "is no list of tables"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line(old: str, new: str, says: str) -> None:
    assert old in TEXT
    with pytest.raises(LessonError, match=rf"^a-sum\.md: ?.*{re.escape(says)}|^a-sum\.md {re.escape(says)}") as refused:
        read_lesson("a-sum", TEXT.replace(old, new))
    assert "\n" not in str(refused.value)


def test_every_file_is_a_lesson_of_a_chapter() -> None:
    assert {file.stem for file in FOLDER.glob("*.md")} == {lesson.name for lesson in LESSONS}
    assert len({lesson.name for lesson in LESSONS}) == len(LESSONS) >= 24
