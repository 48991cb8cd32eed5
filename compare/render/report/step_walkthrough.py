"""One step in program order: at each scope what the plan requires, and what each arm moves."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compare.render.programs import Program, compared_programs
from compare.render.units import list_text
from compare.report.model.contract import ServedRow
from compare.report.model.program import CollectiveRow
from compare.report.model.report import Report
from meshes.case import Case

STEP = (
    "embed", "pipeline.shift", "norm", "layer.attention.qkv", "layer.attention.core", "layer.attention.out",
    "layer.moe.route", "layer.moe.dispatch", "layer.moe.experts", "layer.moe.combine",
    "layer.mlp.up", "layer.mlp.down", "head", "sample", "pipeline.collect",
)  # fmt: skip
"""Where a part of the model stands in a step, for those that no program shows."""

PARTS: Mapping[str, str] = {
    "embed": "token embedding",
    "layer.attention.qkv": "q, k and v projection",
    "layer.attention.core": "attention",
    "layer.attention.out": "attention output projection",
    "layer.mlp.up": "MLP gate and up projection",
    "layer.mlp.down": "MLP down projection",
    "layer.moe.route": "expert routing",
    "layer.moe.dispatch": "dispatch of tokens to experts",
    "layer.moe.experts": "experts",
    "layer.moe.combine": "combine of expert outputs",
    "pipeline.shift": "shift to the next pipeline stage",
    "pipeline.collect": "return of the sampled ids",
    "norm": "norm",
    "head": "vocabulary logits",
    "sample": "choice of the next token",
}
"""A scope in a reader's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Collectives of one place that are alike: as one line of the story."""

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
        """Cause -> bytes, the largest first."""
        found: dict[str, int] = {}
        for row in self.rows:
            for cause, amount in row.causes.items():
                found[cause] = found.get(cause, 0) + amount
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def sum_of(self, column: str) -> int:
        """Of `step_wire_bytes`, `inherent_bytes` …, over the rows where it is known."""
        return sum(getattr(row, column) or 0 for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Station:
    """One part of the model, in one step: the plan's rows, and each program's moves in its order."""

    scope: str
    words: str
    asked: tuple[ServedRow, ...]
    moves: Mapping[str, tuple[Move, ...]]
    """Arm -> its moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """Stations that follow each other and are passed equally often."""

    label: str
    stations: tuple[Station, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A phase's step; `programs` are the columns."""

    programs: tuple[Program, ...]
    chapters: tuple[Chapter, ...]
    most_bytes: int
    """Of any move: the longest bar."""


def walk_step(report: Report, phase: str) -> Story:
    """One step of a phase, arms side by side."""
    found, shown = report.phases[phase], compared_programs(report, phase)
    asked = found.inherent
    planned = sorted({row.scope for row in asked}, key=lambda scope: _place(scope))
    orders = [list(dict.fromkeys(row.scope for row in program.rows)) for program in shown]
    stations = [
        Station(
            scope=scope,
            words=PARTS.get(scope, "no scope is recorded"),
            asked=tuple(row for row in asked if row.scope == scope),
            moves={one.arm: group_moves(row for row in one.rows if row.scope == scope) for one in shown},
        )
        for scope in _merged([*orders, planned])
    ]
    every = [move for station in stations for rows in station.moves.values() for move in rows]
    return Story(
        programs=tuple(shown),
        chapters=tuple(_chapters(stations, report.case)),
        most_bytes=max(
            [move.sum_of("step_wire_bytes") for move in every] + [row.step_wire_bytes for row in asked], default=0
        ),
    )


def group_moves(rows: Iterable[CollectiveRow]) -> tuple[Move, ...]:
    """Rows that differ in nothing but their names, as one each, in the order of the first."""
    alike: dict[tuple[object, ...], list[CollectiveRow]] = {}
    for row in rows:
        key = (row.kind, row.axes, row.network, row.form, row.dtype, row.payload_bytes, row.executions_are)
        unknown = row.executions is None
        alike.setdefault((*key, row.loops, unknown), []).append(row)
    return tuple(Move(rows=tuple(found)) for found in alike.values())


def _place(scope: str) -> int:
    return STEP.index(scope) if scope in STEP else len(STEP)


def _merged(orders: Sequence[Sequence[str]]) -> list[str]:
    """One order of all words: the first as it is, each word of the others behind the one before it."""
    found: list[str] = []
    for order in orders:
        at = 0
        for word in order:
            if word in found:
                at = found.index(word) + 1
            else:
                found.insert(at, word)
                at += 1
    return found


def _chapters(stations: Sequence[Station], case: Case) -> list[Chapter]:
    found: list[tuple[str, list[Station]]] = []
    for station in stations:
        label = _label(station, case)
        if not found or found[-1][0] != label:
            found.append((label, []))
        found[-1][1].append(station)
    return [Chapter(label=label, stations=tuple(rows)) for label, rows in found]


def _label(station: Station, case: Case) -> str:
    """How often a step passes here, by the loops around what moves most."""
    every = [move for rows in station.moves.values() for move in rows]
    largest = max(every, key=lambda move: move.sum_of("step_wire_bytes"), default=None)
    loops = list(largest.first.loops) if largest else []
    if largest and not loops and len(largest.rows) > 1:
        written_out = {"layer": "In every layer, unrolled", "pipeline": "In every tick, unrolled"}
        return written_out.get(station.scope.partition(".")[0], "Several times, unrolled")
    if not largest and station.scope.startswith("layer."):
        return "In every layer"
    names = _loop_names(loops, case)
    return f"In each of {list_text(names[::-1])}".replace(" and ", ", in each of ") if names else "Once per step"


def _loop_names(loops: Sequence[int | None], case: Case) -> list[str]:
    """`5 ticks`, `16 layers`: told by their trip counts, the outermost first; one trip is no loop."""
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
