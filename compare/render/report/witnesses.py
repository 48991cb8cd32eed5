"""Models that other people wrote, beside the arms: what each moves beyond the plan, and where in their source."""

from collections.abc import Iterator

from compare.render.blocks import Block, Cell, Column, Fold, Heading, Row, Sentence, Table, Tone
from compare.render.units import axes_text, bytes_text, exact_text, ratio_text
from compare.report.differences import CauseGroup, GroupKey, group_by_cause
from compare.report.model.program import ProgramReport
from compare.report.model.report import PhaseReport, Report
from compare.report.witnesses import WITNESSES, main_line, shared_bytes

HEADING = "Models that other people wrote, held against the same plan"
MOST = 2
"""Places that a sentence names."""


def witness_blocks(report: Report, phase: str) -> Iterator[Block]:
    """A sentence for each witness, and a table of what it moves beyond the plan; nothing where none was compiled."""
    found = report.phases[phase]
    asked = [
        (arm, cell, program)
        for arm, programs in found.arms.items()
        for cell, program in (programs.witnesses or {}).items()
    ]
    if not asked:
        return
    yield Heading(HEADING)
    for arm, cell, program in asked:
        yield _sentence(report, phase, arm, cell, program)
    for _, cell, program in asked:
        if groups := _largest(program):
            yield Fold(summary=f"What `{cell}` moves beyond the plan", blocks=(_table(cell, phase, groups),))


def _sentence(report: Report, phase: str, arm: str, cell: str, program: ProgramReport) -> Sentence:
    whose = f"`{cell}` ({WITNESSES[cell].description})" if cell in WITNESSES else f"`{cell}`"
    if program.totals is None:
        return Sentence(f"{whose}: {program.status}: {program.error or 'no reason given'}", Tone.SOFT)
    found = report.phases[phase]
    line = next(line for line in found.headline if line.cell == cell and line.arm == arm)
    words = [f"{whose}: {ratio_text(line.ratio, line.qualifier)}"]
    words += [_place_text(place, groups) for place, groups in _places(program)[:MOST]] or ["nothing beyond the plan"]
    if shared := _shared_text(found, arm, program, title=report.arms[arm].title):
        words.append(shared)
    if program.constraints:
        words.append(f"all {program.constraints} shardings that it asks for are in the program")
    return Sentence("; ".join(words))


def _places(program: ProgramReport) -> list[tuple[tuple[str, str, str], list[CauseGroup]]]:
    """Kind, axes and scope of what is beyond the plan, with its groups; the most bytes first."""
    found: dict[tuple[str, str, str], list[CauseGroup]] = {}
    for key, group in _largest(program):
        found.setdefault((key.kind, key.axes, key.scope), []).append(group)
    return sorted(found.items(), key=lambda item: -sum(group.bytes for group in item[1]))


def _place_text(place: tuple[str, str, str], groups: list[CauseGroup]) -> str:
    """`114 MB all-gather over tp in layer.attention.core (transformers/integrations/sdpa_attention.py:193)`."""
    kind, axes, scope = place
    source = next(filter(None, map(main_line, groups)), "")
    line = f" ({source})" if source else ""
    return f"{bytes_text(sum(group.bytes for group in groups))} {kind} {axes_text(axes)} in `{scope}`{line}"


def _shared_text(found: PhaseReport, arm: str, program: ProgramReport, *, title: str) -> str:
    """How much of what the arm's compared program moves beyond the plan stands at the same places here."""
    own = [entry for entry in found.differences if entry.arm == arm]
    beyond, shared = sum(entry.bytes for entry in own), shared_bytes(program, own)
    if not beyond or shared is None:
        return ""
    amount = bytes_text(shared) if shared else "none"
    return f"{amount} of {title}'s {bytes_text(beyond)} beyond the plan, at the same places"


def _largest(program: ProgramReport) -> list[tuple[GroupKey, CauseGroup]]:
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
