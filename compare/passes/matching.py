"""Match the collectives of two successive texts; a pass may have renamed, merged, split or replaced them.

Names do not last: whoever clones a loop's body renames what is in it.  What a collective is (its groups, its bytes, its
`op_name`, its channel) lasts longer.  What none of these decides is left open, not guessed.
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
    """Where a collective of the later text comes from."""

    sources: tuple[SnapshotCollective, ...]
    """The collectives of the earlier text that it replaces."""
    among: tuple[SnapshotCollective, ...]
    """The collectives that it cannot be distinguished from in the earlier text."""
    what: str
    """What the pass did to it; empty where it is unchanged."""


@dataclass(frozen=True, slots=True)
class Step:
    """The match of two successive texts."""

    links: Mapping[str, Link]
    """Name in the later text -> its link; new collectives have none."""
    lost: tuple[SnapshotCollective, ...]
    """The collectives of the earlier text without a successor."""

    @property
    def is_disturbed(self) -> bool:
        """True if any collective was removed or replaced: a new one may then be a part of it."""
        return bool(self.lost) or any(link.what in (REPLACED, SPLIT, MERGED) for link in self.links.values())


_ALIKE: tuple[_Key, ...] = (
    lambda item: (item.name, *_same(item), item.channel),
    lambda item: (*_same(item), item.channel, item.loops),
    lambda item: (*_same(item), item.channel),
    lambda item: (item.name, item.opcode, item.groups, item.op_name, item.channel),
    lambda item: (*_same(item), item.loops),
    lambda item: _same(item),
    lambda item: (item.opcode, item.groups, item.payload_bytes, item.channel) if item.channel else None,
)
"""What stays the same, the most telling first: as many before as after with all of it are the same, in their order.

