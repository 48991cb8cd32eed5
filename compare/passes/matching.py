"""Which collective of one text became which of the next, where a pass may have renamed, merged, split or replaced them.

Names do not last: whoever clones a loop's body renames what is in it.  What a collective is (its groups, its bytes, its
`op_name`, its channel) lasts longer.  What nothing tells is left open, never guessed.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from compare.passes.snapshot import SnapshotCollective, original_name

MERGED, SPLIT, REPLACED, MOVED, COPIED = "merged", "split", "replaced", "moved", "copied"
MADE_ASYNC, MADE_SYNC = "made async", "made sync"

_Key = Callable[[SnapshotCollective], Hashable | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a collective was in the text before."""

    sources: tuple[SnapshotCollective, ...]
    """All that went into it; of one that stands for one, that one."""
    among: tuple[SnapshotCollective, ...]
    """Those that it could have been as well: they are alike in all that is known of them."""
    what: str
    """What happened to it; empty where it stayed what it was."""


@dataclass(frozen=True, slots=True)
class Step:
    """One text held against the next."""

    links: Mapping[str, Link]
    """By the name in the next text; without those that nothing of the text before explains."""
    lost: tuple[SnapshotCollective, ...]
    """Those of the text before that nothing in the next one comes from."""

    @property
    def is_disturbed(self) -> bool:
        """Whether any went or became something else: what came as well might be a part of that."""
        return bool(self.lost) or any(link.what in (REPLACED, SPLIT, MERGED) for link in self.links.values())


_ALIKE: tuple[_Key, ...] = (
    lambda one: (one.name, *_same(one), one.channel),
    lambda one: (*_same(one), one.channel, one.loops),
    lambda one: (*_same(one), one.channel),
    lambda one: (one.name, one.opcode, one.groups, one.op_name, one.channel),
    lambda one: (*_same(one), one.loops),
    lambda one: _same(one),
    lambda one: (one.opcode, one.groups, one.payload_bytes, one.channel) if one.channel else None,
)
"""What stays the same, the most telling first: as many before as after with all of it are the same, in their order.

A name tells less than bytes and channel do: a pass that writes the whole program anew gives names out again.
"""

_FEWER: tuple[_Key, ...] = (lambda one: (*_same(one), one.channel), lambda one: _same(one))
"""What those have in common that more or fewer came from."""

_RELATED: tuple[_Key, ...] = (
    lambda one: (one.channel, one.groups, one.op_name) if one.channel else None,
    lambda one: (one.op_name,) if one.op_name else None,
    lambda one: (one.channel, one.opcode, one.payload_bytes) if one.channel else None,
    lambda one: (one.operands, one.groups) if one.operands else None,
)
"""What ties those that went to those that came, where they are no longer alike."""


def match(before: Sequence[SnapshotCollective], after: Sequence[SnapshotCollective]) -> Step:
    """Hold two texts against each other."""
    return _Match(before, after).step()


