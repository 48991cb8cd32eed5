"""The times of a report's programs, where it has any: what waits for communication, and how much of that is needed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compare.render.time.timeline_view import told
from compare.render.units import axes_text, time_text

Report = Mapping[str, Any]
Section = Mapping[str, Any]

VERDICTS = ("inherent", "inflated", "induced", "unknown")
NEEDLESS = ("inflated", "induced")
"""What nobody asked for."""

ABSENT = "No times: none of these programs was modelled or measured."

GROUPS = ("measured", "modelled", "measured on CPU devices")
"""What may stand in one table, in the order in which readers want it: times of CPU devices are no times of a TPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One program's `timing` section, and whose it is."""

    phase: str
    arm: str
    title: str
    cell: str
    default: bool
    """Whether it is the arm's default program, compiled: no control, and not measured."""
    platform: str | None
    """Of one that was measured, what it ran on."""
    section: Section
    rows: Sequence[Mapping[str, Any]]
    """Its collectives, as the report has them."""

    @property
    def source(self) -> str:
        return str(self.section["source"])

    @property
    def group(self) -> str:
        """Of GROUPS."""
        return GROUPS[2] if self.platform == "cpu" else self.source

    @property
    def label(self) -> str:
        """What every figure of it says."""
        return told(self.source, str(self.section["label"]))

    def time(self, name: str) -> float | None:
        """`step_ns`, `exposed_ns` …: mean over devices and steps, None where it is not known."""
        found: float | None = self.section["per_step"][name]
        return found

    def exposed(self, verdict: str) -> float | None:
        """The part of `exposed_ns` that is of one verdict."""
        found: float | None = self.section["by_verdict"].get(verdict, {}).get("exposed_ns", 0)
        return found

    @property
    def needless_ns(self) -> float | None:
        """Exposed time of what nobody needed."""
        parts = [self.exposed(verdict) for verdict in NEEDLESS]
        return None if None in parts else sum(part for part in parts if part is not None)

    @property
    def idle_ns(self) -> float:
        """Neither computing nor waiting for communication."""
        known = [self.time(name) or 0 for name in ("step_ns", "compute_ns", "exposed_ns")]
        return max(0.0, known[0] - known[1] - known[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Collectives of one program at one place, and what they expose."""

    timing: Timing
    scope: str
    kind: str
    axes: str
    exposed_ns: Mapping[str, float]
    """By verdict, as their bytes are divided."""
    communication_ns: float
    executions: int | None
    names: tuple[str, ...]
    causes: tuple[str, ...]
    """Why it is more than was asked for, the largest first."""
    source_lines: tuple[str, ...]

    @property
    def total_ns(self) -> float:
        return sum(self.exposed_ns.values())

    @property
    def needless_ns(self) -> float:
        return sum(self.exposed_ns[verdict] for verdict in NEEDLESS)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.scope, self.kind, self.axes

    @property
    def place(self) -> str:
        """`all-gather over tp in layer.attention.core`."""
        where = f" in {self.scope}" if self.scope else ""
        return f"{self.kind or 'communication'} {axes_text(self.axes)}{where}"


def timings(report: Report, phase: str) -> list[Timing]:
    """Of a phase: the default programs and controls that have times, arm by arm, then what was measured."""
    modelled, measured = [], []
    for arm, entry in report["phases"][phase]["arms"].items():
        title = report["arms"][arm]["title"]
        cells = [entry, *entry.get("controls", {}).values()]
        modelled += [_timing(phase, arm, title, one, default=one is entry) for one in cells if one.get("timing")]
        profiles = entry.get("profiles", {}).items()
        measured += [
            _timing(phase, arm, title, {"cell": cell, **one}, default=False)
            for cell, one in profiles
            if one.get("timing")
        ]
    return modelled + measured


def has_times(report: Report) -> bool:
    """Whether any program of any phase has times."""
    return any(timings(report, phase) for phase in report["phases"])


def _timing(phase: str, arm: str, title: str, entry: Mapping[str, Any], *, default: bool) -> Timing:
    return Timing(
        phase=phase, arm=arm, title=title, cell=entry["cell"], default=default, section=entry["timing"],
        platform=(entry.get("executed") or {}).get("platform"), rows=entry.get("collectives") or [],
    )  # fmt: skip


def by_group(found: Sequence[Timing]) -> Mapping[str, list[Timing]]:
    """Modelled and measured apart: they never stand in one table."""
    return {group: own for group in GROUPS if (own := [one for one in found if one.group == group])}


def labels(found: Sequence[Timing]) -> Mapping[str, list[str]]:
    """Each label, and the programs that bear it."""
    bearers: dict[str, list[str]] = {}
    for one in found:
        bearers.setdefault(one.label, []).append(f"{one.title} {one.cell}")
    return bearers


def failures(report: Report, phase: str) -> Iterator[str]:
    """A line for each program that should have times and has none, or whose profile has none."""
    for arm, entry in report["phases"][phase]["arms"].items():
        title = report["arms"][arm]["title"]
        for one in (entry, *entry.get("controls", {}).values()):
            if one.get("timing_error"):
                yield f"{title} {one['cell']} has no modelled times: {one['timing_error']}"
        for cell, one in entry.get("profiles", {}).items():
            if one["status"] == "ok" and one.get("timing_error"):
                yield f"{title} {cell} was measured, and has no times: {one['timing_error']}"
            elif one["status"] != "ok":
                yield f"{title} {cell} was not measured: {one.get('error') or 'no reason was given'}"


def sentence(one: Timing) -> str:
    """`a 61.0 ms step, 24.1 ms of it exposed communication, of which 23.0 ms is avoidable`."""
    step, exposed, needless = one.time("step_ns"), one.time("exposed_ns"), one.needless_ns
    if exposed is None:
        return f"a {time_text(step)} step; how much of it is exposed communication is unknown"
    if not one.time("communication_ns"):
        return f"a {time_text(step)} step, without communication"
    if not exposed:
        return f"a {time_text(step)} step, without exposed communication"
    words = f"a {time_text(step)} step, {time_text(exposed)} of it exposed communication, of which"
    if needless is None:
        return f"{words} the avoidable part is unknown"
    return f"{words} {time_text(needless) if needless else 'nothing'} is avoidable"


def waits(one: Timing) -> list[Wait]:
    """Where a program waits, one for each scope, kind and axes, the longest first."""
    places: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in one.section["collectives"]:
        places.setdefault((row["scope"], row["kind"], row["axes"]), []).append(row)
    found = [_wait(one, key, rows) for key, rows in places.items()]
    return sorted((wait for wait in found if wait.total_ns), key=lambda wait: -wait.total_ns)


def _wait(one: Timing, key: tuple[str, str, str], rows: Sequence[Mapping[str, Any]]) -> Wait:
    known = {row["name"]: row for row in one.rows}
    own = [known[row["collective"]] for row in rows if row["collective"] in known]
    exposed, causes = dict.fromkeys(VERDICTS, 0.0), dict[str, int]()
    for row in rows:
        for verdict, part in _parts(known.get(row["collective"])).items():
            exposed[verdict] += part * (row["exposed_ns"] or 0)
    for row in own:
        for cause, amount in row["causes"].items():
            causes[cause] = causes.get(cause, 0) + amount
    counts = [row["executions"] for row in rows]
    scope, kind, axes = key
    return Wait(
        timing=one, scope=scope, kind=kind, axes=axes, exposed_ns=exposed,
        communication_ns=sum(row["communication_ns"] or 0 for row in rows),
        executions=None if None in counts else round(sum(counts)), names=tuple(row["collective"] for row in rows),
        causes=tuple(sorted(causes, key=lambda cause: -causes[cause])),
        source_lines=tuple(dict.fromkeys(row["source_line"] for row in own if row["source_line"])),
    )  # fmt: skip


def _parts(row: Mapping[str, Any] | None) -> Mapping[str, float]:
    """How a collective's bytes, and so its time, are divided by verdict."""
    amounts = {verdict: row[f"{verdict}_bytes"] for verdict in VERDICTS[:-1]} if row else {}
    if not amounts or None in amounts.values() or not sum(amounts.values()):
        return {"unknown": 1.0}
    return {verdict: amount / sum(amounts.values()) for verdict, amount in amounts.items()}
