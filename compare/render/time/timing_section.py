"""The times of a report's programs, where it has any: what waits for communication, and how much of that is needed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.render.time.timeline_view import figure_label
from compare.render.units import axes_text, time_text
from compare.report.headline import title_of
from compare.report.model.program import CollectiveRow, ProgramReport
from compare.report.model.report import Report
from compare.report.model.timing import CollectiveTimes, StepTimes, Timing

VERDICTS = ("inherent", "inflated", "induced", "unknown")
NEEDLESS = ("inflated", "induced")
"""Verdicts of bytes that the plan does not require."""

ABSENT = "No times: none of these programs was modelled or measured."

GROUPS = ("measured", "modelled", "measured on CPU devices")
"""What may stand in one table, in the order in which readers want it: times of CPU devices are no times of a TPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTiming:
    """One program's `timing` section, and whose it is."""

    phase: str
    arm: str
    title: str
    cell: str
    default: bool
    """Whether it is the arm's default program, compiled: no control, and not measured."""
    platform: str | None
    """Of one that was measured, what it ran on."""
    section: Timing
    rows: tuple[CollectiveRow, ...]
    """Its collectives."""

    @property
    def source(self) -> str:
        return self.section.source

    @property
    def group(self) -> str:
        """Of GROUPS."""
        return GROUPS[2] if self.platform == "cpu" else self.source

    @property
    def label(self) -> str:
        """What every figure of it says."""
        return figure_label(self.source, self.section.label)

    @property
    def times(self) -> StepTimes:
        """`step_ns`, `exposed_ns` …: mean over devices and steps, None where it is not known."""
        return self.section.per_step

    def exposed(self, verdict: str) -> float | None:
        """The part of `exposed_ns` that is of one verdict."""
        times = self.section.by_verdict.get(verdict)
        return times.exposed_ns if times else 0

    @property
    def avoidable_ns(self) -> float | None:
        """Exposed time of inflated and induced bytes, in ns."""
        parts = [self.exposed(verdict) for verdict in NEEDLESS]
        return None if None in parts else sum(part for part in parts if part is not None)

    @property
    def idle_ns(self) -> float:
        """Neither computing nor waiting for communication."""
        times = self.times
        return max(0.0, (times.step_ns or 0) - (times.compute_ns or 0) - (times.exposed_ns or 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Collectives of one program at one place, and what they expose."""

    timing: ProgramTiming
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


def timings(report: Report, phase: str) -> list[ProgramTiming]:
    """Of a phase: the default programs and controls that have times, arm by arm, then what was measured."""
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
    """Phase -> the programs of it that have times, none for a phase without."""
    return {phase: timings(report, phase) for phase in report.phases}


def _timing(
    phase: str, arm: str, title: str, program: ProgramReport, section: Timing, *, default: bool
) -> ProgramTiming:
    return ProgramTiming(
        phase=phase, arm=arm, title=title, cell=program.cell, default=default, section=section,
        platform=program.platform, rows=program.collectives,
    )  # fmt: skip


def by_group(found: Sequence[ProgramTiming]) -> Mapping[str, list[ProgramTiming]]:
    """Modelled and measured apart: they never stand in one table."""
    return {group: own for group in GROUPS if (own := [one for one in found if one.group == group])}


def labels(found: Sequence[ProgramTiming]) -> Mapping[str, list[str]]:
    """Each label, and the programs that bear it."""
    bearers: dict[str, list[str]] = {}
    for one in found:
        bearers.setdefault(one.label, []).append(f"{one.title} {one.cell}")
    return bearers


def failures(report: Report, phase: str) -> Iterator[str]:
    """A line for each program that should have times and has none, or whose profile has none."""
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


def sentence(one: ProgramTiming) -> str:
    """`a 61.0 ms step, 24.1 ms of it exposed communication, of which 23.0 ms is avoidable`."""
    step, exposed, needless = one.times.step_ns, one.times.exposed_ns, one.avoidable_ns
    if exposed is None:
        return f"a {time_text(step)} step; how much of it is exposed communication is unknown"
    if not one.times.communication_ns:
        return f"a {time_text(step)} step, without communication"
    if not exposed:
        return f"a {time_text(step)} step, without exposed communication"
    words = f"a {time_text(step)} step, {time_text(exposed)} of it exposed communication, of which"
    if needless is None:
        return f"{words} the avoidable part is unknown"
    return f"{words} {time_text(needless) if needless else 'nothing'} is avoidable"


def waits(one: ProgramTiming) -> list[Wait]:
    """Where a program waits, one for each scope, kind and axes, the longest first."""
    places: dict[tuple[str, str, str], list[CollectiveTimes]] = {}
    for row in one.section.collectives:
        places.setdefault((row.scope, row.kind, row.axes), []).append(row)
    found = [_wait(one, key, rows) for key, rows in places.items()]
    return sorted((wait for wait in found if wait.total_ns), key=lambda wait: -wait.total_ns)


def _wait(one: ProgramTiming, key: tuple[str, str, str], times: Sequence[CollectiveTimes]) -> Wait:
    known = {row.name: row for row in one.rows}
    rows = [known[each.collective] for each in times if each.collective in known]
    exposed, causes = dict.fromkeys(VERDICTS, 0.0), dict[str, int]()
    for each in times:
        for verdict, part in _parts(known.get(each.collective)).items():
            exposed[verdict] += part * (each.exposed_ns or 0)
    for row in rows:
        for cause, amount in row.causes.items():
            causes[cause] = causes.get(cause, 0) + amount
    counts = [each.executions for each in times if each.executions is not None]
    scope, kind, axes = key
    return Wait(
        timing=one, scope=scope, kind=kind, axes=axes, exposed_ns=exposed,
        communication_ns=sum(each.communication_ns or 0 for each in times),
        executions=round(sum(counts)) if len(counts) == len(times) else None,
        names=tuple(each.collective for each in times),
        causes=tuple(sorted(causes, key=lambda cause: -causes[cause])),
        source_lines=tuple(dict.fromkeys(row.source_line for row in rows if row.source_line)),
    )  # fmt: skip


def _parts(row: CollectiveRow | None) -> Mapping[str, float]:
    """How a collective's bytes, and so its time, are divided by verdict."""
    read = (row.inherent_bytes, row.inflated_bytes, row.induced_bytes) if row else ()
    amounts = [amount for amount in read if amount is not None]
    total = sum(amounts)
    if len(amounts) < len(VERDICTS[:-1]) or not total:
        return {"unknown": 1.0}
    return {verdict: amount / total for verdict, amount in zip(VERDICTS, amounts, strict=False)}
