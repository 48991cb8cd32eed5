"""The difference of two profiles: programs by name, operations and lines by what they are, means of one execution.

No clock is compared: a later step is the same step.  Of two values the first is of A; a difference is B − A.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compare.diff.profiles.parts import COMPUTE, COPIES, EXPOSED, IDLE, PARTS, Pair
from compare.metrics.program_times import stem_of, time_programs
from compare.profile.join.profile import read_profile
from compare.profile.xplane.reader import profile_files
from compare.report.grouping import group_by
from compare.report.model.codec import copy_fields
from compare.report.model.timing import Number
from compare.report.model.trace import PlaceTimes, ProgramTimes, TraceOperation
from compare.timeline.programs import EXECUTED, OUTSIDE, bare_names
from compare.timeline.timeline import COMMUNICATION, Timeline

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of source, an operation, or a kind of collective, in both."""

    what: str
    """Source line, or name of the operation in B (in A, where B has none)."""
    before: str
    """The same in A, where it is another: a line that moved, an operation of another number."""
    role: str
    kind: str
    axes: str
    source: str
    part: str
    executions: Pair
    payload_bytes: Pair
    time_ns: Pair
    exposed_ns: Pair
    difference_ns: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramDifference:
    """One program in both: `program` is without its number, which differs with every compilation."""

    program: str
    executions: Pair
    share: Pair
    """Of the time of all programs of its profile."""
    step_ns: Pair
    shortest_ns: Pair
    longest_ns: Pair
    """Of single executions: what varies by itself is no difference."""
    parts: Mapping[str, Pair]
    lines: tuple[Row, ...]
    """What became slower first, as in the other two."""
    operations: tuple[Row, ...]
    collectives: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilesDifference:
    """Two profiles."""

    schema: int
    names: tuple[str, ...]
    labels: tuple[str, ...]
    programs: tuple[ProgramDifference, ...]
    """The one with the most time first; then those that only one has."""
    notes: tuple[str, ...]


def diff_profiles(a: str, b: str, *, axes: Mapping[str, int]) -> ProfilesDifference:
    """`OSError` where one cannot be opened, `TimingError` where it is no profile."""
    timelines = [read_profile(profile_files(path), axes=axes) for path in (a, b)]
    return diff_timelines(timelines[0], timelines[1], names=(a, b))


def diff_timelines(a: Timeline, b: Timeline, *, names: tuple[str, str]) -> ProfilesDifference:
    sides = [_programs(a), _programs(b)]
    known = [*sides[1], *(name for name in sides[0] if name not in sides[1])]
    programs = [
        _program(
            name,
            [side.get(name) for side in sides],
            [_lengths(each, sides[at].get(name)) for at, each in enumerate((a, b))],
        )
        for name in known
    ]
    programs.sort(key=lambda program: -max(share or 0 for share in program.share))
    # Executions are compared, whatever the steps are.
    notes = [
        f"{name}: {note}"
        for name, each in zip("AB", (a, b), strict=True)
        for note in each.notes
        if not note.startswith(EXECUTED) and OUTSIDE not in note
    ]
    return ProfilesDifference(
        schema=SCHEMA, names=names, labels=(a.label, b.label), programs=tuple(programs), notes=tuple(notes)
    )


def _programs(timeline: Timeline) -> dict[str, ProgramTimes]:
    """By name without number; of several of one name the one with the most time has it."""
    programs = time_programs(timeline, most_operations=sys.maxsize, most_places=sys.maxsize)
    short = bare_names([program.program for program in programs])
    found: dict[str, ProgramTimes] = {}
    for program in programs:
        name = short[program.program].partition("(")[0]
        found[name if name not in found else program.program] = program
    return found


def _lengths(timeline: Timeline, program: ProgramTimes | None) -> tuple[Number, Number]:
    """The shortest and the longest execution."""
    if program is None:
        return None, None
    runs = timeline.executions
    lengths = runs["duration_ns"][runs["module"].astype(str).eq(program.program)]
    return float(lengths.min()), float(lengths.max())


def _program(
    name: str, sides: Sequence[ProgramTimes | None], lengths: Sequence[tuple[Number, Number]]
) -> ProgramDifference:
    lines = _match([[_of_place(row) for row in side.lines] if side else [] for side in sides], _PLACE_KEYS)
    rows = [[_of_operation(row) for row in side.operations] if side else [] for side in sides]
    operations = _match(rows, _OPERATION_KEYS)
    times = [side.per_execution if side else None for side in sides]
    parts = [_parts(side) for side in sides]
    return ProgramDifference(
        program=name,
        executions=tuple(side.executions if side else None for side in sides),
        share=tuple(side.share if side else None for side in sides),
        step_ns=tuple(each.step_ns if each else None for each in times),
        shortest_ns=tuple(shortest for shortest, _ in lengths),
        longest_ns=tuple(longest for _, longest in lengths),
        parts={part: tuple(each.get(part) for each in parts) for part in PARTS},
        lines=lines,
        operations=operations,
        collectives=_collectives(operations),
    )


