"""The result of a lesson's program, compared with what its sharding needs."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from compare.gallery.lesson_types.lesson import Emitted, Lesson, Move, count_moves
from compare.hlo.collective import Collective
from compare.report.grouping import sum_by

_COLUMNS = ("kind", "axes", "dtype", "form", "executions", "executions_are")
_BYTES = ("payload_bytes", "wire_bytes", "step_wire_bytes")
"""What JSON says of a collective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonResult:
    """One program of a lesson."""

    lesson: Lesson
    program: str
    """Arm and partitioner: `jax/shardy`."""
    status: str
    """`ok`, or why there are no rows: `failed refused crashed timeout not-installed`."""
    error: str
    source: str
    """The lines that were compiled."""
    takes: tuple[tuple[str | None, ...], ...]
    """For each array that it takes, the axis that splits each dim."""
    gives: tuple[tuple[str | None, ...], ...]
    versions: dict[str, str]
    rows: tuple[Collective, ...] = ()
    compiled: Path | None = field(default=None, compare=False)
    """Its HLO, for as long as the cache that it was built with is kept."""

    @property
    def arm(self) -> str:
        return self.program.partition("/")[0]

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def emitted(self) -> Emitted:
        """How often the busiest device runs each collective; unknown executions count once, and are shown as such."""
        counts: Emitted = Counter()
        for row in self.rows:
            counts[f"{row.kind}@{row.axes}", row.payload_bytes] += 1 if row.executions is None else row.executions
        return counts

    @property
    def counts(self) -> dict[str, int]:
        """kind@axes -> executions a step."""
        return sum_by((what, times) for (what, _), times in self.emitted.items())

    @property
    def is_known(self) -> bool:
        return all(row.executions_are == "exact" for row in self.rows)

    @property
    def wire_bytes(self) -> int:
        """Bytes of one step, mean over devices; rows with unknown executions do not count."""
        return sum(row.step_wire_bytes or 0 for row in self.rows)

    @property
    def is_needed(self) -> bool:
        """Whether it has exactly what the sharding needs."""
        return self.emitted == count_moves(self.lesson, self.lesson.needs)

    @property
    def is_as_written(self) -> bool:
        """Whether it has exactly what the lesson states for this program."""
        return self.emitted == count_moves(self.lesson, self.lesson.expected(self.program))

    def public(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "pattern": self.lesson.name,
            "program": self.program,
            "status": self.status,
            "error": self.error,
            "rule": self.lesson.rule,
            "standing": self.lesson.standing,
            "border": self.lesson.border,
            "mesh": dict(self.lesson.mesh),
            "takes": dict(zip(self.lesson.takes, self.takes, strict=False)),
            "gives": dict(zip(self.lesson.gives, self.gives, strict=False)),
            "needed_wire_bytes": needed_wire(self.lesson),
            "wire_bytes": self.wire_bytes if self.ok else None,
            "is_needed": self.is_needed if self.ok else None,
            "is_as_written": self.is_as_written if self.ok else None,
            "collectives": [{name: getattr(row, name) for name in (*_COLUMNS, *_BYTES)} for row in self.rows],
            "source": self.source,
            "versions": self.versions,
        }


def needed_wire(lesson: Lesson, moves: tuple[Move, ...] | None = None) -> int:
    """Bytes that a device sends for these moves, mean over devices; by default for what the sharding needs."""
    return round(sum(lesson.wire(move) * move.times for move in (lesson.needs if moves is None else moves)))
