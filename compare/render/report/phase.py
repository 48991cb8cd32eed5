"""The report's section on one phase: bytes by program and verdict, the largest differences, attribution."""

from collections.abc import Iterator, Mapping, Sequence

from compare.render.blocks import (
    Block,
    Blocks,
    Cell,
    Column,
    Details,
    DifferenceItem,
    Differences,
    Fold,
    Row,
    Section,
    Sentence,
    Shown,
    Table,
    Tone,
    Widget,
    amount_cell,
)
from compare.render.programs import num_devices, programs, titles
from compare.render.report.attribution import attribution_blocks
from compare.render.report.findings import (
    NOT_COMPARED,
    Finding,
    default_notes,
    difference,
    group_findings,
    has_uncompared,
    heading,
)
from compare.render.report.missing_notes import is_short, mark_ratio, shortfall_notes
from compare.render.report.origins import origin_lines, origin_table
from compare.render.report.witnesses import witness_blocks
from compare.render.units import KEPT, bytes_text, count_text, exact_text, list_text, ratio_text
from compare.report.grouping import group_by
from compare.report.model import findings as findings_model
from compare.report.model.findings import HeadlineRow
from compare.report.model.report import PhaseReport, Report
from compare.report.programs import GOOD

_BYTES = {
    "inherent": "inherent",
    "inflated": "inflated",
    "induced": "induced",
    "common": "common",
    "framework_induced": "framework-induced",
    "missing": "missing",
}
"""Columns of the headline."""

_FAR_APART = 20
"""Beyond this ratio of the longest to the shortest bar, the shortest is too short to see."""


def phase_section(report: Report, phase: str) -> Section:
    """Bytes per step of every program of a phase, what the plan needs, and the differences."""
    needs = bytes_text(report.phases[phase].inherent_total)
    devices = count_text(num_devices(report), "device")
    return Section(
        anchor=f"why-{phase}",
        title=phase,
        link=phase,
        lead=f"the plan needs {needs} per step. Bytes on the wire per step, mean over {devices}:",
        blocks=(
            *_headline(report, phase),
            *_differences(report, phase),
            *witness_blocks(report, phase),
            *attribution_blocks(report, phase),
        ),
    )


def _headline(report: Report, phase: str) -> Iterator[Block]:
    phase_report = report.phases[phase]
    yield Widget(template="chart.html.j2", values=_chart(phase_report))
    yield _table(phase, phase_report)
    if has_uncompared(phase_report) and phase == next(iter(report.phases)):
        yield Sentence(NOT_COMPARED, Tone.SOFT)
    for words in between_slices(report, phase):
        yield Sentence(words)
    for words in _failures(report, phase):
        yield Sentence(words, Tone.ERROR)
    for words in _uncounted(report, phase):
        yield Sentence(words, Tone.WARNING)
    for words in shortfall_notes(report, phase):
        yield Sentence(words)
    yield Details(tuple(Sentence(words, Tone.SOFT) for words in phase_report.notes))
    yield Details(tuple(Sentence(words, Tone.SOFT) for words in origin_lines(report, phase)))
    if table := origin_table(report, phase):
        yield Fold(summary="Which pass inserted the collectives, and what later passes changed", blocks=(table,))


def _chart(phase_report: PhaseReport) -> dict[str, object]:
    """The values of the bar chart, with what the plan needs as a line."""
    known = [line.wire_bytes for line in phase_report.headline if line.wire_bytes]
    widest = max([*known, phase_report.inherent_total, 1])
    spread = widest / max(1, min(known, default=widest))
    return {
        "lines": [(line, _ratio(phase_report, line)) for line in phase_report.headline],
        "needs": phase_report.inherent_total,
        "widest": widest,
        "apart": spread if spread > _FAR_APART else None,
    }


def _table(phase: str, phase_report: PhaseReport) -> Table:
    columns = [Column(heading=words, style=name) for name, words in _BYTES.items()]
    return Table(
        name=f"Bytes per step by verdict, {phase}",
        style="headline",
        columns=(
            Column(heading="program", prose=True),
            *columns,
            Column(heading=f"emitted{KEPT}/ inherent"),
            Column(heading="partitioner", page_only=True),
        ),
        rows=tuple(
            Row(
                name=line.title,
                code=line.cell,
                cells=(
                    *(
                        amount_cell(bytes_text(amount), amount, style=name, exact=exact_text(amount))
                        for name, amount in ((name, getattr(line, name)) for name in _BYTES)
                    ),
                    Cell(_ratio(phase_report, line)),
                    Cell(line.partitioner or "–"),
                ),
            )
            for line in phase_report.headline
        ),
    )


