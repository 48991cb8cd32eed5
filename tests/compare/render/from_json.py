"""The views of a report, given it as JSON, which tests change before they look."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from compare.render import figures, programs, tables
from compare.render import traffic as traffic_view
from compare.render.picture import Drawing, Picture, draw_all
from compare.render.report import attribution, findings, origins, phase, step_walkthrough
from compare.render.report import draw as draw_view
from compare.render.report import page as page_view
from compare.render.report import show as show_view
from compare.render.report import torus as torus_view
from compare.render.report.figure_process import FigureProcess
from compare.render.time import diff, sentence, timeline_strip, timing_section
from compare.render.time import figures as time_figures
from compare.render.time import tables as time_tables
from compare.report.model.codec import decode
from compare.report.model.mesh import DeviceMesh
from compare.report.model.program import CollectiveRow
from compare.report.model.report import PhaseReport, Report


def _reading(view: Callable[..., Any]) -> Callable[..., Any]:
    return lambda report, *more, **options: view(Report.from_json(report), *more, **options)


def read_rows(rows: Iterable[object]) -> tuple[CollectiveRow, ...]:
    """Collectives as the report has them."""
    return tuple(decode(CollectiveRow, row) for row in rows)


def read_phase(report: object, phase: str = "prefill") -> PhaseReport:
    """One phase of a report."""
    return Report.from_json(report).phases[phase]


def moves(rows: Iterable[object]) -> tuple[step_walkthrough.Move, ...]:
    return step_walkthrough.group_moves(read_rows(rows))


def traffic(rows: Iterable[object], **options: int) -> traffic_view.Traffic:
    return traffic_view.traffic(read_rows(rows), **options)


def torus(mesh: object) -> torus_view.Torus:
    return torus_view.lay_out_torus(decode(DeviceMesh, mesh))


def stages(mesh: object) -> dict[int, int]:
    return timeline_strip.stages(decode(DeviceMesh, mesh))


def draw(report: object, folder: Path) -> None:
    """All files of a report without timelines, as `judge_and_draw` writes them."""
    read = Report.from_json(report)
    with FigureProcess() as process:
        figures = draw_view._Figures(process, read)
        draw_view._write(read, folder, timelines={}, sections=(), figures=figures)


def time_drawings(report: object, *, strips: Sequence[timeline_strip.Strip]) -> list[Drawing]:
    """The figures of time, as `draw` asks for them."""
    read = Report.from_json(report)
    phases = timing_section.timings_by_phase(read)
    return time_figures.list_drawings(phases, num_devices=programs.num_devices(read), strips=strips)


def time_pictures(report: object, *, strips: Sequence[timeline_strip.Strip]) -> list[Picture]:
    return draw_all(time_drawings(report, strips=strips))


TABLES = {name: _reading(table) for name, table in tables.TABLES.items()}

asides = _reading(findings.default_notes)
attribution_tables = _reading(attribution.attribution_tables)
between_slices = _reading(phase.between_slices)
compared = _reading(programs.compared_programs)
differences = _reading(diff.differences)
failures = _reading(timing_section.failures)
heading = _reading(findings.heading)
origin_lines = _reading(origins.origin_lines)
origin_table = _reading(origins.origin_table)
page = _reading(page_view.render_page)
programs_of = _reading(programs.programs)
pair_lines = _reading(attribution.pair_lines)
pictures = _reading(lambda report: draw_all(figures.list_drawings(report)))
print_report = _reading(show_view.print_report)
show = _reading(show_view.show_report)
save_tables = _reading(tables.save)
save_time_tables = _reading(time_tables.save)
showed_lines = _reading(attribution.control_lines)
story = _reading(step_walkthrough.walk_step)
time_sentence = _reading(sentence.time_sentence)
timings = _reading(timing_section.timings)
timings_by_phase = _reading(timing_section.timings_by_phase)
verdicts = _reading(figures.draw_verdicts)
whose_lines = _reading(attribution.owner_lines)
