"""Write all files of a report into its run folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from compare.render import tables
from compare.render.blocks import Section
from compare.render.picture import save
from compare.render.programs import num_devices
from compare.render.report.figure_process import FigureProcess, Pictures
from compare.render.report.page import render_page
from compare.render.report.show import PAGE
from compare.render.time import perfetto
from compare.render.time import tables as time_tables
from compare.render.time.timeline_strip import Strip, stages, strip
from compare.render.time.timeline_view import Key, ProgramTimeline, program_timelines
from compare.render.time.timing_section import timings_by_phase
from compare.report.model.report import Report
from compare.run.folder.load_run import Run, judge_run
from compare.run.folder.timelines import add_times
from compare.timing.timeline import Timeline

TRACE = "timeline.perfetto.json.gz"

NO_TIMELINES: Mapping[Key, Timeline] = MappingProxyType({})

STRIPS_BYTES = 1_000_000
"""Limit for all timeline strips in a page; beyond it those of the controls are only in the trace."""


def judge_and_draw(run: Run, folder: Path, *, sections: Sequence[Section] = ()) -> Report:
    """Judge the programs of a run, build their timelines, and write the report into the folder.

    The figures of bytes are drawn in parallel with the timelines.
    """
    with FigureProcess() as process:
        judged = judge_run(run)
        untimed = judged.report()
        of_bytes = process.draw_bytes(untimed)
        times = judged.timelines()
        report = add_times(untimed, judged.programs, times)
        _draw(report, folder, timelines=times.by_key, sections=sections, process=process, of_bytes=of_bytes)
    return report


def draw(
    report: Report,
    folder: Path,
    *,
    timelines: Mapping[Key, Timeline] = NO_TIMELINES,
    sections: Sequence[Section] = (),
) -> None:
    """Write report.json, report.html, figures/, tables/ and the trace, reproducible byte for byte.

    timelines: of the modelled and measured programs.  sections: further sections, from slices.
    """
    with FigureProcess() as process:
        of_bytes = process.draw_bytes(report)
        _draw(report, folder, timelines=timelines, sections=sections, process=process, of_bytes=of_bytes)


def _draw(
    report: Report,
    folder: Path,
    *,
    timelines: Mapping[Key, Timeline],
    sections: Sequence[Section],
    process: FigureProcess,
    of_bytes: Pictures,
) -> None:
    programs = program_timelines(report, timelines)
    strips = _strips(report, programs)
    phases = timings_by_phase(report)
    of_times = (
        process.draw_times(phases, num_devices=num_devices(report), strips=strips) if any(phases.values()) else None
    )
    text = json.dumps(report.to_json(), indent=1, ensure_ascii=False)
    (folder / "report.json").write_text(f"{text}\n", encoding="utf-8")
    tables.save(report, folder / "tables")
    if timelines:
        time_tables.save(report, folder / "tables", timelines=programs)
        perfetto.write_trace(folder / TRACE, timelines=programs)
    pictures = of_bytes.result()
    time_pictures = of_times.result() if of_times else []
    save([*pictures, *time_pictures], folder / "figures")
    html = render_page(report, pictures=pictures, time_pictures=time_pictures, strips=strips, sections=sections)
    (folder / PAGE).write_text(html, encoding="utf-8")


def _strips(report: Report, programs: Sequence[ProgramTimeline]) -> list[Strip]:
    stage_of = stages(report.mesh)
    drawn_strips = [(program, strip(program, stage_of=stage_of)) for program in programs]
    small = sum(len(json.dumps(drawn.to_json())) for _, drawn in drawn_strips) <= STRIPS_BYTES
    return [
        drawn for program, drawn in drawn_strips if small or program.default or program.timeline.source != "modelled"
    ]
