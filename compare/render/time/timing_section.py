"""The times of a report's programs: exposed communication, and how much of it is avoidable."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.render.blocks import Cell, Column, Row, Table
from compare.render.time.timeline_view import figure_label
from compare.render.units import axes_text, time_text
from compare.report.grouping import group_by, largest_first, sum_by
from compare.report.headline import title_of
from compare.report.model.codec import copy_fields
from compare.report.model.energy import StepEnergy
from compare.report.model.program import CollectiveRow, ProgramReport
from compare.report.model.report import Report
from compare.report.model.timing import CollectiveTimes, ScopeWork, StepTimes, Timing

VERDICTS = ("inherent", "inflated", "induced", "unknown")
NEEDLESS = ("inflated", "induced")
"""Verdicts of bytes that the plan does not require."""

ABSENT = "No times: none of these programs was modelled or measured."

GROUPS = ("measured", "modelled", "measured on CPU devices")
"""Programs that may share a table, in display order; CPU times are not TPU times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTiming:
    """One program's `timing` section, with its identity."""

    phase: str
    arm: str
    title: str
    cell: str
    default: bool
    """Whether it is the arm's default compiled program."""
    platform: str | None
    """Of a measured program: `cpu` or `tpu`."""
    section: Timing
    rows: tuple[CollectiveRow, ...]
    """Its collectives."""
    energy: StepEnergy | None = None
    """Of a modelled step."""

    @property
    def name(self) -> str:
        """In figures."""
        return f"{self.title}  {self.cell}"

    @property
    def source(self) -> str:
        return self.section.source

    @property
    def group(self) -> str:
        """One of GROUPS."""
        return GROUPS[2] if self.platform == "cpu" else self.source

    @property
    def label(self) -> str:
        """Its source in figures."""
        return figure_label(self.source, self.section.label)

    @property
    def times(self) -> StepTimes:
        """`step_ns`, `exposed_ns` …: means over devices and steps, `None` where unknown."""
        return self.section.per_step

    def exposed(self, verdict: str) -> float | None:
        """The part of `exposed_ns` with this verdict."""
        times = self.section.by_verdict.get(verdict)
        return times.exposed_ns if times else 0

    @property
    def avoidable_ns(self) -> float | None:
        """Exposed time of inflated and induced bytes, in ns."""
        parts = [self.exposed(verdict) for verdict in NEEDLESS]
        return None if None in parts else sum(part for part in parts if part is not None)

    @property
    def over_floor(self) -> float | None:
        """Of a modelled program: compute ÷ the floor of its plan."""
        floor_ns = self.section.work.floor_ns if self.section.work else None
        if self.source != GROUPS[1] or not floor_ns or self.times.compute_ns is None:
            return None
        return self.times.compute_ns / floor_ns

    @property
    def bytes_over_floor(self) -> float | None:
        """The bytes that it moves through memory ÷ those of the floor."""
        work = self.section.work
        if work is None or not work.floor_bytes or work.memory_bytes is None:
            return None
        return work.memory_bytes / work.floor_bytes

    @property
    def idle_ns(self) -> float:
        """Time neither in compute, nor in exposed communication, nor in waits for local copies."""
        times = self.times
        parts = (times.compute_ns, times.exposed_ns, times.copy_wait_ns)
        return max(0.0, (times.step_ns or 0) - sum(part or 0 for part in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The exposed time of one program's collectives of one scope, kind and axes."""

    timing: ProgramTiming
    scope: str
    kind: str
    axes: str
    exposed_ns: Mapping[str, float]
    """By verdict, in proportion to bytes."""
    communication_ns: float
    executions: int | None
    names: tuple[str, ...]
    causes: tuple[str, ...]
    """Causes of bytes beyond the plan, largest first."""
    source_lines: tuple[str, ...]

    @property
    def total_ns(self) -> float:
        return sum(self.exposed_ns.values())

    @property
    def avoidable_ns(self) -> float:
        return sum(self.exposed_ns[verdict] for verdict in NEEDLESS)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.scope, self.kind, self.axes

    @property
    def place(self) -> str:
        """`all-gather over tp in layer.attention.core`."""
        where = f" in {self.scope}" if self.scope else ""
        return f"{self.kind or 'communication'} {axes_text(self.axes)}{where}"


def scopes_of(timings: Sequence[ProgramTiming]) -> list[str]:
    """The parts of the model in which any of them works."""
    return list(
        dict.fromkeys(scope for timing in timings if timing.section.work for scope in timing.section.work.by_scope)
    )


def part_of(timing: ProgramTiming, scope: str) -> ScopeWork | None:
    return timing.section.work.by_scope.get(scope) if timing.section.work else None


def timings(report: Report, phase: str) -> list[ProgramTiming]:
    """The programs of a phase with times: compiled ones by arm, then measured ones."""
    modelled, measured = [], []
    for arm, programs in report.phases[phase].arms.items():
        title = report.arms[arm].title
        modelled += [
            _timing(phase, arm, title_of(program, title), program, program.timing, default=program is programs.default)
            for program in programs.compiled
            if program.timing
        ]
        measured += [
            _timing(phase, arm, title, program, program.timing, default=False)
            for program in programs.profiles.values()
            if program.timing
        ]
    return modelled + measured


def timings_by_phase(report: Report) -> dict[str, list[ProgramTiming]]:
    """Phase -> its programs with times."""
    return {phase: timings(report, phase) for phase in report.phases}


def _timing(
    phase: str, arm: str, title: str, program: ProgramReport, section: Timing, *, default: bool
) -> ProgramTiming:
    words = {"phase": phase, "arm": arm, "title": title}
    return copy_fields(program, ProgramTiming, **words, default=default, section=section, rows=program.collectives)


def program_table(
    name: str,
    timings: Sequence[ProgramTiming],
    columns: Sequence[Column],
    cells: Callable[[ProgramTiming], Iterable[Cell]],
    *,
    captioned: bool = False,
) -> Table:
    """A row for each program, under its name; columns and cells: all but that."""
    rows = (Row(name=timing.title, code=timing.cell, cells=tuple(cells(timing))) for timing in timings)
    columns = (Column(heading="program", prose=True), *columns)
    return Table(name=name, columns=columns, rows=tuple(rows), captioned=captioned)


def with_energy(timings: Iterable[ProgramTiming]) -> list[tuple[ProgramTiming, StepEnergy]]:
    """The default programs that have an energy, and that."""
    return [(timing, timing.energy) for timing in timings if timing.energy and timing.default]


def name_sources(timings: Iterable[ProgramTiming]) -> str:
    """`Modelled and measured`: where the times of a figure are from."""
    return " and ".join(dict.fromkeys(timing.source for timing in timings)).capitalize()


def by_group(timings: Sequence[ProgramTiming]) -> Mapping[str, list[ProgramTiming]]:
    """Group -> its timings: modelled and measured ones never share a table."""
    return {group: members for group in GROUPS if (members := [timing for timing in timings if timing.group == group])}


def labels(timings: Sequence[ProgramTiming]) -> Mapping[str, list[str]]:
    """Label -> the programs that have it."""
    programs: dict[str, list[str]] = {}
    for timing in timings:
        programs.setdefault(timing.label, []).append(f"{timing.title} {timing.cell}")
    return programs


def failures(report: Report, phase: str) -> Iterator[str]:
    """A line for each program without its expected times."""
    for arm, programs in report.phases[phase].arms.items():
        title = report.arms[arm].title
        for program in programs.compiled:
            if program.timing_error:
                yield f"{title} {program.cell} has no modelled times: {program.timing_error}"
        for cell, program in programs.profiles.items():
            if program.status == "ok" and program.timing_error:
                yield f"{title} {cell} was measured, and has no times: {program.timing_error}"
            elif program.status != "ok":
                yield f"{title} {cell} was not measured: {program.error or 'no reason was given'}"


def sentence(timing: ProgramTiming) -> str:
    """`a 61.0 ms step, 24.1 ms of it exposed communication, of which 23.0 ms is avoidable`."""
    step, exposed, avoidable = timing.times.step_ns, timing.times.exposed_ns, timing.avoidable_ns
    copies = timing.times.copy_wait_ns
    waits = f", {time_text(copies)} of it waiting for local copies" if copies else ""
    if exposed is None:
        return f"a {time_text(step)} step{waits}; how much of it is exposed communication is unknown"
    if not timing.times.communication_ns:
        return f"a {time_text(step)} step{waits}, without communication"
    if not exposed:
        return f"a {time_text(step)} step{waits}, without exposed communication"
    words = f"a {time_text(step)} step{waits}, {time_text(exposed)} of it exposed communication, of which"
    if avoidable is None:
        return f"{words} the avoidable part is unknown"
    return f"{words} {time_text(avoidable) if avoidable else 'nothing'} is avoidable"


def waits(timing: ProgramTiming) -> list[Wait]:
    """The waits of a program, one for each scope, kind and axes, longest first."""
    places = group_by(timing.section.collectives, lambda row: (row.scope, row.kind, row.axes))
    all_waits = [_wait(timing, key, rows) for key, rows in places.items()]
    return sorted((wait for wait in all_waits if wait.total_ns), key=lambda wait: -wait.total_ns)


def _wait(timing: ProgramTiming, key: tuple[str, str, str], times: Sequence[CollectiveTimes]) -> Wait:
    known = {row.name: row for row in timing.rows}
    rows = [known[times_row.collective] for times_row in times if times_row.collective in known]
    exposed = dict.fromkeys(VERDICTS, 0.0)
    for times_row in times:
        for verdict, part in _parts(known.get(times_row.collective)).items():
            exposed[verdict] += part * (times_row.exposed_ns or 0)
    causes = sum_by(cause for row in rows for cause in row.causes.items())
    counts = [times_row.executions for times_row in times if times_row.executions is not None]
    scope, kind, axes = key
    return Wait(
        timing=timing,
        scope=scope,
        kind=kind,
        axes=axes,
        exposed_ns=exposed,
        communication_ns=sum(times_row.communication_ns or 0 for times_row in times),
        executions=round(sum(counts)) if len(counts) == len(times) else None,
        names=tuple(times_row.collective for times_row in times),
        causes=tuple(largest_first(causes)),
        source_lines=tuple(dict.fromkeys(row.source_line for row in rows if row.source_line)),
    )


def _parts(row: CollectiveRow | None) -> Mapping[str, float]:
    """The fractions of a collective's bytes, and so of its time, by verdict."""
    read = (row.inherent_bytes, row.inflated_bytes, row.induced_bytes) if row else ()
    amounts = [amount for amount in read if amount is not None]
    total = sum(amounts)
    if len(amounts) < len(VERDICTS[:-1]) or not total:
        return {"unknown": 1.0}
    return {verdict: amount / total for verdict, amount in zip(VERDICTS, amounts, strict=False)}
