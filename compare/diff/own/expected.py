"""Compare the collectives that a program emits with the expected ones, for tests of a user's model."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compare.contract.row import JudgeError
from compare.hlo.collective import COLLECTIVE_KINDS, Collective

COUNTS = ("instructions", "executions")
"""What is counted: lines of the program, or how often the busiest device runs them in a step."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """One kind over one set of axes that is there more or less often than it should be; unknown: in a loop of unknown
    length."""

    word: str
    expected: int
    found: int | None


def count_collectives(rows: Iterable[Collective], *, count: str = COUNTS[0]) -> dict[str, int | None]:
    """`all-reduce@tp` -> how many there are, in program order of the first; None where executions are unknown."""
    if count not in COUNTS:
        raise JudgeError(f"cannot count {count!r}; choose from {', '.join(COUNTS)}")
    counts: dict[str, int | None] = {}
    for row in rows:
        word = f"{row.kind}@{row.axes}"
        runs = 1 if count == COUNTS[0] else row.executions
        before = counts.get(word, 0)
        counts[word] = None if runs is None or before is None else before + runs
    return counts


def find_surprises(
    rows: Sequence[Collective], expected: Mapping[str, int], *, axes: Mapping[str, int], count: str = COUNTS[0]
) -> list[Surprise]:
    """The differences between the collectives that a program emits and the expected ones.

    `expected`: `{"all-reduce@tp": 2}`; collectives not named are not expected.  Raises `JudgeError` for an unknown kind
    or for axes that the program does not have.
    """
    wanted = Counter[str]()
    for word, number in expected.items():
        wanted[_normal(word, axes)] += number
    counts = count_collectives(rows, count=count)
    words = dict.fromkeys([*wanted, *counts])
    return [Surprise(word, wanted[word], counts.get(word, 0)) for word in words if wanted[word] != counts.get(word, 0)]


def _normal(word: str, axes: Mapping[str, int]) -> str:
    """The same word with its axes outermost first."""
    kind, at, names = word.partition("@")
    if kind not in COLLECTIVE_KINDS or not at:
        raise JudgeError(
            f"cannot read {word!r}; write kind@axes, like all-reduce@tp; kinds are {', '.join(COLLECTIVE_KINDS)}"
        )
    if names == "?":
        return word
    given = [name.strip() for name in names.split(",")]
    unknown = [name for name in given if name.removesuffix(":sub") not in axes]
    if unknown or len(set(given)) != len(given):
        known = ", ".join(axes) or "none; name them with axes={'data': 2, 'tensor': 4}"
        raise JudgeError(f"{word!r} names no axes of the program; there are {known}")
    order = list(axes)
    return f"{kind}@{','.join(sorted(given, key=lambda name: order.index(name.removesuffix(':sub'))))}"
