"""Attribution of the bytes beyond the plan, and what each control removes: sentences and tables."""

from collections.abc import Iterator, Mapping, Sequence

from compare.render.blocks import (
    Block,
    Bullets,
    Cell,
    Column,
    Details,
    Fold,
    Heading,
    PageOnly,
    Row,
    Section,
    Sentence,
    Table,
)
from compare.render.programs import titles
from compare.render.report.findings import PARTITIONERS
from compare.render.units import axes_text, bytes_text, exact_text, list_text
from compare.report.attribution import COMPILER, FORM, OPEN
from compare.report.controls import describe_control
from compare.report.grouping import group_by
from compare.report.model.findings import Attribution, ControlPhase, PartitionerPair
from compare.report.model.report import Report
from compare.report.programs import NOT_OFFERED

OWNERS: Mapping[str, str] = {
    "partitioner": "attributed to the partitioner",
    "attention": "attributed to the attention call",
    "cache": "attributed to the update of the cache",
    "loop": "attributed to the loop form",
    "libtpu": "attributed to this libtpu",
    "tracer": "attributed to PyTorch/XLA's tracer",
    "style": "attributed to the style",
    FORM: "attributed to the SPMD form",
    COMPILER: "attributed to the compiler",
    OPEN: "unattributed",
}
"""Owner -> the phrase that follows a number of bytes."""

HEADING = "Attribution of the bytes beyond the plan (default programs)"
MORE = "add --controls style to compare with hand-written collectives"
_HAND = "explicit"


def attribution_blocks(report: Report, phase: str) -> Iterator[Block]:
    """Bytes beyond the plan by owner, in sentences and tables, and whether a second partitioner agrees."""
    lines = [*(owner_lines(report, phase) if report.controls else ()), *pair_lines(report, phase)]
    if lines:
        yield Details((Heading(HEADING), *(Sentence(words) for words in lines)))
    for title, table in attribution_tables(report, phase):
        yield Fold(summary=f"Attribution: {title} `tpu` against its controls", blocks=(table,))


def controls_section(report: Report) -> Section:
    """What each control removes, over all phases."""
    lines = tuple(control_lines(report))
    lead = (
        "A control is the same program compiled with one thing changed. Bytes that are absent there are due to "
        "that change."
    )
    blocks = (PageOnly((Sentence(lead),)), Details((Bullets(lines),))) if lines else ()
    return Section(anchor="controls", title="what each control removes", link="controls", blocks=blocks)


def owner_lines(report: Report, phase: str) -> list[str]:
    """One line for each arm: its bytes beyond the plan by owner, the most first."""
    attribution = report.phases[phase].attribution
    lines = []
    for arm, title in titles(report).items():
        entries = [entry for entry in attribution if entry.arm == arm]
        if entries:
            lines.append(f"{title}: {', '.join(_owner_text(entries) for entries in _by_owner(entries))}")
    return lines


def _by_owner(entries_of_arm: Sequence[Attribution]) -> list[list[Attribution]]:
    """The entries grouped by owner and evidence, the most bytes first."""
    parts = group_by(entries_of_arm, lambda entry: (entry.owner, entry.evidence))
    return sorted(parts.values(), key=lambda entries: -sum(entry.bytes for entry in entries))


def _owner_text(entries: Sequence[Attribution]) -> str:
    """`2.26 GB attributed to the attention call (absent in tpu+einsum)`."""
    first = entries[0]
    total = bytes_text(sum(entry.bytes for entry in entries))
    return f"{total} {OWNERS[first.owner]} ({_causes(entries)}{evidence_text(first)})"


def _causes(entries: Sequence[Attribution]) -> str:
    """The causes of bytes without a responsible choice: `causes: bubble, replicated; `."""
    if entries[0].owner not in (FORM, OPEN, COMPILER):
        return ""
    causes = list(dict.fromkeys(entry.cause for entry in entries))
    return f"cause{'s' * (len(causes) > 1)}: {', '.join(causes)}; "


def evidence_text(entry: Attribution) -> str:
    """The evidence for the owner of a group, in a few words."""
    owner, evidence, cells = entry.owner, entry.evidence, entry.controls
    if owner == FORM:
        return f"absent in {evidence} only" if evidence else "absent only in the other framework's explicit program"
    if owner == COMPILER:
        return f"inserted by {evidence}" if _is_pass(evidence) else f"also present in {list_text(list(cells))}"
    if owner != OPEN:
        return f"absent in {evidence}"
    if evidence in entry.removed_by:
        return f"absent in {evidence}; --controls partitioner,attention separates them"
    if evidence:
        return f"partly absent in {evidence}"
    present = f"also present in {list_text(list(cells))}" if cells else "no control was compiled"
    return present if any(_HAND in cell for cell in cells) else f"{present}; {MORE}"


