"""Recover a lost scope from the nearest instruction that has one: producers, then consumers, breadth first."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from compare.hlo.dataflow.dataflow import CallContext, Value, levels
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.metadata import Frame, SourceMetadata

_Step = Callable[[Value], Iterable[Value]]
_Found = TypeVar("_Found")
_Lookup = Callable[[Instruction], _Found | None]


NEAR = 100
"""How many values are searched for a source line: beyond them it belongs to another call."""


class ScopeRecovery:
    """Recovers scopes, paths and source lines in one module.

    Searches of a program overlap, so steps are cached, and so are values without a result.

    back: a step to what a value is made of; on: one to what is made of it.
    is_own: whether a value depends on an argument of the program.  What does not (the device's number, zeros, iotas)
    is shared by all parts of the program, and belongs to none.
    """

    def __init__(self, sources: SourceMetadata, *, back: _Step, on: _Step, is_own: Callable[[Value], bool]):
        self._sources = sources
        self._is_own = is_own
        self._back = _remembered(back)
        self._on = _remembered(on)
        self._dead_ends: dict[tuple[_Step, frozenset[str], tuple[CallContext, ...]], set[Value]] = {}

    def nearest(self, value: Value, made_from: Iterable[Value], *, wanted: frozenset[str]) -> str | None:
        """The nearest scope before `value`, which is made from `made_from`, or else after it.

        Scopes that are `wanted` go before all others, however far: the contract's, for a permute.  What is in a loop
        takes none from around it: what runs once for each layer is no embedding.  (What stands before a loop may be a
        layer's, moved out of it.)
        """
        made_from, present, loops = list(made_from), self._sources.present, _loops_around(value)
        for accepted in (wanted & present, present):
            if not accepted:
                continue
            # Producers first, also where a consumer is nearer: what is summed or gathered after `layer.attention.qkv`
            # is of that part, though `layer.mlp.down` reads it next.
            scope = self._search(made_from, self._back, accepted, loops=loops) or self._search(
                self._on(value), self._on, accepted, loops=loops
            )
            if scope:
                return scope
        return None

    def stack(
        self, value: Value, made_from: Iterable[Value], *, scope: str, consumers_first: bool
    ) -> tuple[Frame, ...]:
        """The stack of the nearest instruction of the same scope: the compiler merges some away.

        Where the scope is not known, of the nearest one that has a stack.  None that is further than `NEAR` values.
        """

        def lookup(item: Instruction) -> tuple[Frame, ...] | None:
            alike = scope == "?" or self._sources.scope(item) == scope
            return self._sources.stack(item) if alike else None

        return self._nearby(value, made_from, lookup, consumers_first=consumers_first) or ()

    def path(self, value: Value, made_from: Iterable[Value], *, line: str | None, consumers_first: bool) -> str | None:
        """The `op_name` of the nearest instruction that has one, none that is further than `NEAR` values.

        Where its own line of source is known, only of one of that line: what is carried along beside it is another's.
        """

        def lookup(item: Instruction) -> str | None:
            return self._sources.path(item) if line is None or self._sources.source_line(item) == line else None

        return self._nearby(value, made_from, lookup, consumers_first=consumers_first)

    def _nearby(
        self, value: Value, made_from: Iterable[Value], lookup: _Lookup[_Found], *, consumers_first: bool
    ) -> _Found | None:
        ways = [(made_from, self._back), (self._on(value), self._on)]
        if consumers_first:
            ways.reverse()
        return next((found for begin, step in ways if (found := _first(begin, step, lookup))), None)

    def _search(
        self, begin: Iterable[Value], step: _Step, accepted: frozenset[str], *, loops: tuple[CallContext, ...]
    ) -> str | None:
        """Breadth first, inside these loops; within a level in text order."""
        dead_ends = self._dead_ends.setdefault((step, accepted, loops), set())

        def goes_on(values: Iterable[Value]) -> list[Value]:
            return [value for value in values if value not in dead_ends and _is_inside(value, loops)]

        seen: set[Value] = set()
        for level in levels(goes_on(begin), lambda value: goes_on(step(value))):
            seen.update(level)
            named = [value for value in level if (item := trace_scope(value)) and self._sources.scope(item) in accepted]
            # XLA merges equal constants and device numbers of all scopes, and leaves one of their names:
            #   place = u32[] partition-id(), metadata={op_name="jit(f)/layer.attention.qkv/neg"}
            for value in sorted(named, key=lambda value: value[1].index):
                if step is self._on or self._is_own(value):
                    return self._sources.scope(value[1])
        dead_ends |= seen
        return None


def _first(begin: Iterable[Value], step: _Step, lookup: _Lookup[_Found]) -> _Found | None:
    """The result of `lookup` for the nearest instruction; on one level for the first in text order."""
    for level in levels(begin, step, most=NEAR):
        for item in sorted({item for _, item, _ in level}, key=lambda item: item.index):
            if found := lookup(item):
                return found
    return None


def _loops_around(value: Value) -> tuple[CallContext, ...]:
    """The bodies and conditions that a value is in, outermost first."""
    return tuple(frame for frame in value[0].chain if frame.call is not None and frame.call.opcode == "while")


def _is_inside(value: Value, loops: tuple[CallContext, ...]) -> bool:
    around = _loops_around(value)
    return [frame.call for frame in around[: len(loops)]] == [frame.call for frame in loops]


def _remembered(step: _Step) -> _Step:
    known: dict[Value, tuple[Value, ...]] = {}

    def remembered(value: Value) -> tuple[Value, ...]:
        if value not in known:
            known[value] = tuple(step(value))
        return known[value]

    return remembered


def trace_scope(value: Value) -> Instruction | None:
    """The instruction whose scope counts for a value.

    A fusion of several results, or one that hands a value on, has the scope of one of them: its instructions decide.
    """
    _, item, path = value
    #   f = (f32[8], f32[8]) fusion(lost, w), kind=kLoop, calls=carries
    # The fusion is named after `n`, which it computes from w, and hands `lost` on as its first result.
    if item.opcode == "fusion" and item.callees and (path or item.callees[0].root.opcode in ("tuple", "parameter")):
        return None
    return item
