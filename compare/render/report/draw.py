"""Write all files of a report into its run folder."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from compare.render import tables
from compare.render.blocks import Section
from compare.render.picture import Picture, save
from compare.render.programs import num_devices
from compare.render.report.figure_process import FigureProcess, Pictures
from compare.render.report.kept_pictures import keep_pictures
from compare.render.report.page import render_page
from compare.render.report.show import PAGE
from compare.render.time import perfetto
from compare.render.time import tables as time_tables
from compare.render.time.timeline_strip import Strip, stages, strip
from compare.render.time.timeline_view import Key, ProgramTimeline, program_timelines
from compare.render.time.timing_section import timings
from compare.report.model.report import Report
from compare.run.folder.load_run import Run, judge_run
from compare.run.folder.timelines import add_times
from compare.timeline.timeline import Timeline

TRACE = "timeline.perfetto.json.gz"

STRIPS_BYTES = 1_000_000
"""Limit for all timeline strips in a page; beyond it those of the controls are only in the trace."""


def judge_and_draw(
    run: Run,
    folder: Path,
    *,
    sections: Sequence[Section] = (),
    process: FigureProcess | None = None,
    no_cache: bool = False,
) -> Report:
    """Judge the programs of a run, build their timelines, and write report.json, report.html, figures/, tables/ and the
    trace into the folder, reproducible byte for byte.

    Each phase's figures are drawn while the next one's timelines are built.  sections: further sections, from slices.
    process: draws the figures, and stays open; by default one of this run's own.  no_cache: figures are drawn anew, and
    not kept.
    """
    with nullcontext(process) if process else start_drawing(no_cache=no_cache) as drawing:
        judged = judge_run(run)
        report = judged.report()
        figures = _Figures(drawing, report)
        timelines: dict[Key, Timeline] = {}
        for phase in report.phases:
            part = judged.of_phase(phase)
            times = part.timelines()
            report = add_times(report, part.programs, times)
            figures.draw_times(report, phase, times.by_key)
            timelines |= times.by_key
        _write(report, folder, timelines=timelines, sections=sections, figures=figures)
    return report


def start_drawing(*, no_cache: bool) -> FigureProcess:
    """What draws figures, once: those of the same numbers are in the user's cache."""
    return FigureProcess(None if no_cache else keep_pictures)


def judge_and_save(run: Run, folder: Path) -> Report:
    """The same numbers without figures, page and trace: report.json and tables/."""
    judged = judge_run(run)
    times = judged.timelines()
    report = add_times(judged.report(), judged.programs, times)
    _save(report, folder, times.by_key)
    return report


class _Figures:
    """The figures of a report, drawn by a second process as soon as what they show is known."""

    def __init__(self, process: FigureProcess, report: Report):
        self._process = process
        self._of_bytes = process.draw_bytes(report)
        self._of_times: list[Pictures] = []
        self._strips: list[tuple[ProgramTimeline, Strip]] = []

    def draw_times(self, report: Report, phase: str, timelines: Mapping[Key, Timeline]) -> None:
        """Start to draw those of a phase with times."""
        stage_of = stages(report.mesh)
        programs = [program for program in program_timelines(report, timelines) if program.phase == phase]
        strips = [strip(program, stage_of=stage_of) for program in programs]
        self._strips += zip(programs, strips, strict=True)
        if found := timings(report, phase):
            devices = num_devices(report)
            self._of_times.append(self._process.draw_times({phase: found}, num_devices=devices, strips=strips))

    @property
    def strips(self) -> list[Strip]:
        """Those for the page."""
        small = sum(len(json.dumps(drawn.to_json())) for _, drawn in self._strips) <= STRIPS_BYTES
        return [
            drawn
            for program, drawn in self._strips
            if small or program.default or program.timeline.source != "modelled"
        ]

    def pictures(self) -> tuple[list[Picture], list[Picture]]:
        """(of bytes, of times and energy), when they are drawn."""
        return self._of_bytes.result(), [picture for pictures in self._of_times for picture in pictures.result()]


def _write(
    report: Report, folder: Path, *, timelines: Mapping[Key, Timeline], sections: Sequence[Section], figures: _Figures
) -> None:
    programs = _save(report, folder, timelines)
    if timelines:
        perfetto.write_trace(folder / TRACE, timelines=programs)
    strips = figures.strips
    of_bytes, of_times = figures.pictures()
    save([*of_bytes, *of_times], folder / "figures")
    html = render_page(report, pictures=of_bytes, time_pictures=of_times, strips=strips, sections=sections)
    (folder / PAGE).write_text(html, encoding="utf-8")


def _save(report: Report, folder: Path, timelines: Mapping[Key, Timeline]) -> list[ProgramTimeline]:
    """Write report.json and tables/; returns what the tables of time are of."""
    text = json.dumps(report.to_json(), indent=1, ensure_ascii=False)
    (folder / "report.json").write_text(f"{text}\n", encoding="utf-8")
    tables.save(report, folder / "tables")
    programs = program_timelines(report, timelines)
    if timelines:
        time_tables.save(report, folder / "tables", timelines=programs)
    return programs
