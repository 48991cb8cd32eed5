"""Everything that is drawn of a report, into its run folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from compare.render import tables
from compare.render.blocks import Section
from compare.render.picture import save
from compare.render.programs import num_devices
from compare.render.report.page import render_page
from compare.render.report.show import PAGE
from compare.render.time import perfetto
from compare.render.time import tables as time_tables
from compare.render.time.figure_process import FigureProcess
from compare.render.time.timeline_strip import Strip, stages, strip
from compare.render.time.timeline_view import Key, TimedProgram, timed_programs
from compare.render.time.timing_section import timings_by_phase
from compare.report.model.report import Report
from compare.timing.timeline import Timeline

TRACE = "timeline.perfetto.json.gz"

NO_TIMELINES: Mapping[Key, Timeline] = MappingProxyType({})

STRIPS_BYTES = 1_000_000
"""Of all strips in a page; where they are more, those of the controls are left to the trace."""


def draw(
    report: Report,
    folder: Path,
    *,
    timelines: Mapping[Key, Timeline] = NO_TIMELINES,
    sections: Sequence[Section] = (),
) -> None:
    """Write report.json, report.html, figures/, tables/ and the trace, the same files from the same report.

    timelines: of the programs that were modelled or measured.  sections: those of slices.
    """
    programs = timed_programs(report, timelines)
    strips = _strips(report, programs)
    phases = timings_by_phase(report)
    time_figures = (
        FigureProcess(phases, num_devices=num_devices(report), strips=strips) if any(phases.values()) else None
    )
    # Imported here, beside the other process: it takes as long as several figures.
    from compare.render import figures

    text = json.dumps(report.to_json(), indent=1, ensure_ascii=False)
    (folder / "report.json").write_text(f"{text}\n", encoding="utf-8")
    tables.save(report, folder / "tables")
    if timelines:
        time_tables.save(report, folder / "tables", timelines=programs)
        perfetto.write_trace(folder / TRACE, timelines=programs)
    pictures = figures.draw_pictures(report)
    time_pictures = time_figures.pictures() if time_figures else []
    save([*pictures, *time_pictures], folder / "figures")
    html = render_page(report, pictures=pictures, time_pictures=time_pictures, strips=strips, sections=sections)
    (folder / PAGE).write_text(html, encoding="utf-8")


def _strips(report: Report, programs: Sequence[TimedProgram]) -> list[Strip]:
    stage_of = stages(report.mesh)
    every = [(one, strip(one, stage_of=stage_of)) for one in programs]
    small = sum(len(json.dumps(drawn.to_json())) for _, drawn in every) <= STRIPS_BYTES
    return [drawn for one, drawn in every if small or one.default or one.timeline.source != "modelled"]
