"""The work of each program's step: FLOPs and bytes by part of the model, and against the peaks of the device."""

from collections.abc import Iterator, Sequence

from compare.render.blocks import Block, Cell, Fold, Row, Sentence, Shown, Table, Tone, amount_cell, number_columns
from compare.render.time.timing_section import ProgramTiming, part_of, program_table, scopes_of
from compare.render.units import bytes_text, flops_text, percent_text, time_text

_SUMMARY = "Work of a step of one device: FLOPs and bytes, and what of the device's peak they are"
_LEAD = (
    "Counted from the program, mean over devices. Useful FLOPs are the model's own, each once; MFU is useful FLOPs, "
    "memory use is bytes, of what a device can do in the step. No schedule of this work is shorter than its roofline."
)


def work_blocks(phase: str, group: str, members: Sequence[ProgramTiming]) -> Iterator[Block]:
    """The tables, folded; nothing where no program is known."""
    known = [timing for timing in members if timing.section.work]
    if not known:
        return
    default = [timing for timing in known if timing.default]
    blocks = (
        Sentence(_LEAD, Tone.SOFT),
        _program_table(phase, group, known),
        _scope_table(phase, group, default or known),
    )
    yield Fold(summary=_SUMMARY, blocks=blocks, terminal=Shown.BLOCKS)


def _program_table(phase: str, group: str, timings: Sequence[ProgramTiming]) -> Table:
    headings = ("FLOPs", "useful", "MFU", "memory", "memory use", "ICI bytes × links", "roofline", "step")
    return program_table(f"Work of {phase}, {group}", timings, number_columns(*headings), _program_cells)


def _program_cells(timing: ProgramTiming) -> Iterator[Cell]:
    work = timing.section.work
    assert work is not None
    yield Cell(flops_text(work.matrix_flops))
    yield Cell(percent_text(work.useful_share))
    yield Cell(percent_text(work.mfu))
    yield Cell(bytes_text(work.memory_bytes))
    yield Cell(percent_text(work.memory_share))
    yield Cell(bytes_text(work.ici_byte_hops))
    yield Cell(time_text(work.roofline_ns))
    yield Cell(time_text(timing.times.step_ns))


def _scope_table(phase: str, group: str, timings: Sequence[ProgramTiming]) -> Table:
    """The programs side by side, the part that takes longest first."""
    headings = [f"{timing.title} {what}" for timing in timings for what in ("compute", "FLOPs", "memory")]
    scopes = sorted(scopes_of(timings), key=lambda scope: -max(_compute(timing, scope) for timing in timings))
    return Table(
        name=f"Work of {phase} by part of the model, {group}",
        columns=number_columns("part of the model", *headings),
        rows=tuple(
            Row(name=scope, cells=tuple(cell for timing in timings for cell in _scope_cells(timing, scope)))
            for scope in scopes
        ),
    )


def _scope_cells(timing: ProgramTiming, scope: str) -> Iterator[Cell]:
    part = part_of(timing, scope)
    for text, name in ((time_text, "compute_ns"), (flops_text, "matrix_flops"), (bytes_text, "memory_bytes")):
        amount = getattr(part, name, 0) or 0
        yield amount_cell(text(amount), amount)


def _compute(timing: ProgramTiming, scope: str) -> float:
    part = part_of(timing, scope)
    return (part.compute_ns or 0) if part else 0
