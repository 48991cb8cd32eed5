"""Everything that is drawn of a report, into its run folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from compare.render import figures, tables
from compare.render.blocks import Section
from compare.render.picture import save
from compare.render.report.page import page
from compare.render.report.show import PAGE
from compare.render.time import figures as time_figures
from compare.render.time import perfetto
from compare.render.time import tables as time_tables
from compare.render.time.timeline_strip import Strip, stages, strip
from compare.render.time.timeline_view import Key, timed
from compare.timing.timeline import Timeline

TRACE = "timeline.perfetto.json.gz"

NO_TIMELINES: Mapping[Key, Timeline] = MappingProxyType({})

STRIPS_BYTES = 1_000_000
"""Of all strips in a page; where they are more, those of the controls are left to the trace."""


def draw(
    report: dict[str, Any],
    folder: Path,
    *,
    timelines: Mapping[Key, Timeline] = NO_TIMELINES,
    sections: Sequence[Section] = (),
) -> dict[str, Any]:
    """Write report.json, report.html, figures/, tables/ and the trace, the same files from the same report.

    timelines: of the programs that were modelled or measured.  sections: those of slices.  Returns the report.
    """
    (folder / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    found, strips = figures.pictures(report), _strips(report, timelines)
    of_time = time_figures.pictures(report, strips=strips)
    save([*found, *of_time], folder / "figures")
    tables.save(report, folder / "tables")
    html = page(report, pictures=found, time_pictures=of_time, strips=strips, sections=sections)
    (folder / PAGE).write_text(html, encoding="utf-8")
    if timelines:
        time_tables.save(report, folder / "tables", timelines=timed(report, timelines))
        perfetto.write(folder / TRACE, timelines=timed(report, timelines))
    return report


def _strips(report: Mapping[str, Any], timelines: Mapping[Key, Timeline]) -> list[Strip]:
    stage_of = stages(report["mesh"])
    every = [(one, strip(one, stage_of=stage_of)) for one in timed(report, timelines)]
    small = sum(len(json.dumps(found)) for _, found in every) <= STRIPS_BYTES
    return [found for one, found in every if small or one.default or one.timeline.source != "modelled"]
