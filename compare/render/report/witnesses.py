"""Witnesses (other people's models) beside the arms: what each moves beyond the plan, and its source lines."""

from collections.abc import Iterator

from compare.render.blocks import Block, Cell, Column, Fold, Heading, Row, Sentence, Table, Tone
from compare.render.units import axes_text, bytes_text, exact_text, ratio_text
from compare.report.differences import CauseGroup, GroupKey, group_by_cause
from compare.report.grouping import group_by
from compare.report.model.program import ProgramReport
from compare.report.model.report import PhaseReport, Report
from compare.report.witness_bytes import main_line, shared_bytes
from compare.report.witnesses import WITNESSES

HEADING = "Models that other people wrote, held against the same plan"
MOST_PLACES = 2
"""Places that a sentence names."""


def witness_blocks(report: Report, phase: str) -> Iterator[Block]:
    """A sentence for each witness, and a table of its bytes beyond the plan; empty where none was compiled."""
    phase_report = report.phases[phase]
    witnesses = [
        (arm, cell, program)
        for arm, programs in phase_report.arms.items()
        for cell, program in (programs.witnesses or {}).items()
    ]
    if not witnesses:
        return
    yield Heading(HEADING)
    for arm, cell, program in witnesses:
        yield _sentence(report, phase, arm, cell, program)
    for _, cell, program in witnesses:
        if groups := _largest_groups(program):
            yield Fold(summary=f"What `{cell}` moves beyond the plan", blocks=(_table(cell, phase, groups),))


def _sentence(report: Report, phase: str, arm: str, cell: str, program: ProgramReport) -> Sentence:
    name = f"`{cell}` ({WITNESSES[cell].description})" if cell in WITNESSES else f"`{cell}`"
    if program.totals is None:
        return Sentence(f"{name}: {program.status}: {program.error or 'no reason given'}", Tone.SOFT)
    phase_report = report.phases[phase]
    line = next(line for line in phase_report.headline if line.cell == cell and line.arm == arm)
    words = [f"{name}: {ratio_text(line.ratio, line.qualifier)}"]
    words += [_place_text(place, groups) for place, groups in _group_by_place(program)[:MOST_PLACES]] or [
        "nothing beyond the plan"
    ]
    if shared := _shared_text(phase_report, arm, program, title=report.arms[arm].title):
        words.append(shared)
    if program.constraints:
        words.append(f"all {program.constraints} shardings that it asks for are in the program")
    return Sentence("; ".join(words))


def _group_by_place(program: ProgramReport) -> list[tuple[tuple[str, str, str], list[CauseGroup]]]:
    """(kind, axes, scope) of bytes beyond the plan, with their groups; the most bytes first."""
    by_place = group_by(_largest_groups(program), lambda entry: (entry[0].kind, entry[0].axes, entry[0].scope))
    groups = [(place, [group for _, group in entries]) for place, entries in by_place.items()]
    return sorted(groups, key=lambda item: -sum(group.bytes for group in item[1]))


def _place_text(place: tuple[str, str, str], groups: list[CauseGroup]) -> str:
    """`114 MB all-gather over tp in layer.attention.core (transformers/integrations/sdpa_attention.py:193)`."""
    kind, axes, scope = place
    source = next(filter(None, map(main_line, groups)), "")
    line = f" ({source})" if source else ""
    return f"{bytes_text(sum(group.bytes for group in groups))} {kind} {axes_text(axes)} in `{scope}`{line}"


def _shared_text(phase_report: PhaseReport, arm: str, program: ProgramReport, *, title: str) -> str:
    """How many of the arm's bytes beyond the plan the witness moves too, at the same scopes and axes."""
    entries = [entry for entry in phase_report.differences if entry.arm == arm]
    beyond, shared = sum(entry.bytes for entry in entries), shared_bytes(program, entries)
    if not beyond or shared is None:
        return ""
    amount = bytes_text(shared) if shared else "none"
    return f"{amount} of {title}'s {bytes_text(beyond)} beyond the plan, at the same places"


def _largest_groups(program: ProgramReport) -> list[tuple[GroupKey, CauseGroup]]:
    return sorted(group_by_cause(program.collectives).items(), key=lambda item: -item[1].bytes)


def _table(cell: str, phase: str, groups: list[tuple[GroupKey, CauseGroup]]) -> Table:
    return Table(
        name=f"Beyond the plan, {cell}, {phase}",
        columns=(
            Column(heading="per step"),
            Column(heading="collective", prose=True),
            Column(heading="verdict", prose=True),
            Column(heading="times"),
            Column(heading="line of source", prose=True),
        ),
        rows=tuple(
            Row(
                name=bytes_text(group.bytes),
                exact=exact_text(group.bytes),
                style=key.verdict,
                cells=(
                    Cell(f"{key.kind} {axes_text(key.axes)} in {key.scope}"),
                    Cell(f"{key.verdict}, {key.cause}"),
                    Cell(str(group.executions)),
                    Cell(main_line(group) or "–"),
                ),
            )
            for key, group in groups
        ),
    )