A name tells less than bytes and channel do: a pass that writes the whole program anew gives names out again.
"""

_FEWER: tuple[_Key, ...] = (lambda item: (*_same(item), item.channel), lambda item: _same(item))
"""Keys for copies and merges: equal for collectives whose number changed."""

_RELATED: tuple[_Key, ...] = (
    lambda item: (item.channel, item.groups, item.op_name) if item.channel else None,
    lambda item: (item.op_name,) if item.op_name else None,
    lambda item: (item.channel, item.opcode, item.payload_bytes) if item.channel else None,
    lambda item: (item.operands, item.groups) if item.operands else None,
)
"""Keys that relate removed to new collectives that differ."""


def match(before: Sequence[SnapshotCollective], after: Sequence[SnapshotCollective]) -> Step:
    """Match the collectives of two successive texts."""
    return _Match(before, after).step()


class _Match:
    def __init__(self, before: Sequence[SnapshotCollective], after: Sequence[SnapshotCollective]):
        self.before = before
        self.left = {item.name: item for item in before}
        self.right = {item.name: item for item in after}
        self.links: dict[str, Link] = {}

    def step(self) -> Step:
        for key in _ALIKE:
            self._pair(key)
        for key in _FEWER:
            self._repeat(key)
        self._take_all()
        counts = Counter(item.channel for item in self.before)
        self._relate(lambda item: item.channel if item.channel and counts[item.channel] == 1 else None)
        for key in _RELATED:
            self._relate(key)
        self._transfers()
        for key in _FEWER:
            self._copy(key)
        return Step(self.links, tuple(self.left.values()))

    def _pair(self, key: _Key) -> None:
        """Pair collectives of one key in order, where both sides have equally many."""
        olds, news = _by(key, self.left.values()), _by(key, self.right.values())
        for value, added in news.items():
            gone = olds.get(value, [])
            if len(gone) == len(added):
                for source, item in zip(gone, added, strict=True):
                    self._link(item, (source,), among=tuple(gone), what=_change(source, item))

    def _repeat(self, key: _Key) -> None:
        """Link collectives of one key where their number changed: the first ones in order, the others as copies."""
        olds = _by(key, self.left.values())
        for value, added in _by(key, self.right.values()).items():
            gone = olds.get(value, [])
            for at, item in enumerate(added if gone else ()):
                source = gone[min(at, len(gone) - 1)]
                what = _change(source, item) if at < len(gone) else COPIED
                self._link(item, (source,), among=tuple(gone), what=what)
            for item in gone if added else ():
                self.left.pop(item.name, None)

    def _copy(self, key: _Key) -> None:
        """Link a new collective that equals an unchanged one, and has an `op_name`, as its copy."""
        if self.left:
            return  # it could as well be what became of one that went
        olds = _by(key, self.before)
        for value, added in _by(key, self.right.values()).items():
            stayed = olds.get(value, [])
            for item in added if stayed else ():
                if item.op_name:
                    self._link(item, (stayed[0],), among=tuple(stayed), what=COPIED)

    def _take_all(self) -> None:
        """Link merged and split collectives by their operands: same kind, same groups."""
        for item in list(self.right.values()):
            like = [old for old in self.left.values() if _like(old, item)]
            parts = [old for old in like if set(old.operands) < set(item.operands)]
            if len(parts) > 1 and {name for old in parts for name in old.operands} == set(item.operands):
                self._link(item, tuple(parts), among=tuple(parts), what=MERGED)
        for old in list(self.left.values()):
            like = [item for item in self.right.values() if _like(old, item)]
            parts = [item for item in like if set(item.operands) < set(old.operands)]
            if len(parts) > 1 and {name for item in parts for name in item.operands} == set(old.operands):
                for item in parts:
                    self._link(item, (old,), among=(old,), what=SPLIT)

    def _relate(self, key: _Key) -> None:
        """Link removed and new collectives of one key; of several removed ones, all or any."""
        olds = _by(key, self.left.values())
        for value, added in _by(key, self.right.values()).items():
            gone = olds.get(value, [])
            if not gone:
                continue
            for at, item in enumerate(added):
                source = gone[at] if len(gone) == len(added) else gone[0]
                what = SPLIT if len(added) > len(gone) else _change(source, item) or _anew(source, item)
                merged = (
                    len(gone) > 1 and len(added) == 1 and item.payload_bytes == sum(old.payload_bytes for old in gone)
                )
                self._link(
                    item, tuple(gone) if merged else (source,), among=tuple(gone), what=MERGED if merged else what
                )
            for item in gone:
                self.left.pop(item.name, None)

    def _transfers(self) -> None:
        """Link a transfer between slices to its collective by the name in its rendezvous."""
        names = {item.name: item for item in self.before}
        for item in [item for item in self.right.values() if item.rendezvous]:
            if source := names.get(original_name(item.rendezvous)) or names.get(item.rendezvous):
                self._link(item, (source,), among=(source,), what=REPLACED)

    def _link(
        self,
        item: SnapshotCollective,
        sources: tuple[SnapshotCollective, ...],
        *,
        among: tuple[SnapshotCollective, ...],
        what: str,
    ) -> None:
        self.links[item.name] = Link(sources=sources, among=among, what=what)
        self.right.pop(item.name, None)
        for source in sources:
            self.left.pop(source.name, None)


def _anew(old: SnapshotCollective, new: SnapshotCollective) -> str:
    """The change word of a collective that was rewritten under another name."""
    return "" if old.name == new.name else REPLACED


def _same(item: SnapshotCollective) -> tuple[Hashable, ...]:
    return (item.opcode, item.groups, item.payload_bytes, item.op_name, item.rendezvous)


def _like(old: SnapshotCollective, item: SnapshotCollective) -> bool:
    return (old.opcode, old.groups) == (item.opcode, item.groups)


def _by(key: _Key, items: Iterable[SnapshotCollective]) -> dict[Hashable, list[SnapshotCollective]]:
    groups: dict[Hashable, list[SnapshotCollective]] = {}
    for item in items:
        value = key(item)
        if value is not None:
            groups.setdefault(value, []).append(item)
    return groups


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
