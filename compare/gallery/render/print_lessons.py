"""The gallery in a terminal: the list of lessons, or one lesson with its lines, its bytes and its question."""

from collections.abc import Sequence

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from compare.gallery.lesson_types.lesson import Lesson, Move
from compare.gallery.lesson_types.lesson_result import LessonResult, needed_wire
from compare.gallery.lessons import CHAPTERS
from compare.gallery.render.words import (
    ARMS,
    SCATTERED,
    TITLES,
    Outcome,
    axes_phrase,
    axes_words,
    disagreement,
    form_phrase,
    outcomes,
    reach,
    shows_scatters,
    signature,
    strip_markup,
    sums,
)
from compare.render.terminal import STYLES, console, text_width, wrap_prose
from compare.render.units import bytes_text
from compare.report.grouping import group_by
from meshes.process.one_line import plain as harmless

VERDICTS = {"needed": "inherent", "more": "induced", "less": "inflated", "other": "inflated", "failed": "induced"}


def print_names() -> None:
    """Every lesson, by chapter: its name and its title; nothing is compiled."""
    out = console()
    for number, chapter in enumerate(CHAPTERS, 1):
        out.print(Text(f"{number}. {chapter.title}", style="bold"))
        for lesson in chapter.lessons:
            out.print(Text(f"   {lesson.name:<22} {lesson.title}"))


def print_gallery(results: Sequence[LessonResult]) -> None:
    """Print a line for each lesson: what it needs, and which programs emit something else."""
    out = console()
    by_name = group_by(results, lambda result: result.lesson.name)
    for number, chapter in enumerate(CHAPTERS, 1):
        listed = [lesson for lesson in chapter.lessons if lesson.name in by_name]
        if listed:
            out.print(Text(f"\n{number}. {chapter.title}", style="bold"))
        for lesson in listed:
            out.print(Text(f"  {lesson.name:<22} {_kinds(lesson)}"))
            for outcome in outcomes(by_name[lesson.name]):
                if outcome.verdict != "needed":
                    style = STYLES[VERDICTS[outcome.verdict]]
                    line = f"  {'':<22} {outcome.titles}: {harmless(outcome.words)}"
                    out.print(Text(line, style=style), soft_wrap=True)


def print_lesson(results: Sequence[LessonResult], *, before: str, after: str) -> None:
    """Print one lesson, with the content of its page."""
    out, lesson = console(), results[0].lesson
    out.print(Text(lesson.title, style="bold"))
    shown = next((result for result in results if result.source), None)
    if shown:
        out.print(Text(signature(lesson, shown), style="cyan"))
    out.print(Text(", ".join(f"{name} = {size:,}" for name, size in lesson.letters.items()), style="dim"))
    for part in lesson.story.strip().split("\n\n"):
        _prose(out, part, before="\n")
    _prose(out, f"The rule: {lesson.rule}", before="\n", style="bold")
    _prose(out, f"{lesson.standing.capitalize()}: {reach(lesson, results)}.", before="")
    if lesson.border:
        _prose(out, f"The border: {lesson.border}", before="\n")
    for arm, title in ARMS.items():
        _source(out, title, next((result.source for result in results if result.arm == arm and result.source), ""))
    for name, why in lesson.absent.items():
        _prose(out, f"{(ARMS | TITLES)[name]}: {why}", before="\n")
    out.print(Text("\nWhat this split needs", style="bold"))
    _moves(out, lesson, lesson.needs)
    out.print(Text("\nWhat the compiled programs move", style="bold"))
    if line := disagreement(results):
        out.print(Text(line, style="red"))
    for outcome in outcomes(results):
        _outcome(out, lesson, outcome)
    if shows_scatters(results):
        _prose(out, SCATTERED, before="\n")
    _prose(out, f"A question: {lesson.question}", before="\n", style="bold")
    _prose(out, f"The answer: {lesson.answer}", before="\n" * 2)
    around = [f"before: {before}" if before else "", f"next: {after}" if after else ""]
    out.print(Text("\n" + "   ".join(filter(None, around)), style="dim"))


def _kinds(lesson: Lesson) -> str:
    words = [f"{move.kind} {axes_phrase(move)}" for move in lesson.needs]
    return ", ".join(dict.fromkeys(words)) or "free"


def _prose(out: Console, words: str, *, before: str = "", style: str = "") -> None:
    out.print(Text(before), wrap_prose(strip_markup(words), width=text_width(out), style=style), sep="")


def _source(out: Console, title: str, source: str) -> None:
    if source:
        out.print(Text(f"\n{title}", style="bold"))
        out.print(Syntax(source.rstrip(), "python", background_color="default", word_wrap=True))


def _moves(out: Console, lesson: Lesson, moves: Sequence[Move]) -> None:
    for line in sums(lesson, moves):
        times = f"{line.move.times} × " if line.move.times > 1 else ""
        out.print(Text(f"  {times}{line.move.kind} {axes_phrase(line.move)}: {line.move.what}"))
        out.print(Text(f"    payload {line.formula} = {line.numbers} = {line.payload:,} B", style="dim"))
        out.print(Text(f"    on the wire {line.wire_formula} = {line.wire:,} B a device", style="dim"))
    if not moves:
        out.print(Text("  nothing: each device has all that it needs for its part"))


def _outcome(out: Console, lesson: Lesson, outcome: Outcome) -> None:
    out.print(Text(f"  {outcome.titles}: {harmless(outcome.words)}", style=STYLES[VERDICTS[outcome.verdict]]))
    for count, row in outcome.rows:
        runs = 1 if row.executions is None else row.executions * count
        times = "? × " if row.executions is None else f"{runs} × " if runs != 1 else ""
        what = f"{row.payload_bytes:,} B of {harmless(row.dtype)}{form_phrase(row)}"
        line = f"{times}{row.kind} {axes_words(row.axes)}: {what}"
        out.print(wrap_prose(line, width=text_width(out), indent=" " * 4, hang=" " * 6))
    if outcome.first.ok:
        wire, needs = bytes_text(outcome.first.wire_bytes), bytes_text(needed_wire(lesson))
        out.print(Text(f"    on the wire {wire} a device; needed {needs}", style="dim"))
    if outcome.why:
        _prose(out, f"Why: {outcome.why}")
