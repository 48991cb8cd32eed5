"""The words and numbers about a lesson's programs, for the pages and the terminal."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compare.gallery.lesson_types.lesson import (
    COMPILER,
    PROGRAMS,
    SHARDY,
    STANDINGS,
    WIRE,
    Lesson,
    Move,
    count_moves,
)
from compare.gallery.lesson_types.lesson_result import LessonResult, needed_wire
from compare.gallery.render.tensors import list_tensors
from compare.hlo.collective import Collective
from compare.render.units import axes_text, bytes_text, list_text
from compare.report.grouping import group_by, sum_by

TITLES = {
    "jax/shardy": "JAX (Shardy)",
    "jax/gspmd": "JAX (GSPMD)",
    "torchxla/gspmd": "PyTorch/XLA (GSPMD)",
    "torchxla/shardy": "PyTorch/XLA (Shardy)",
}
ARMS = {"jax": "JAX", "torchxla": "PyTorch/XLA"}

FORMS = {
    "sync": "",
    "start-done": "",
    "fused-reduce-scatter": "written as an all-reduce in a fusion that keeps a device's own part",
    "async-fusion": "asynchronous, beside other work",
    "windowed-einsum": "one hop of a gather or scatter, decomposed to run beside pieces of the matmul",
}
"""What it says of a collective that it has this form (docs/definitions.md, section 1)."""

SCATTERED = (
    "How to recognize a reduce-scatter that libtpu writes as an all-reduce. The line of HLO says `all-reduce` in both "
    "cases. If it stands *inside a fusion* whose result is only the device's own part (a slice at the device's "
    "own number, within the same fusion), it counts as a **reduce-scatter**, (n−1)/n of the payload on the wire. If it "
    "stands by itself, its whole result comes out, and a slice follows *outside*, every device has been sent "
    "everything: it counts as an **all-reduce**, 2·(n−1)/n."
)
"""Said wherever one of the two is shown."""

_NOISE = re.compile(
    r", (?:metadata|frontend_attributes|sharding)=\{(?:[^{}]|\{[^{}]*\})*\}|, backend_config=.*$|\{[\d,]*:[^{}]*\}"
    r"|, (?:use_global_device_ids=true|channel_id=\d+)"
)
_LINE = 400
_NAME = re.compile(r"%[\w.-]+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Programs with the same communication, and what it is."""

    programs: tuple[str, ...]
    first: LessonResult
    moves: tuple[Move, ...]
    """The moves that the lesson states for them; empty if the compiler emits something else."""
    verdict: str
    """`needed`, `more`, `less`, `other` or `failed`."""
    words: str
    why: str

    @property
    def rows(self) -> list[tuple[int, Collective]]:
        """Its distinct collectives, each with its number."""
        groups = group_by(
            self.first.rows,
            lambda row: (row.kind, row.axes, row.dtype, row.form, row.executions, row.payload_bytes),
        )
        return [(len(rows), rows[0]) for rows in groups.values()]

    @property
    def emitted(self) -> str:
        """`4 × all-gather over tp, all-reduce over tp`: what it runs in a step."""
        return join_counts(list_counts(self.first.counts))

    @property
    def titles(self) -> str:
        """`JAX (Shardy and GSPMD) and PyTorch/XLA (GSPMD)`; `All four programs`."""
        if len(self.programs) == len(PROGRAMS):
            return "All four programs"
        arms = group_by(self.programs, lambda name: name.partition("/")[0])
        spelt = {"shardy": "Shardy", "gspmd": "GSPMD"}
        return list_text(
            [
                f"{ARMS[arm]} ({list_text([spelt[name.partition('/')[2]] for name in names])})"
                for arm, names in arms.items()
            ]
        )


@dataclass(frozen=True, slots=True)
class Sum:
    """The bytes of one collective, with the calculation."""

    move: Move
    formula: str
    numbers: str
    payload: int
    wire_formula: str
    wire: int


def list_needs(lesson: Lesson) -> list[str]:
    """The required collectives of a step, with their counts."""
    return list_counts(sum_by((move.collective, move.times) for move in lesson.needs))


def list_counts(counts: Mapping[str, int]) -> list[str]:
    """`2 × all-gather over tp` of each kind@axes."""
    words = []
    for what, times in counts.items():
        kind, _, axes = what.partition("@")
        words.append(f"{f'{times} × ' if times > 1 else ''}{kind} {axes_words(axes)}")
    return words


def join_counts(words: Sequence[str]) -> str:
    return ", ".join(words) or "no collective"


def shows_scatters(results: Sequence[LessonResult]) -> bool:
    """Whether these have an all-reduce that counts as a reduce-scatter, or is emitted instead of one."""
    return any(
        row.form == "fused-reduce-scatter"
        or (row.kind == "all-reduce" and any(move.kind == "reduce-scatter" for move in result.lesson.needs))
        for result in results
        for row in result.rows
    )


def outcomes(results: Sequence[LessonResult]) -> list[Outcome]:
    """The programs of one lesson, grouped by equal communication."""
    groups: list[list[LessonResult]] = []
    for result in results:
        for group in groups:
            if _alike(group[0], result):
                group.append(result)
                break
        else:
            groups.append([result])
    return [_outcome(group) for group in groups]