class _Match:
    def __init__(self, before: Sequence[SnapshotCollective], after: Sequence[SnapshotCollective]):
        self.before = before
        self.left = {one.name: one for one in before}
        self.right = {one.name: one for one in after}
        self.links: dict[str, Link] = {}

    def step(self) -> Step:
        for key in _ALIKE:
            self._pair(key)
        for key in _FEWER:
            self._repeat(key)
        self._take_all()
        counts = Counter(one.channel for one in self.before)
        self._relate(lambda one: one.channel if one.channel and counts[one.channel] == 1 else None)
        for key in _RELATED:
            self._relate(key)
        self._transfers()
        for key in _FEWER:
            self._copy(key)
        return Step(self.links, tuple(self.left.values()))

    def _pair(self, key: _Key) -> None:
        """As many with one key on both sides: in their order."""
        olds, news = _by(key, self.left.values()), _by(key, self.right.values())
        for value, made in news.items():
            gone = olds.get(value, [])
            if len(gone) == len(made):
                for source, one in zip(gone, made, strict=True):
                    self._link(one, (source,), among=tuple(gone), what=_change(source, one))

    def _repeat(self, key: _Key) -> None:
        """More or fewer than went, with one key: the first are those that went, in their order, the others copies."""
        olds = _by(key, self.left.values())
        for value, made in _by(key, self.right.values()).items():
            gone = olds.get(value, [])
            for at, one in enumerate(made if gone else ()):
                source = gone[min(at, len(gone) - 1)]
                what = _change(source, one) if at < len(gone) else COPIED
                self._link(one, (source,), among=tuple(gone), what=what)
            for one in gone if made else ():
                self.left.pop(one.name, None)

    def _copy(self, key: _Key) -> None:
        """Those that came in addition, alike to one that stayed: a copy of it, where it has a name to tell it by."""
        if self.left:
            return  # it could as well be what became of one that went
        olds = _by(key, self.before)
        for value, made in _by(key, self.right.values()).items():
            stayed = olds.get(value, [])
            for one in made if stayed else ():
                if one.op_name:
                    self._link(one, (stayed[0],), among=tuple(stayed), what=COPIED)

    def _take_all(self) -> None:
        """Several that one took the operands of, and one whose operands several took: same kind, same groups."""
        for one in list(self.right.values()):
            like = [old for old in self.left.values() if _like(old, one)]
            parts = [old for old in like if set(old.operands) < set(one.operands)]
            if len(parts) > 1 and {name for old in parts for name in old.operands} == set(one.operands):
                self._link(one, tuple(parts), among=tuple(parts), what=MERGED)
        for old in list(self.left.values()):
            like = [one for one in self.right.values() if _like(old, one)]
            parts = [one for one in like if set(one.operands) < set(old.operands)]
            if len(parts) > 1 and {name for one in parts for name in one.operands} == set(old.operands):
                for one in parts:
                    self._link(one, (old,), among=(old,), what=SPLIT)

    def _relate(self, key: _Key) -> None:
        """One that went and all that came with its key; of several that went, all of them, or any."""
        olds = _by(key, self.left.values())
        for value, made in _by(key, self.right.values()).items():
            gone = olds.get(value, [])
            if not gone:
                continue
            for at, one in enumerate(made):
                source = gone[at] if len(gone) == len(made) else gone[0]
                what = SPLIT if len(made) > len(gone) else _change(source, one) or _anew(source, one)
                merged = (
                    len(gone) > 1 and len(made) == 1 and one.payload_bytes == sum(old.payload_bytes for old in gone)
                )
                self._link(
                    one, tuple(gone) if merged else (source,), among=tuple(gone), what=MERGED if merged else what
                )
            for one in gone:
                self.left.pop(one.name, None)

    def _transfers(self) -> None:
        """A transfer between slices bears the name of the collective that it was, in its rendezvous."""
        names = {one.name: one for one in self.before}
        for one in [one for one in self.right.values() if one.rendezvous]:
            if source := names.get(original_name(one.rendezvous)) or names.get(one.rendezvous):
                self._link(one, (source,), among=(source,), what=REPLACED)

    def _link(
        self,
        one: SnapshotCollective,
        sources: tuple[SnapshotCollective, ...],
        *,
        among: tuple[SnapshotCollective, ...],
        what: str,
    ) -> None:
        self.links[one.name] = Link(sources=sources, among=among, what=what)
        self.right.pop(one.name, None)
        for source in sources:
            self.left.pop(source.name, None)


def _anew(old: SnapshotCollective, new: SnapshotCollective) -> str:
    """One of another name, and not alike in all, was written anew."""
    return "" if old.name == new.name else REPLACED


def _same(one: SnapshotCollective) -> tuple[Hashable, ...]:
    return (one.opcode, one.groups, one.payload_bytes, one.op_name, one.rendezvous)


def _like(old: SnapshotCollective, one: SnapshotCollective) -> bool:
    return (old.opcode, old.groups) == (one.opcode, one.groups)


def _by(key: _Key, items: Iterable[SnapshotCollective]) -> dict[Hashable, list[SnapshotCollective]]:
    found: dict[Hashable, list[SnapshotCollective]] = {}
    for one in items:
        value = key(one)
        if value is not None:
            found.setdefault(value, []).append(one)
    return found


def _change(old: SnapshotCollective, new: SnapshotCollective) -> str:
    """What became of one that is still one: the first that holds.

    Where the program of all slices becomes that of one, its groups are written anew and stay what they were.
    """
    regrouped = old.groups != new.groups and old.num_devices == new.num_devices
    if old.kind != new.kind or old.payload_bytes != new.payload_bytes or regrouped:
        return REPLACED
    if old.is_async != new.is_async:
        return MADE_ASYNC if new.is_async else MADE_SYNC
    return MOVED if old.loops != new.loops else ""