def _is_pass(origin: str) -> bool:
    return origin.partition(":")[0] not in ("program", "partitioner", "not recorded", "unknown")


def effect_text(entry: Attribution, cell: str) -> str:
    """What one control does to a group: `absent`, `half`, `same`, or the bytes that it removes."""
    if cell not in entry.controls:
        return ""
    removed, amount = entry.controls[cell].removed_bytes, entry.bytes
    if cell in entry.removed_by:
        return "absent"
    if cell not in entry.reduced_by:
        return "same"
    return "half" if 0.45 * amount <= removed <= 0.55 * amount else f"− {bytes_text(removed)}"


def attribution_tables(report: Report, phase: str) -> Iterator[tuple[str, Table]]:
    """Each arm's groups, largest first, with a column for each compiled control."""
    for arm, title in titles(report).items():
        entries = [entry for entry in report.phases[phase].attribution if entry.arm == arm]
        cells = list(dict.fromkeys(cell for entry in entries for cell in entry.controls))
        if entries and cells:
            yield (
                title,
                Table(
                    name=f"Attribution, {title}, {phase}",
                    columns=(
                        Column(heading="per step"),
                        Column(heading="attribution", prose=True),
                        Column(heading="collective", prose=True),
                        *(Column(heading="", code=cell) for cell in cells),
                    ),
                    rows=tuple(_row(entry, cells) for entry in entries),
                ),
            )


def _row(entry: Attribution, cells: Sequence[str]) -> Row:
    effects = [effect_text(entry, cell) for cell in cells]
    return Row(
        name=bytes_text(entry.bytes),
        style=entry.verdict,
        exact=exact_text(entry.bytes),
        cells=(
            Cell(OWNERS[entry.owner], soft=f"({evidence_text(entry)})"),
            Cell(f"{entry.kind} {axes_text(entry.axes)} in {entry.scope}", soft=f"({entry.verdict}, {entry.cause})"),
            *(Cell(words, style="zero" if words == "same" else "") for words in effects),
        ),
    )


def control_lines(report: Report) -> list[str]:
    """One sentence for each control: what it removes of the bytes beyond the plan."""
    names = titles(report)
    return [
        f"{names.get(control.arm, control.arm)} {control.cell}, {describe_control(control.cell)}: "
        f"{_control_text(control.phases)}"
        for control in report.controls
    ]


def _control_text(phases: Mapping[str, ControlPhase]) -> str:
    """`removes 2.26 GB of 3.12 GB beyond the plan in prefill; no change in decode`, or once for all phases."""
    effects = group_by(phases, lambda phase: _effect(phases[phase]))
    if len(effects) == 1:
        return next(iter(effects))
    return "; ".join(f"{words} in {list_text(names)}" for words, names in effects.items())


def _effect(control: ControlPhase) -> str:
    if control.status != "ok":
        return (
            str(control.error)
            if control.status == NOT_OFFERED
            else f"{control.status}: {control.error or 'no reason given'}"
        )
    if control.removed_bytes is None:
        return "not all of its bytes can be counted"
    removed, added, before = control.removed_bytes, control.added_bytes, bytes_text(control.default_bytes)
    parts = [
        f"removes {'all' if removed == control.default_bytes else bytes_text(removed)} of {before} beyond the plan"
    ]
    words = [*(parts if removed else ()), *([f"adds {bytes_text(added)} elsewhere"] if added else ())]
    return " and ".join(words) or "no change"


def pair_lines(report: Report, phase: str) -> list[str]:
    """For each further partitioner under which the frameworks can be compared: whether the result agrees."""
    pairs = report.phases[phase].pairs
    return [_pair(report, pairs[0], other) for other in pairs[1:]]


def _pair(report: Report, first: PartitionerPair, other: PartitionerPair) -> str:
    names = titles(report)
    cells = " against ".join(f"{names.get(arm, arm)} {cell}" for arm, cell in other.cells.items())
    under = PARTITIONERS.get(other.partitioner, other.partitioner)
    if other.common is None or first.common is None:
        return f"Under {under} ({cells}) not all rows can be counted."
    if other.framework_induced == first.framework_induced:
        return f"Under {under} ({cells}) the framework-induced bytes are the same."
    amounts = [f"{names.get(arm, arm)} {bytes_text(amount)}" for arm, amount in other.framework_induced.items()]
    words = f"Under {under} ({cells}) the framework-induced bytes differ: {list_text(amounts)}"
    return f"{words}; they depend on the partitioner."
