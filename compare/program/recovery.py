"""A lost scope is that of the nearest instruction that has one: producers first, then consumers, breadth first."""

from collections.abc import Callable, Iterable

from compare.program.instruction import Instruction
from compare.program.metadata import Sources
from compare.program.steps import Value, made_of, used_by

_Step = Callable[[Value], Iterable[tuple[Instruction, Value]]]


def _back(value: Value) -> Iterable[tuple[Instruction, Value]]:
    return ((before[1], before) for before in made_of(value))


def nearest(
    value: Value, made_from: Iterable[Value], sources: Sources, *, wanted: frozenset[str]
) -> str | None:
    """The nearest scope before `value`, which is made from `made_from`, or else after it.

    Scopes that are `wanted` go before all others, however far.
    """
    producers = [(one[1], one) for one in made_from]
    before = _search(producers, _back, sources, wanted)
    if before.wanted:
        return before.wanted
    after = _search(list(used_by(value)), used_by, sources, wanted)
    return after.wanted or before.any or after.any


class _Found:
    """The first scope of the wanted ones, and the first of all."""

    __slots__ = ("any", "wanted")

    def __init__(self) -> None:
        self.any: str | None = None
        self.wanted: str | None = None


def _search(level: list[tuple[Instruction, Value]], step: _Step, sources: Sources, wanted: frozenset[str]) -> _Found:
    """Level by level; on one level in text order."""
    found = _Found()
    wanted = wanted & sources.present if wanted else wanted
    seen = {value for _, value in level}
    while level:
        for item in sorted({item for item, _ in level}, key=lambda item: item.index):
            scope = sources.scope(item)
            if scope is None:
                continue
            found.any = found.any or scope
            if not wanted or scope in wanted:
                found.wanted = scope
                return found
        following: list[tuple[Instruction, Value]] = []
        for _, value in level:
            for item, one in step(value):
                if one not in seen:
                    seen.add(one)
                    following.append((item, one))
        level = following
    return found
