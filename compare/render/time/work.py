"""The work of each program's step: FLOPs and bytes by part of the model, and against the peaks of the device."""

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from compare.render.blocks import Block, Cell, Column, Fold, Row, Sentence, Shown, Table, Tone
from compare.render.time.timing_section import ProgramTiming
from compare.render.units import bytes_text, flops_text, list_text, percent_text, ratio_text, time_text
from compare.report.model.timing import ScopeWork

_ALIKE = 0.01
"""Part of the longer step below which computing longer needs no words; and how near a ratio is to a whole number."""

_SUMMARY = "Work of a step of one device: FLOPs and bytes, and what of the device's peak they are"
_LEAD = (
    "Counted from the program, mean over devices. Useful FLOPs are the model's own, each once; MFU is useful FLOPs, "
    "memory use is bytes, of what a device can do in the step. No schedule of this work is shorter than its roofline."
)


def work_blocks(
    phase: str, group: str, members: Sequence[ProgramTiming], *, axes: Mapping[str, int]
) -> Iterator[Block]:
    """The words on who computes longer, where and why; the tables.  axes: of the mesh, with their sizes."""
    known = [timing for timing in members if timing.section.work]
    if not known:
        return
    default = [timing for timing in known if timing.default]
    if len(default) == 2 and (words := compare_compute(default[0], default[1], axes=axes)):
        yield Sentence(words)
    blocks = (
        Sentence(_LEAD, Tone.SOFT),
        _program_table(phase, group, known),
        _scope_table(phase, group, default or known),
    )
    yield Fold(summary=_SUMMARY, blocks=blocks, terminal=Shown.BLOCKS)


def compare_compute(first: ProgramTiming, second: ProgramTiming, *, axes: Mapping[str, int]) -> str:
    """`TorchXLA computes 164 ms longer than JAX, 165 ms in layer.attention.core: …`; empty where they are alike."""
    more, less = sorted((first, second), key=lambda timing: timing.times.compute_ns or 0, reverse=True)
    longer = (more.times.compute_ns or 0) - (less.times.compute_ns or 0)
    if longer <= _ALIKE * max(timing.times.step_ns or 0 for timing in (more, less)):
        return ""
    by_scope = {scope: _compute(more, scope) - _compute(less, scope) for scope in _scopes([more, less])}
    scope = max(by_scope, key=lambda scope: by_scope[scope])
    parts = (
        f"{ratio_text(_ratio(more, less, scope, 'matrix_flops'))} the FLOPs" * (_flops(less, scope) > 0),
        f"{ratio_text(_ratio(more, less, scope, 'memory_bytes'))} the bytes of memory" * (_bytes(less, scope) > 0),
    )
    words = (
        f"{more.title} computes {time_text(longer)} longer than {less.title}: {time_text(by_scope[scope])} in {scope} "
        f"({time_text(_compute(more, scope))} against {time_text(_compute(less, scope))})"
    )
    compared = f", with {list_text([part for part in parts if part])}" if any(parts) else ""
    return f"{words}{compared}.{_reason(more, less, scope, axes)}"


def _reason(more: ProgramTiming, less: ProgramTiming, scope: str, axes: Mapping[str, int]) -> str:
    """Where the FLOPs are as many times those of the other as devices share what was gathered: each computes it all."""
    ratio = _ratio(more, less, scope, "matrix_flops")
    gathers = {row.axes for row in more.rows if row.scope == scope and row.kind == "all-gather" and row.induced_bytes}
    for gathered in sorted(gathers):
        names = gathered.split(",")
        size = prod(axes.get(name, 0) for name in names)
        if ratio is not None and size > 1 and abs(ratio / size - 1) < _ALIKE:
            return (
                f" It gathers over {list_text(names)} there, and then each of the {size} devices computes what they "
                f"divide in {less.title}."
            )
    return ""


def _program_table(phase: str, group: str, timings: Sequence[ProgramTiming]) -> Table:
    headings = ("FLOPs", "useful", "MFU", "memory", "memory use", "ICI bytes × links", "roofline", "step")
    return Table(
        name=f"Work of {phase}, {group}",
        columns=(Column(heading="program", prose=True), *(Column(heading=words) for words in headings)),
        rows=tuple(Row(name=timing.title, code=timing.cell, cells=tuple(_program_cells(timing))) for timing in timings),
    )


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
    scopes = sorted(_scopes(timings), key=lambda scope: -max(_compute(timing, scope) for timing in timings))
    return Table(
        name=f"Work of {phase} by part of the model, {group}",
        columns=(Column(heading="part of the model"), *(Column(heading=words) for words in headings)),
        rows=tuple(
            Row(name=scope, cells=tuple(cell for timing in timings for cell in _scope_cells(timing, scope)))
            for scope in scopes
        ),
    )


def _scope_cells(timing: ProgramTiming, scope: str) -> Iterator[Cell]:
    part = _part(timing, scope)
    for words, amount in (
        (time_text(_compute(timing, scope)), part and part.compute_ns),
        (flops_text(_flops(timing, scope)), part and part.matrix_flops),
        (bytes_text(_bytes(timing, scope)), part and part.memory_bytes),
    ):
        yield Cell(words, style="" if amount else "zero")


def _scopes(timings: Sequence[ProgramTiming]) -> list[str]:
    return list(
        dict.fromkeys(scope for timing in timings if timing.section.work for scope in timing.section.work.by_scope)
    )


def _part(timing: ProgramTiming, scope: str) -> ScopeWork | None:
    return timing.section.work.by_scope.get(scope) if timing.section.work else None


def _compute(timing: ProgramTiming, scope: str) -> float:
    part = _part(timing, scope)
    return (part.compute_ns or 0) if part else 0


def _flops(timing: ProgramTiming, scope: str) -> float:
    part = _part(timing, scope)
    return (part.matrix_flops or 0) if part else 0


def _bytes(timing: ProgramTiming, scope: str) -> float:
    part = _part(timing, scope)
    return (part.memory_bytes or 0) if part else 0


def _ratio(more: ProgramTiming, less: ProgramTiming, scope: str, what: str) -> float | None:
    amount = _flops if what == "matrix_flops" else _bytes
    return amount(more, scope) / amount(less, scope) if amount(less, scope) else None