def _alike(result: LessonResult, other: LessonResult) -> bool:
    same = result.emitted == other.emitted and result.wire_bytes == other.wire_bytes
    return result.status == other.status and result.error == other.error and same


def _outcome(group: Sequence[LessonResult]) -> Outcome:
    result = group[0]
    names = tuple(each.program for each in group)
    if not result.ok:
        return Outcome(names, result, (), "failed", f"{result.status}: {result.error}", "")
    lesson, wire, needs = result.lesson, result.wire_bytes, needed_wire(result.lesson)
    moves = lesson.expected(result.program) if result.is_as_written else ()
    why = lesson.why(result.program) if result.is_as_written else _strange(result)
    if result.is_needed:
        words = "nothing, and nothing is needed" if not lesson.needs else "just what this split needs"
        return Outcome(names, result, moves, "needed", words, why)
    if wire == needs:
        return Outcome(names, result, moves, "other", "the same bytes in another form", why)
    if not needs:
        return Outcome(names, result, moves, "more", f"{bytes_text(wire)} a device, where nothing is needed", why)
    ratio = f"{wire / needs:,.2f}" if wire / needs < 100 else f"{wire / needs:,.0f}"
    verdict = "more" if wire > needs else "less"
    return Outcome(names, result, moves, verdict, f"{ratio} × the bytes that are needed", why)


def _strange(result: LessonResult) -> str:
    return "This is not what the lesson was written for: the compiler or the framework has changed." * (
        result.emitted != count_moves(result.lesson, result.lesson.needs)
    )


def sums(lesson: Lesson, moves: Sequence[Move]) -> list[Sum]:
    """For each collective its formula, with the numbers substituted."""
    return [_sum(lesson, move) for move in moves]


def _sum(lesson: Lesson, move: Move) -> Sum:
    letters = lesson.letters
    numbers = re.sub(r"[A-Za-z]\w*", lambda word: f"{letters[word[0]]:,}", move.formula)
    size = lesson.group_size(move)
    if move.kind == "collective-permute":
        senders = lesson.num_devices if move.senders is None else move.senders
        wire = f"{senders} of {lesson.num_devices} devices send it"
    else:
        wire = WIRE[move.kind].replace("n", str(size)) + " of it"
    return Sum(move, move.formula, numbers, lesson.payload(move), wire, round(lesson.wire(move)))


def signature(lesson: Lesson, result: LessonResult) -> str:
    """`x[T, D/tp], w[D/tp, F] → y[T, F]`."""
    takes, _, gives = list_tensors(lesson, result)
    return f"{', '.join(tensor.words for tensor in takes)} → {', '.join(tensor.words for tensor in gives)}"


def disagreement(results: Sequence[LessonResult]) -> str:
    """A warning if the frameworks' programs split their arrays differently, so that they cannot be compared."""
    splits = {(result.takes, result.gives) for result in results if result.source}
    return "The programs of this page split their arrays differently: it compares nothing." if len(splits) > 1 else ""


def reach(lesson: Lesson, results: Sequence[LessonResult]) -> str:
    """The standing of the lesson's rule in words; for a rule of this compiler with version and partitioners."""
    if lesson.standing != COMPILER:
        return STANDINGS[lesson.standing]
    versions = {result.versions["libtpu"] for result in results if result.ok and "libtpu" in result.versions}
    under = (
        "the two partitioners differ, see below" if partitioners_differ(results) else "under both partitioners alike"
    )
    if results and all(result.program == SHARDY for result in results):
        under = "under Shardy alone"
    return f"libtpu {list_text(sorted(versions)) or 'unknown'}, {under}; another version may differ"


def partitioners_differ(results: Sequence[LessonResult]) -> bool:
    """Whether a framework's program differs between Shardy and GSPMD."""
    by_arm = group_by((result for result in results if result.ok), lambda result: result.arm)
    return any(result.emitted != members[0].emitted for members in by_arm.values() for result in members)


def evidence(results: Sequence[LessonResult]) -> list[tuple[str, str, list[str]]]:
    """The HLO of programs with collectives, equal ones (up to names) once: title, titles of the others, lines."""
    groups = group_by(
        (result for result in results if result.rows),
        lambda result: tuple(sorted(_NAME.sub("%", shorten_hlo(row)) for row in result.rows)),
    )
    return [
        (
            TITLES[first.program],
            list_text([TITLES[result.program] for result in others]),
            [shorten_hlo(row) for row in first.rows],
        )
        for first, *others in groups.values()
    ]


def shorten_hlo(row: Collective) -> str:
    """A line of HLO without attributes that matter to the compiler only."""
    text = " ".join(_NOISE.sub("", row.text).split())
    return text if len(text) <= _LINE else text[:_LINE] + " …"


def axes_words(axes: str) -> str:
    """`over tp`; of a part of an axis `within parts of tp`."""
    if axes.endswith(":sub"):
        return f"within parts of {axes.removesuffix(':sub')}"
    return axes_text(axes)


def axes_phrase(move: Move) -> str:
    return axes_words(move.collective.partition("@")[2])


def form_phrase(row: Collective) -> str:
    """`, written as …`: the emission form of a collective, if it is not the plain one."""
    words = FORMS.get(row.form, row.form)
    return f", {words}" if words else ""


def strip_markup(words: str) -> str:
    """Prose without its markup."""
    return re.sub(r"\*\*?|`", "", words)
