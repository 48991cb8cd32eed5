"""The pass that created each collective of an optimized program, and what later passes did to it."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from compare.hlo.collective import Change, Collective
from compare.hlo.text.errors import HloError
from compare.passes.archive import FIRST, Snapshot, spans, unpack
from compare.passes.matching import COPIED, MOVED, REPLACED, Link, match
from compare.passes.snapshot import SnapshotCollective, read_snapshot

PROGRAM, PARTITIONER, UNKNOWN = "program", "partitioner", "unknown"
PARTITIONERS = frozenset({"shardy-xla", "tpu-spmd-partitioning", "xla-partitioner"})
"""libtpu's passes that partition: they turn shardings into collectives."""
CREATED, RENAMED = "created", "renamed"
NOT_TOLD_APART = "not told apart"
"""Origin of a collective that cannot be distinguished from another with a different history."""
MOST_LINES = 3
"""Of those with a name."""
_OP_NAME_LINE = re.compile(r'^(.*op_name="((?:[^"\\]|\\.)*)".*)$', re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One change in a collective's lineage."""

    at: int
    """Index of the snapshot after which it happened; -1 for the initial program."""
    span: str
    """The pass, or `from A to B` where several ran between two recorded texts."""
    what: str
    """`created`, `renamed`, or a word of `changes`."""
    detail: str = ""
    """What differs after a replacement or move: `all-reduce → reduce-scatter`, `in 2 → 1 loops`."""
    before: tuple[str, ...]
    after: str
    """The lines of HLO.  Of one that was created, those before are what bore its `op_name`: what it was made for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The lineage of one collective: its origin and its events."""

    origin: str
    events: tuple[Event, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes by later passes, in order."""
        changes = [event for event in self.events if event.what not in (CREATED, RENAMED)]
        return tuple(Change(by=event.span, what=event.what) for event in changes)


def trace_archive(archive: bytes, optimized: str) -> dict[str, Track]:
    """Name -> lineage of every collective of an optimized program.  `HloError` for a damaged archive."""
    return trace_lineage(unpack(archive), optimized)


def add_origins(rows: Sequence[Collective], lives: Mapping[str, Track]) -> list[Collective]:
    """The rows with origin and changes; `unknown` for one without a lineage."""
    return [
        replace(row, origin=life.origin, changes=life.changes)
        if (life := lives.get(row.name))
        else replace(row, origin=UNKNOWN)
        for row in rows
    ]


def trace_lineage(snapshots: Sequence[Snapshot], optimized: str) -> dict[str, Track]:
    """Name in the optimized program -> lineage of the collective.

    A text that can't be read is passed over, as if it had not been recorded.  `HloError` for that of the optimized
    program.
    """
    texts: list[tuple[Snapshot, list[SnapshotCollective]]] = []
    for item in snapshots:
        if texts and texts[-1][0].text == item.text:  # nearly half of them: the passes between changed nothing
            texts.append((item, texts[-1][1]))
            continue
        try:
            texts.append((item, read_snapshot(item.text)))
        except HloError:
            continue
    last = Snapshot(pipeline="", after="", before="", text="")
    texts.append((last, read_snapshot(optimized)))
    if len(texts) < 2:
        return {}
    names = spans([item for item, _ in texts[:-1]])
    first, snapshot = texts[0]
    tracks = {item.name: _at_first(item, first) for item in snapshot}
    for at, (span, (item, before), (_, after)) in enumerate(zip(names, texts, texts[1:], strict=False)):
        tracks = _step(_Moment(at, span, item.text), before, after, tracks)
    return tracks


@dataclass(frozen=True, slots=True)
class _Moment:
    """The transition between two texts."""

    at: int
    span: str
    text: str
    """The first of them."""

    def lines_by_op_name(self, op_names: Collection[str]) -> dict[str, tuple[str, ...]]:
        """`op_name` -> the first lines of the text that have it."""
        by_op_name: dict[str, list[str]] = {}
        for line in _OP_NAME_LINE.finditer(self.text) if op_names else ():
            if line[2] in op_names and len(lines := by_op_name.setdefault(line[2], [])) < MOST_LINES:
                lines.append(line[1].strip())
        return {name: tuple(lines) for name, lines in by_op_name.items()}


def _at_first(item: SnapshotCollective, first: Snapshot) -> Track:
    """What the framework's own program has is the program's; what a later first text has could be anybody's."""
    origin, span = (PROGRAM, PROGRAM) if not first.after else (UNKNOWN, f"from {FIRST} to {first.after}")
    event = Event(at=-1, span=span, what=CREATED, before=(), after=item.line)
    return Track(origin=origin if origin == PROGRAM else f"{UNKNOWN}: {span}", events=(event,))


def _step(
    moment: _Moment,
    before: Sequence[SnapshotCollective],
    after: Sequence[SnapshotCollective],
    tracks: Mapping[str, Track],
) -> dict[str, Track]:
    links = match(before, after)
    fresh = [item for item in after if item.name not in links.links]
    lines = moment.lines_by_op_name({item.op_name for item in fresh if item.op_name})
    tracks_after: dict[str, Track] = {}
    for item in after:
        link = links.links.get(item.name)
        if link is not None:
            tracks_after[item.name] = _continued(moment, item, link, tracks)
            continue
        event = Event(at=moment.at, span=moment.span, what=CREATED, before=lines.get(item.op_name, ()), after=item.line)
        tracks_after[item.name] = Track(origin=_origin(moment.span, disturbed=links.is_disturbed), events=(event,))
    return tracks_after


def _origin(span: str, *, disturbed: bool) -> str:
    """Of one that nothing before explains.  Where others went or changed, it might be what became of one of them."""
    if disturbed or span.startswith("from "):
        return f"{UNKNOWN}: {span}"
    return PARTITIONER if span in PARTITIONERS else span


def _continued(moment: _Moment, item: SnapshotCollective, link: Link, tracks: Mapping[str, Track]) -> Track:
    source_tracks = [tracks[source.name] for source in link.sources]
    could = {tracks[source.name].origin for source in link.among}
    origins = list(dict.fromkeys(track.origin for track in source_tracks))
    copied = link.what == COPIED and moment.span in PARTITIONERS  # which may as well have made one more of the kind
    if copied or (len(link.sources) == 1 and len(could) > 1):
        origins = [f"{UNKNOWN}: {moment.span}"]
    events = list(dict.fromkeys(event for track in source_tracks for event in track.events))
    events.sort(key=lambda event: event.at)
    if len({tracks[source.name].changes for source in link.among}) > 1 and len(link.sources) == 1:
        events.append(_event(moment, item, link, NOT_TOLD_APART))
    if what := link.what or (RENAMED if item.name != link.sources[0].name else ""):
        events.append(_event(moment, item, link, what))
    return replace(source_tracks[0], origin="+".join(origins), events=tuple(events))


def _event(moment: _Moment, item: SnapshotCollective, link: Link, what: str) -> Event:
    detail = _detail(link.sources[0], item) if what in (REPLACED, MOVED) else ""
    lines = tuple(source.line for source in link.sources)
    return Event(at=moment.at, span=moment.span, what=what, detail=detail, before=lines, after=item.line)


def _detail(old: SnapshotCollective, new: SnapshotCollective) -> str:
    """What differs between a collective and its replacement, in words."""
    differences = [f"{old.kind} → {new.kind}"] if old.kind != new.kind else []
    if old.payload_bytes != new.payload_bytes:
        differences.append(f"{old.payload_bytes:,} → {new.payload_bytes:,} bytes")
    if old.loops != new.loops:
        differences.append(f"in {old.loops} → {new.loops} loops")
    if old.opcode != new.opcode == "send":
        differences.append("sent between slices")
    if old.op_name and not new.op_name:
        differences.append("written anew, without its name")
    return ", ".join(differences)
