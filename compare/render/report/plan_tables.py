"""The contract of a case as tables, with the formula of each row; also printed alone by `compare.plan`."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from compare.render.blocks import Block, Cell, Column, Heading, Row, Section, Sentence, Table, Tone
from compare.render.terminal import console, print_sections, text_width, wrap_prose
from compare.render.units import KEPT, axes_text, bytes_text, count_text, exact_text
from compare.report.model.contract import Contract, PhaseContract, ServedRow
from meshes.case import Case

LEAD = (
    "One named reference algorithm for each row, from the sizes of the case alone. Satisfied: the bytes of the row "
    "that each program moves."
)

_NOTHING = "Nothing: this mesh splits no tensor that has to be put together again."

_NETWORKS = {"dcn": "between slices (dcn)", "ici+dcn": "within slices and between them (ici+dcn)"}


def print_plan(plan: Contract, *, out: Console | None = None) -> None:
    """Print the contract of a case: the rows of each phase, with their formulas."""
    out = out or console()
    out.print(wrap_prose(f"Required communication: {_case(plan.case)}", width=text_width(out), style="bold"))
    sections = [
        Section(
            anchor=phase,
            title=phase,
            link=phase,
            lead=f"{bytes_text(contract.total)} per step, mean over devices",
            blocks=tuple(contract_blocks(phase, contract.inherent, notes=contract.notes)),
        )
        for phase, contract in plan.phases.items()
    ]
    print_sections(sections, out=out, details=True)


def _case(case: Case) -> str:
    words = f"{case.model.name} on {case.plan.name} ({case.topology.name})"
    parts = count_text(case.microbatches, "microbatch")
    return f"{words}, batch {case.batch}, {case.seq} tokens, {parts}, {case.dtype}"


def plan_section(phases: Mapping[str, PhaseContract], satisfied: Mapping[str, Sequence[str]]) -> Section:
    """The contract of every phase.  satisfied: phase -> per row, how far programs satisfy it, as text."""
    blocks: list[Block] = []
    for phase, contract in phases.items():
        blocks.append(Heading(f"{phase}: {bytes_text(contract.total)} per step"))
        notes = contract.notes
        blocks += contract_blocks(phase, contract.inherent, notes=notes, satisfied=satisfied[phase])
    return Section(anchor="plan", title="what the plan needs", link="the plan", lead=LEAD, blocks=blocks)


def contract_blocks(
    phase: str, rows: Sequence[ServedRow], *, notes: Sequence[str], satisfied: Sequence[str] = ()
) -> Iterator[Block]:
    """One phase's rows as a table."""
    for note in notes:
        yield Sentence(note, Tone.SOFT)
    if not rows:
        yield Sentence(_NOTHING)
        return
    more = (Column(heading="satisfied", prose=True, page_only=True),) if satisfied else ()
    yield Table(
        name=f"Contract of {phase}",
        columns=(
            Column(heading="scope", prose=True),
            Column(heading="collective", prose=True),
            Column(heading="count"),
            Column(heading="payload"),
            Column(heading="wire"),
            Column(heading=f"per{KEPT}step"),
            *more,
        ),
        rows=tuple(_row(row, satisfied[index : index + 1]) for index, row in enumerate(rows)),
    )


def _row(row: ServedRow, satisfied: Sequence[str]) -> Row:
    collective = ", ".join(filter(None, [f"{row.kind} {axes_text(row.axes)}", network_words(row)]))
    step = row.step_wire_bytes
    return Row(
        name="",
        code=row.scope,
        cells=(
            Cell(collective),
            Cell(f"{row.executions:,}"),
            Cell(bytes_text(row.payload_bytes)),
            Cell(bytes_text(row.wire_bytes)),
            Cell(bytes_text(step), exact=exact_text(step)),
            *map(Cell, satisfied),
        ),
        note=f"{row.formula} ({row.source})",
    )


def network_words(row: ServedRow) -> str:
    """The network of a contract row, unless it is a slice's own links only."""
    return _NETWORKS.get(row.network, "")
