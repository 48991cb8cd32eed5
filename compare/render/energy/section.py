"""The report's section on energy: joules of a step by component and by verdict, modelled, with their ranges."""

from collections.abc import Iterator, Mapping, Sequence

from compare.render.blocks import (
    Block,
    Cell,
    Column,
    Details,
    Fold,
    Heading,
    PageOnly,
    Row,
    Section,
    Sentence,
    Shown,
    Table,
    Tone,
    Widget,
    amount_cell,
    number_columns,
)
from compare.render.picture import Picture, inline_picture
from compare.render.time.timing_section import ProgramTiming, program_table, timings_by_phase
from compare.render.units import capitalize_first, joules_text, list_text, ratio_text, span_text, time_text
from compare.report.model.energy import EnergyDifference, EnergyModel, StepEnergy
from compare.report.model.report import Report

BREAKDOWN, POWER = "-breakdown", "-power"
"""Suffixes of the names of the figures of energy: of this section, and of the one on time, beside the strip."""

ARITHMETIC = "arithmetic"
"""The part of compute that arithmetic limits, and the joules of matrix and vector units."""

VERDICTS = ("inherent", "inflated", "induced", "rest")
NAMES = {"matrix": "matrix", "vector": "vector", "memory": "memory", "ici": "ICI", "dcn": "DCN", "static": "static"}
"""Component -> its name in tables and figures."""

_LEAD = (
    "modelled, not measured: counts from each program × coefficients of the chip, for the full mesh in one step. In "
    "brackets the least and the most, every coefficient at the end of its range, times taken as exact; where two "
    "programs are compared, both have the same, and a second range lets each step's time be off by the time model's "
    "median error. The time of compute is split here: arithmetic is time limited by arithmetic, memory is time "
    "limited by reads and writes."
)


def energy_section(report: Report, *, pictures: Sequence[Picture] = ()) -> Section:
    """Every phase with energies; pictures are for the page."""
    blocks: list[Block] = []
    for phase, timings in timings_by_phase(report).items():
        members = [timing for timing in timings if timing.energy]
        if members:
            words = f"{capitalize_first(phase)}: energy of a step"
            blocks.append(Details((Heading(words, anchor=f"energy-{phase}"), *_phase(report, phase, members))))
            shown = [inline_picture(picture) for picture in pictures if picture.name == f"energy-{phase}{BREAKDOWN}"]
            blocks.append(Widget(template="figures.html.j2", values={"pictures": shown}))
    if blocks and report.energy_model:
        blocks.append(Details(tuple(_coefficients(report.energy_model))))
    return Section(anchor="energy", title="energy", link="energy", lead=_LEAD, blocks=tuple(blocks))


def _phase(report: Report, phase: str, members: Sequence[ProgramTiming]) -> Iterator[Block]:
    difference = report.phases[phase].energy_difference
    default = [timing for timing in members if timing.default] or members
    if difference:
        yield Sentence(compare_words(report, phase, difference), Tone.STRONG)
    yield breakdown_table(phase, default)
    yield _program_table(phase, members)
    tables: list[Block] = [_verdict_table(phase, members)]
    if difference:
        tables.append(_difference_table(report, phase, difference))
    yield Fold(
        summary=f"By verdict, and the difference by component, {phase}", blocks=tuple(tables), terminal=Shown.BLOCKS
    )


def compare_words(report: Report, phase: str, difference: EnergyDifference) -> str:
    """`A prefill step of TorchXLA tpu takes 147 J (116–208) more than one of JAX tpu+gspmd, 1.79 × (…): …`."""
    left, right = (f"{report.arms[side.arm].title} {side.cell}" for side in (difference.left, difference.right))
    more = difference.difference_j >= 0
    sign = 1 if more else -1
    low, high = sorted((sign * difference.low_j, sign * difference.high_j))
    amount = span_text(sign * difference.difference_j, low, high, unit="J")
    parts = sorted(difference.by_component_j.items(), key=lambda part: -abs(part[1]))
    words = [f"{NAMES[name]} {joules_text(joules)}" for name, joules in parts if joules]
    ratio = f", {ratio_text(difference.ratio)}{_ratios(difference)}" if difference.ratio else ""
    return (
        f"Modelled: a {phase} step of {right} takes {amount} {'more' if more else 'less'} than one of {left}{ratio}: "
        f"{list_text(words) or 'nothing differs'}."
    )


def _ratios(difference: EnergyDifference) -> str:
    if difference.low_ratio is None or difference.high_ratio is None:
        return ""
    exact = f"{difference.low_ratio:.2f}–{difference.high_ratio:.2f}"
    low, high = difference.low_ratio_with_times, difference.high_ratio_with_times
    if difference.time_error is None or low is None or high is None:
        return f" ({exact})"
    return f" ({exact}; {low:.2f}–{high:.2f} if each step's time is {difference.time_error:.0%} off)"


