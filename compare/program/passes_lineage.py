"""Who put each collective of an optimized program there, and what later passes did to it: `definitions.md` section 1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compare.program.errors import HloError
from compare.program.passes import FIRST, Snapshot, spans
from compare.program.passes_match import Link, match
from compare.program.passes_read import Seen, seen
from compare.program.records import Change

PROGRAM, PARTITIONER, UNKNOWN = "program", "partitioner", "unknown"
PARTITIONERS = frozenset({"shardy-xla", "tpu-spmd-partitioning", "xla-partitioner"})
"""libtpu's passes that turn a program of shardings into one of collectives."""
CREATED, RENAMED = "created", "renamed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One moment in a collective's life."""

    at: int
    """The snapshot after which it happened; -1: it was there from the beginning."""
    span: str
    """The pass, or `from A to B` where several ran between two recorded texts."""
    what: str
    """`created`, `renamed`, or what `changes` says."""
    before: tuple[str, ...]
    after: str
    """The lines of HLO."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """The life of one collective."""

    origin: str
    events: tuple[Event, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        """What later passes did to it, in order."""
        told = [one for one in self.events if one.what not in (CREATED, RENAMED)]
        return tuple(Change(by=one.span, what=one.what) for one in told)


def lineage(snapshots: Sequence[Snapshot], optimized: str) -> dict[str, Track]:
    """The life of every collective of the optimized program, by its name there.

    A text that can't be read is passed over, as if it had not been recorded.  `HloError` for that of the optimized
    program.
    """
    texts: list[tuple[Snapshot, list[Seen]]] = []
    for one in snapshots:
        try:
            texts.append((one, seen(one.text)))
        except HloError:
            continue
    last = Snapshot(pipeline="", after="", before="", text="")
    texts.append((last, seen(optimized)))
    if len(texts) < 2:
        return {}
    names = spans([one for one, _ in texts[:-1]])
    first, begun = texts[0]
    tracks = {one.name: _at_first(one, first) for one in begun}
    for at, (span, (_, before), (_, after)) in enumerate(zip(names, texts, texts[1:], strict=False)):
        tracks = _step(at, span, before, after, tracks)
    return tracks


def _at_first(one: Seen, first: Snapshot) -> Track:
    """What the framework's own program has is the program's; what a later first text has could be anybody's."""
    origin, span = (PROGRAM, PROGRAM) if not first.after else (UNKNOWN, f"from {FIRST} to {first.after}")
    event = Event(at=-1, span=span, what=CREATED, before=(), after=one.line)
    return Track(origin=origin if origin == PROGRAM else f"{UNKNOWN}: {span}", events=(event,))


def _step(
    at: int, span: str, before: Sequence[Seen], after: Sequence[Seen], tracks: Mapping[str, Track]
) -> dict[str, Track]:
    found = match(before, after)
    made: dict[str, Track] = {}
    for one in after:
        link = found.links.get(one.name)
        if link is not None:
            made[one.name] = _continued(at, span, one, link, tracks)
            continue
        event = Event(at=at, span=span, what=CREATED, before=tuple(old.line for old in found.lost), after=one.line)
        made[one.name] = Track(origin=_origin(span, anything_lost=bool(found.lost)), events=(event,))
    return made


def _origin(span: str, *, anything_lost: bool) -> str:
    """Of one that nothing before explains.  Where others went at the same time, it might be one of them."""
    if anything_lost or span.startswith("from "):
        return f"{UNKNOWN}: {span}"
    return PARTITIONER if span in PARTITIONERS else span


def _continued(at: int, span: str, one: Seen, link: Link, tracks: Mapping[str, Track]) -> Track:
    own = [tracks[source.name] for source in link.sources]
    could = {tracks[source.name].origin for source in link.among}
    origins = list(dict.fromkeys(track.origin for track in own))
    if len(link.sources) == 1 and len(could) > 1:
        origins = [f"{UNKNOWN}: {span}"]
    events = list(dict.fromkeys(event for track in own for event in track.events))
    events.sort(key=lambda event: event.at)
    what = link.what or (RENAMED if one.name != link.sources[0].name else "")
    if what:
        lines = tuple(source.line for source in link.sources)
        events.append(Event(at=at, span=span, what=what, before=lines, after=one.line))
    return replace(own[0], origin="+".join(origins), events=tuple(events))