def _parts(side: ProgramTimes | None) -> dict[str, Number]:
    if side is None or side.per_execution.compute_ns is None:
        return {}
    times = side.per_execution
    parts = {COMPUTE: times.compute_ns or 0, COPIES: times.copy_wait_ns or 0, EXPOSED: times.exposed_ns or 0}
    return {**parts, IDLE: max((times.step_ns or 0) - sum(parts.values()), 0)}


@dataclass(frozen=True, slots=True)
class _Side:
    """What is compared of one row of one side."""

    what: str
    role: str
    kind: str
    axes: str
    source: str
    part: str
    category: str
    executions: Number
    payload_bytes: Number
    time_ns: Number
    exposed_ns: Number


def _of_place(place: PlaceTimes) -> _Side:
    return copy_fields(place, _Side, what=place.place, source=place.place, part="", category="")


def _of_operation(operation: TraceOperation) -> _Side:
    kind = operation.category if operation.role == COMMUNICATION else ""
    return copy_fields(operation, _Side, what=operation.name, kind=kind, axes=operation.moves)


_Key = Callable[[_Side], tuple[str, ...]]


def _file(source: str) -> str:
    return source.rpartition(":")[0]


_PLACE_KEYS: tuple[_Key, ...] = (
    lambda row: (row.role, row.kind, row.axes, row.what),
    # A line that was added above moves every line below it.
    lambda row: (row.role, row.kind, row.axes, _file(row.what), str(row.executions), str(row.payload_bytes)),
)
_OPERATION_KEYS: tuple[_Key, ...] = (
    lambda row: (row.role, row.kind, row.axes, row.category, stem_of(row.what), row.source, row.part),
    lambda row: (row.role, row.kind, row.axes, row.category, stem_of(row.what), _file(row.source), row.part),
    lambda row: (row.role, row.kind, row.axes, row.category, stem_of(row.what), row.part),
)


def _match(sides: Sequence[list[_Side]], keys: Sequence[_Key]) -> tuple[Row, ...]:
    """Rows of both sides by the first key that fits, in order of time; what became slower first."""
    left, right = sides
    pairs: list[tuple[_Side | None, _Side | None]] = []
    for key in keys:
        waiting, rest = group_by(left, key), []
        for row in right:
            if alike := waiting.get(key(row)):
                pairs.append((alike.pop(0), row))
            else:
                rest.append(row)
        left, right = [row for rows in waiting.values() for row in rows], rest
    pairs += [(row, None) for row in left] + [(None, row) for row in right]
    return _slower_first(_row(*pair) for pair in pairs)


def _slower_first(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(sorted(rows, key=lambda row: -(row.difference_ns or 0)))


def _row(a: _Side | None, b: _Side | None) -> Row:
    shown = b or a
    assert shown is not None
    # What only one has took no time in the other.
    time = [each.time_ns if each else 0 for each in (a, b)]
    return copy_fields(
        shown,
        Row,
        before=a.what if a and a.what != shown.what else "",
        executions=tuple(each.executions if each else 0 for each in (a, b)),
        payload_bytes=tuple(each.payload_bytes if each else None for each in (a, b)),
        time_ns=tuple(time),
        exposed_ns=tuple(each.exposed_ns if each else 0 for each in (a, b)),
        difference_ns=None if None in time else (time[1] or 0) - (time[0] or 0),
    )


def _collectives(operations: Sequence[Row]) -> tuple[Row, ...]:
    """By kind and axes, the sums of the operations; what is exposed for longer first."""
    communications = [row for row in operations if row.role == COMMUNICATION]
    groups = group_by(communications, lambda row: (row.kind, row.axes))
    return _slower_first(map(_collective, groups.values()))


def _collective(rows: Sequence[Row]) -> Row:
    first, exposed = rows[0], _sum(rows, "exposed_ns")
    return replace(
        first,
        what=first.kind,
        before="",
        source="",
        part="",
        executions=_sum(rows, "executions"),
        payload_bytes=_sum(rows, "payload_bytes"),
        time_ns=_sum(rows, "time_ns"),
        exposed_ns=exposed,
        difference_ns=(exposed[1] or 0) - (exposed[0] or 0),
    )


def _sum(rows: Sequence[Row], name: str) -> Pair:
    pairs: list[Pair] = [getattr(row, name) for row in rows]
    return tuple(sum(pair[side] or 0 for pair in pairs) for side in (0, 1))
