"""One step in program order: at each scope what the plan requires, and what each arm moves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compare.render.programs import Program, compared_programs
from compare.render.units import list_text
from compare.report.grouping import group_by, largest_first, sum_by
from compare.report.headline import PLACES
from compare.report.model.contract import ServedRow
from compare.report.model.program import CollectiveRow
from compare.report.model.report import Report
from meshes.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Similar collectives of one scope, shown as one line."""

    rows: tuple[CollectiveRow, ...]

    @property
    def first(self) -> CollectiveRow:
        return self.rows[0]

    @property
    def executions(self) -> int | None:
        known = [row.executions for row in self.rows]
        return None if None in known else sum(count or 0 for count in known)

    @property
    def causes(self) -> dict[str, int]:
        """Cause -> bytes, largest first."""
        return sum_causes(self.rows)

    def sum_of(self, column: str) -> int:
        """The sum of `step_wire_bytes`, `inherent_bytes` … over the rows where it is known."""
        return sum(getattr(row, column) or 0 for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """One scope in one step: the contract rows, and each program's moves in program order."""

    scope: str
    words: str
    required: tuple[ServedRow, ...]
    moves: Mapping[str, tuple[Move, ...]]
    """Arm -> its moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """Consecutive stations that are executed equally often."""

    label: str
    stations: tuple[Station, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One step of a phase; `programs` are the columns."""

    programs: tuple[Program, ...]
    chapters: tuple[Chapter, ...]
    most_bytes: int
    """The largest bytes of any move: the longest bar."""


def walk_step(report: Report, phase: str) -> Story:
    """One step of a phase in program order, arms side by side."""
    phase_report, shown = report.phases[phase], compared_programs(report, phase)
    required = phase_report.inherent
    planned = sorted({row.scope for row in required}, key=_step_index)
    orders = [list(dict.fromkeys(row.scope for row in program.rows)) for program in shown]
    stations = [
        Station(
            scope=scope,
            words=PLACES.get(scope, "no scope is recorded"),
            required=tuple(row for row in required if row.scope == scope),
            moves={program.arm: group_moves(row for row in program.rows if row.scope == scope) for program in shown},
        )
        for scope in _merge_orders([*orders, planned])
    ]
    moves = [move for station in stations for rows in station.moves.values() for move in rows]
    return Story(
        programs=tuple(shown),
        chapters=tuple(_chapters(stations, report.case)),
        most_bytes=max(
            [move.sum_of("step_wire_bytes") for move in moves] + [row.step_wire_bytes for row in required], default=0
        ),
    )


def group_moves(rows: Iterable[CollectiveRow]) -> tuple[Move, ...]:
    """Merge rows that differ only in their names, in order of first occurrence."""
    return tuple(Move(rows=tuple(members)) for members in group_by(rows, _alike).values())


def _alike(row: CollectiveRow) -> tuple[object, ...]:
    key = (row.kind, row.axes, row.network, row.form, row.dtype, row.payload_bytes, row.executions_are)
    return (*key, row.loops, row.executions is None)


def sum_causes(rows: Iterable[CollectiveRow]) -> dict[str, int]:
    """Cause -> bytes per step, largest first."""
    return largest_first(sum_by(cause for row in rows for cause in row.causes.items()))


def _step_index(scope: str) -> int:
    return [*PLACES, scope].index(scope)


def _merge_orders(orders: Sequence[Sequence[str]]) -> list[str]:
    """One order of all scopes: the first order, with each scope of the others behind its predecessor there."""
    merged: list[str] = []
    for order in orders:
        index = 0
        for word in order:
            if word in merged:
                index = merged.index(word) + 1
            else:
                merged.insert(index, word)
                index += 1
    return merged


def _chapters(stations: Sequence[Station], case: Case) -> list[Chapter]:
    chapters: list[tuple[str, list[Station]]] = []
    for station in stations:
        label = _label(station, case)
        if not chapters or chapters[-1][0] != label:
            chapters.append((label, []))
        chapters[-1][1].append(station)
    return [Chapter(label=label, stations=tuple(rows)) for label, rows in chapters]


def _label(station: Station, case: Case) -> str:
    """How often a step executes this scope, from the loops around its largest move."""
    moves = [move for rows in station.moves.values() for move in rows]
    largest = max(moves, key=lambda move: move.sum_of("step_wire_bytes"), default=None)
    loops = list(largest.first.loops) if largest else []
    if largest and not loops and len(largest.rows) > 1:
        written_out = {"layer": "In every layer, unrolled", "pipeline": "In every tick, unrolled"}
        return written_out.get(station.scope.partition(".")[0], "Several times, unrolled")
    if not largest and station.scope.startswith("layer."):
        return "In every layer"
    names = _loop_names(loops, case)
    return f"In each of {list_text(names[::-1])}".replace(" and ", ", in each of ") if names else "Once per step"


def _loop_names(loops: Sequence[int | None], case: Case) -> list[str]:
    """`5 ticks`, `16 layers`, identified by trip count, outermost first; loops of one trip are skipped."""
    pp = case.mesh.axes.get("pp", 1)
    ticks, layers = case.microbatches + pp - 1, case.model.layers // pp
    names: list[str] = []
    for count in loops:
        if count == 1:
            continue
        if count is None:
            names.append("an unknown number of iterations")
        elif pp > 1 and count == ticks and not names:
            names.append(f"{count} ticks of the pipeline")
        elif count == layers:
            names.append(f"{count} layers")
        else:
            names.append(f"{count} iterations")
    return names
