"""A lost scope is that of the nearest instruction that has one: producers first, then consumers, breadth first."""

from collections.abc import Callable, Iterable

from compare.program.instruction import Instruction
from compare.program.metadata import Sources
from compare.program.steps import Value, used_by

_Step = Callable[[Value], Iterable[Value]]


def nearest(
    value: Value, made_from: Iterable[Value], sources: Sources, *, back: _Step, wanted: frozenset[str]
) -> str | None:
    """The nearest scope before `value`, which is made from `made_from`, or else after it.

    Scopes that are `wanted` go before all others, however far.  `back` is a step to what a value is made of.
    """
    before = _search(list(made_from), back, sources, wanted)
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


def _search(level: list[Value], step: _Step, sources: Sources, wanted: frozenset[str]) -> _Found:
    """Level by level; on one level in text order."""
    found = _Found()
    wanted = wanted & sources.present
    seen = set(level)
    while level:
        for item in sorted({item for value in level for item in _tells(value)}, key=lambda item: item.index):
            scope = sources.scope(item)
            if scope is None:
                continue
            found.any = found.any or scope
            if not wanted or scope in wanted:
                found.wanted = scope
                return found
        following = dict.fromkeys(one for value in level for one in step(value) if one not in seen)
        seen.update(following)
        level = list(following)
    return found


def _tells(value: Value) -> Iterable[Instruction]:
    """The instruction whose scope counts for a value.

    A fusion of several results, or one that hands a value on, bears the scope of one of them: what is inside tells.
    """
    _, item, path = value
    if item.opcode == "fusion" and (path or item.called[0].root.opcode in ("tuple", "parameter")):
        return ()
    return (item,)