def breakdown_table(phase: str, timings: Sequence[ProgramTiming]) -> Table:
    """The time and the energy of a step, side by side: arithmetic, memory, networks, and what waits."""
    headings = (ARITHMETIC, "memory", "network", "idle, static", "step")
    return Table(
        name=f"Time and energy of a step of {phase}, modelled, by component",
        columns=(Column(heading="program", prose=True), Column(heading="", prose=True), *number_columns(*headings)),
        rows=tuple(row for timing in timings if timing.energy for row in _breakdown_rows(timing, timing.energy)),
    )


def _breakdown_rows(timing: ProgramTiming, energy: StepEnergy) -> Iterator[Row]:
    times = energy.time_by_component_ns
    of_time = [times[name] for name in ("compute", "memory", "network", "idle")]
    cells = [amount_cell(time_text(time), time) for time in of_time]
    step = Cell(time_text(timing.times.step_ns))
    yield Row(name=timing.title, code=timing.cell, cells=(Cell("time"), *cells, step))
    joules = energy.by_component_j
    parts = (joules["matrix"] + joules["vector"], joules["memory"], joules["ici"] + joules["dcn"], joules["static"])
    yield Row(
        name=timing.title,
        code=timing.cell,
        cells=(
            Cell("energy"),
            *(amount_cell(joules_text(part), part) for part in parts),
            Cell(span_text(energy.step_j, energy.low_j, energy.high_j, unit="J")),
        ),
    )


def _program_table(phase: str, members: Sequence[ProgramTiming]) -> Table:
    columns = number_columns("step", "not needed", "a token", "mean power")
    columns += number_columns("tokens a joule", "peak of 1 ms", page_only=True)
    return program_table(f"Energy and power of a step of {phase}, modelled", members, columns, _program_cells)


def _program_cells(timing: ProgramTiming) -> Iterator[Cell]:
    assert timing.energy is not None
    energy = timing.energy
    yield Cell(span_text(energy.step_j, energy.low_j, energy.high_j, unit="J"))
    yield amount_cell(span_text(energy.avoidable_j, *energy.avoidable_span_j, unit="J"), energy.avoidable_j)
    yield Cell(joules_text(energy.per_token_j))
    yield Cell(span_text(energy.mean_w, energy.low_mean_w, energy.high_mean_w, unit="W"))
    yield Cell(f"{energy.tokens_per_j:.3g}")
    peak = span_text(energy.peak_w, energy.low_peak_w, energy.high_peak_w, unit="W")
    yield Cell(peak if energy.has_peak else "one window: the mean")


def _verdict_table(phase: str, members: Sequence[ProgramTiming]) -> Table:
    name, columns = f"Energy of a step of {phase} by verdict, modelled", [Column(heading=v, style=v) for v in VERDICTS]
    return program_table(name, members, columns, _verdict_cells, captioned=True)


def _verdict_cells(timing: ProgramTiming) -> Iterator[Cell]:
    assert timing.energy is not None
    energy = timing.energy
    for name in VERDICTS:
        joules = energy.by_verdict_j[name]
        words = span_text(joules, energy.low_by_verdict_j[name], energy.high_by_verdict_j[name], unit="J")
        yield amount_cell(words, joules, style=name)


def _difference_table(report: Report, phase: str, difference: EnergyDifference) -> Table:
    energies = {
        side: report.phases[phase].arms[side.arm].cell(side.cell).energy for side in (difference.left, difference.right)
    }
    rows = [
        Row(
            name=report.arms[side.arm].title,
            code=side.cell,
            cells=_component_cells(energy.by_component_j, energy.step_j),
        )
        for side, energy in energies.items()
        if energy
    ]
    rows.append(Row(name="difference", cells=_component_cells(difference.by_component_j, difference.difference_j)))
    return Table(
        name=f"Energy of a step of {phase} by component, modelled: the compared programs",
        captioned=True,
        columns=(Column(heading="program", prose=True), *number_columns(*NAMES.values(), "step")),
        rows=tuple(rows),
    )


def _component_cells(parts: Mapping[str, float], total: float) -> tuple[Cell, ...]:
    return (*(amount_cell(joules_text(parts[name]), parts[name]) for name in NAMES), Cell(joules_text(total)))


def _coefficients(model: EnergyModel) -> Iterator[Block]:
    calibrated = f", calibrated on {model.calibrated_on}" if model.calibrated_on else ", not calibrated on any device"
    headings = ("component", "value", "least", "most", "unit", "standing")
    table = Table(
        name="Coefficients of the energy model",
        columns=(
            *number_columns(*headings),
            Column(heading="source", prose=True, page_only=True),
        ),
        rows=tuple(
            Row(
                name=NAMES.get(name, name),
                cells=(
                    *(Cell(f"{number:g}") for number in (row.value, row.low, row.high)),
                    Cell(row.unit),
                    Cell(row.standing),
                    Cell(row.source),
                ),
            )
            for name, row in model.coefficients.items()
        ),
    )
    yield Fold(summary=f"The coefficients: those of {model.name}{calibrated}", blocks=(table,), terminal=Shown.BLOCKS)
    yield PageOnly((Sentence("docs/energy.md says what each covers, and what is left out.", Tone.SOFT),))
