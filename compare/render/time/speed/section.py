"""Where the time of a step goes, first: steps by framework, the longest operations, and what makes them shorter."""

from collections.abc import Iterator, Mapping, Sequence

from compare.render.blocks import Block, Cell, Details, Heading, Section, Sentence, Tone, amount_cell, number_columns
from compare.render.time.speed.operations import operations_table
from compare.render.time.speed.reasons import compare_compute, fastest_control, over_floor_sentence
from compare.render.time.timing_section import GROUPS, ProgramTiming, by_group, program_table, timings_by_phase
from compare.render.units import capitalize_first, ratio_text, time_text
from compare.report.model.report import Report
from compare.report.witnesses import WITNESSES

_LEAD = (
    "The longest operations on a device's main line, alike instructions as one: their time, the bytes that they move "
    "through its memory (a collective's payload), FLOPs, and what bounds them. The floor is the least that the plan "
    "must read and multiply; what is fetched during communication takes no compute, but counts in bytes ÷ floor."
)


def speed_section(report: Report) -> Section:
    """Every phase with modelled or measured TPU times; in a terminal with details only."""
    blocks = [
        block
        for phase, timings in timings_by_phase(report).items()
        for group, members in by_group(timings).items()
        if group != GROUPS[2]
        for block in _phase(phase, group, members, axes=report.case.mesh.split_axes)
    ]
    return Section(
        anchor="speed",
        title="step time and longest operations",
        link="longest operations",
        blocks=(Details((Sentence(_LEAD, Tone.SOFT), *blocks)),) if blocks else (),
    )


def _phase(phase: str, group: str, members: Sequence[ProgramTiming], *, axes: Mapping[str, int]) -> Iterator[Block]:
    yield Heading(f"{capitalize_first(phase)}, {group}", anchor=f"speed-{phase}-{group}")
    headings = ("step", "compute", "exposed", "compute ÷ floor", "bytes ÷ floor")
    yield program_table(f"Steps of {phase}, {group}", members, number_columns(*headings), _cells)
    default = [timing for timing in members if timing.default]
    if len(default) == 2 and (words := compare_compute(default[0], default[1], axes=axes, others=members)):
        yield Sentence(words)
    shown = [timing for timing in members if timing.default or timing.cell in WITNESSES] or list(members)
    for timing in shown:
        if words := over_floor_sentence(timing):
            yield Sentence(words)
    for timing in default:
        if words := fastest_control(timing, members):
            yield Sentence(words)
    for timing in shown:
        if timing.section.operations:
            yield operations_table(phase, timing)


def _cells(timing: ProgramTiming) -> Iterator[Cell]:
    for amount in (timing.times.step_ns, timing.times.compute_ns, timing.times.exposed_ns):
        yield amount_cell(time_text(amount), amount)
    yield Cell(ratio_text(timing.over_floor))
    yield Cell(ratio_text(timing.bytes_over_floor))