def _ratio(phase_report: PhaseReport, line: HeadlineRow) -> str:
    return mark_ratio(ratio_text(line.ratio, line.qualifier), short=is_short(phase_report, line))


def between_slices(report: Report, phase: str) -> list[str]:
    """One sentence on traffic between slices; empty for a single slice."""
    if report.mesh.slices == 1:
        return []
    totals = {
        f"{program.title} {program.cell}": program.entry.totals
        for program in programs(report)
        if program.phase == phase and program.entry.totals is not None
    }
    amounts = {
        name: program_totals.dcn_wire_bytes
        for name, program_totals in totals.items()
        if program_totals.dcn_wire_bytes is not None
    }
    if not amounts:
        return []
    where = f"Between the {report.mesh.slices} slices (dcn)"
    if not any(amounts.values()):
        return [f"{where}: nothing"]
    words = ", ".join(f"{name} {bytes_text(amount)}" for name, amount in amounts.items())
    return [f"{where}: {words}; all else within them (ici)"]


def _failures(report: Report, phase: str) -> Iterator[str]:
    """A line for each failure reason; one that all programs of an arm share is printed once."""
    all_lines = [(name, line) for name, phase_report in report.phases.items() for line in phase_report.headline]
    reasons: dict[tuple[str, str], list[str]] = {}
    for line in report.phases[phase].headline:
        if line.status in GOOD:
            continue
        reason = f"{line.status}: {line.error or 'no reason was given'}"
        same_arm = [(name, other) for name, other in all_lines if other.arm == line.arm]
        if all((other.status, other.error) == (line.status, line.error) for _, other in same_arm):
            if phase == same_arm[0][0]:
                reasons[line.title, reason] = []
        else:
            reasons.setdefault((line.title, reason), []).append(line.cell)
    for (title, reason), cells in reasons.items():
        yield f"{' '.join([title, ', '.join(cells)]).strip()}: {reason}"


def _uncounted(report: Report, phase: str) -> Iterator[str]:
    """Programs whose sums omit rows, or contain upper bounds."""
    for program in programs(report):
        totals = program.entry.totals
        if program.phase != phase or totals is None:
            continue
        parts = []
        if totals.unknown_rows:
            parts.append(f"{totals.unknown_rows} in loops of unknown trip count, in no sum")
        if totals.upper_bound_rows:
            parts.append(f"{totals.upper_bound_rows} counted at their upper bound")
        if parts:
            yield f"{program.title} {program.cell}: of {len(program.rows)} collectives {', '.join(parts)}"


def _differences(report: Report, phase: str) -> Iterator[Block]:
    """The differences of the compared programs, then small ones, then those that all arms have."""
    phase_report = report.phases[phase]
    parts = group_findings(phase_report)
    if parts.listed:
        yield Differences(heading=heading(report, phase), items=_items(parts.listed, report, phase))
    elif len(phase_report.compared_cells) > 1:
        yield Sentence("No significant difference between the frameworks.")
    if parts.small:
        total = bytes_text(sum(finding.excess_bytes for finding in parts.small))
        summary = f"{count_text(len(parts.small), 'smaller difference')}: {total} together"
        yield Fold(summary=summary, blocks=_group(parts.small, report, phase), terminal=Shown.SUMMARY)
    if parts.alike:
        summary = _alike_summary(parts.alike, titles(report))
        yield Fold(summary=summary, blocks=_group(parts.alike, report, phase), terminal=Shown.SUMMARY)
    for words in default_notes(report, phase):
        yield Sentence(words, Tone.SOFT)


def _group(findings: Sequence[Finding], report: Report, phase: str) -> Blocks:
    return (Differences(heading="", items=_items(findings, report, phase)),)


def _items(findings: Sequence[Finding], report: Report, phase: str) -> tuple[DifferenceItem, ...]:
    return tuple(difference(finding, report, phase) for finding in findings)


def _alike_summary(findings: Sequence[Finding], names: Mapping[str, str]) -> str:
    causes = group_by((finding.first for finding in findings), lambda entry: entry.cause)
    sums = {cause: sum(entry.bytes for entry in entries) for cause, entries in causes.items()}
    ordered = sorted(causes, key=lambda cause: -sums[cause])
    words = ", ".join(f"{cause} {bytes_text(sums[cause])}{_where(causes[cause])}" for cause in ordered)
    arms = list_text(
        [names.get(arm, arm) for arm in dict.fromkeys(arm for finding in findings for arm in finding.by_arm)]
    )
    return f"The same in {arms}: {bytes_text(sum(sums.values()))} beyond the plan ({words})"


def _where(entries: Sequence[findings_model.Difference]) -> str:
    """The scope, where there is only one."""
    scopes = {entry.scope for entry in entries}
    return f" in {scopes.pop()}" if len(scopes) == 1 else ""
