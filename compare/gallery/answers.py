"""Answers of the quiz: parsing, and when one is right."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

KINDS = {
    "all-reduce": ("ar", "allreduce"),
    "all-gather": ("ag", "allgather"),
    "reduce-scatter": ("rs", "reducescatter"),
    "all-to-all": ("a2a", "alltoall"),
    "collective-permute": ("cp", "permute", "ppermute"),
}
"""XLA's kinds, and their spellings in an answer."""

FREE = ("free", "none", "nothing")
HOW = (
    'write N× kind@axes, N being how often a step runs it; without a number it is 1: "all-reduce@tp", '
    '"2× all-gather@dp, all-reduce@tp"; or "free"'
)
_ITEM = re.compile(
    r"(?:(?P<times>\d{1,6})\s*[x×*]?\s*)?(?P<kind>[A-Za-z][\w-]*)\s*@\s*(?P<axes>[\w:]+(?:,\w+(?!\w*\s*@))*)"
)
_SPELT = {name: kind for kind, others in KINDS.items() for name in (kind, *others)}


class AnswerError(ValueError):
    """Text that is not an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """kind@axes -> how often in a step."""

    counts: Mapping[str, int]

    def is_right(self, truth: Mapping[str, int]) -> bool:
        """Whether kinds, axes and counts are equal."""
        return dict(self.counts) == dict(truth)

    def is_miscounted(self, truth: Mapping[str, int]) -> bool:
        """Whether only the counts differ."""
        return set(self.counts) == set(truth) and not self.is_right(truth)

    def __str__(self) -> str:
        return format_counts(self.counts)


def read_answer(words: str, mesh: Mapping[str, int]) -> Answer:
    """Parse an answer.  Raises `AnswerError`, one line, if it is not one for this mesh."""
    if words.strip().lower() in FREE:
        return Answer({})
    counts: dict[str, int] = {}
    at = 0
    for item in _ITEM.finditer(words):
        if words[at : item.start()].strip(" ,;+\t"):
            break
        at = item.end()
        what = f"{_kind(item['kind'])}@{_axes(item['axes'], mesh)}"
        counts[what] = counts.get(what, 0) + int(item["times"] or 1)
    if words[at:].strip(" ,;+\t") or not counts:
        raise AnswerError(f"{words[:80]!r} is no answer: {HOW}")
    return Answer({what: times for what, times in counts.items() if times != 0})


def format_counts(counts: Mapping[str, int]) -> str:
    """`2 × all-gather@dp, all-reduce@tp`; `free`."""
    return ", ".join(f"{times} × {what}" if times != 1 else what for what, times in counts.items()) or "free"


def _kind(word: str) -> str:
    if word.lower() not in _SPELT:
        raise AnswerError(f"{word[:40]!r} is no kind of collective; there are {', '.join(KINDS)}")
    return _SPELT[word.lower()]


def _axes(words: str, mesh: Mapping[str, int]) -> str:
    names = words.removesuffix(":sub").split(",")
    for name in names:
        if name not in mesh:
            raise AnswerError(f"{name[:40]!r} is no axis of this mesh, which has {' and '.join(mesh)}")
    return ",".join(name for name in mesh if name in names) + ":sub" * words.endswith(":sub")
