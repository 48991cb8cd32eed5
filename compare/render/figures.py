"""The figures of a report, as PNG and SVG: the same bytes from the same report."""

import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from compare.render.palette import UNCLEAR, VERDICTS
from compare.render.picture import Drawing, Picture
from compare.render.programs import Program, num_devices, programs
from compare.render.traffic import Matrix, Traffic, traffic
from compare.render.units import axes_text, bytes_text
from compare.report.model.findings import HeadlineRow
from compare.report.model.report import PhaseReport, Report

COLOURS = "viridis_r"
"""Colour map of a traffic matrix: darker is more."""

DPI = 150

STYLE = {
    "svg.hashsalt": "wirediff",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
}

WIDE, _GAP, _PANEL = 8.0, 0.62, 3.0
"""Inches: width of a bar chart, gap around its panels, side of a matrix."""

_COUNTED = "counted in compiled programs, not measured"
"""The source label of figures of bytes."""

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that are illegal in XML: a browser refuses a figure with one."""

INK = "#20242b"
"""Colour of lines and text."""


def list_drawings(report: Report) -> list[Drawing]:
    """Bytes by verdict, then the traffic matrices of each arm's default program in each phase."""
    drawings: list[Drawing] = [partial(draw_verdicts, report)]
    for phase in report.phases:
        judged = [
            program for program in programs(report) if program.phase == phase and program.default and program.judged
        ]
        slices = report.mesh.slices
        tables = [traffic(program.rows, num_devices=num_devices(report), slices=slices) for program in judged]
        top = max((float(table.total.max()) for table in tables), default=0.0)
        drawings += [
            partial(draw_matrices, program, table, top=top, num_devices=num_devices(report))
            for program, table in zip(judged, tables, strict=True)
            if table.by_axes
        ]
    return drawings


def draw_verdicts(report: Report) -> Picture:
    """Bytes per step by verdict, one bar per program, with a line at what the plan needs."""
    phases = report.phases
    heights = [0.36 * max(len(phase.headline), 1) for phase in phases.values()]
    source = f"{report.case.model.name} on {report.mesh.name} ({report.mesh.topology}), {_COUNTED}"
    high = [sum(heights), _GAP * len(heights), 0.35]
    names = [_name(line) for phase in phases.values() for line in phase.headline]
    left = 0.4 + 0.075 * max(map(len, names), default=0)
    with open_figure("Bytes on the wire per step, by verdict", [source], high=high) as (figure, tall, top):
        for (phase, phase_report), height in zip(phases.items(), heights, strict=True):
            top -= _GAP + height
            panel = figure.add_axes((left / WIDE, (top + 0.35) / tall, (WIDE - left - 0.2) / WIDE, height / tall))
            _bars(panel, phase, phase_report)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False)
        caption = "Compiled, not measured: bytes on the wire in one step, mean over devices, by verdict"
        return save_figure("verdicts", caption, figure)


def _bars(panel: Axes, phase: str, phase_report: PhaseReport) -> None:
    lines = phase_report.headline
    rows = np.arange(len(lines))
    left = np.zeros(len(lines))
    for verdict, colour in VERDICTS.items():
        widths = np.array([getattr(line, verdict) or 0 for line in lines], dtype=float)
        panel.barh(rows, widths, left=left, color=colour, label=verdict, height=0.66)
        left += widths
    panel.axvline(phase_report.inherent_total, color=INK, linewidth=1.2, linestyle=(0, (4, 2)), label="the plan needs")
    longest = max(float(left.max(initial=0)), phase_report.inherent_total, 1)
    for row, (line, end) in enumerate(zip(lines, left, strict=True)):
        amount = bytes_text(line.wire_bytes) if line.wire_bytes is not None else str(line.status)
        # A label that the plan's line would cross is placed behind it.
        position = phase_report.inherent_total if end < phase_report.inherent_total < end + 0.13 * longest else end
        panel.annotate(
            amount, (position, row), (5, 0), textcoords="offset points", va="center", fontsize=8, parse_math=False
        )
    panel.set_yticks(rows, [_name(line) for line in lines], parse_math=False)
    panel.invert_yaxis()
    panel.set_xlim(0, longest * 1.14)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
    panel.set_title(f"{phase}, mean over devices", loc="left")


def _name(line: HeadlineRow) -> str:
    return f"{line.title}  {line.cell}"


def draw_matrices(program: Program, table: Traffic, *, top: float, num_devices: int) -> Picture:
    """Traffic matrices, device × device: one panel per axes and one for the total, on one scale."""
    panels = table.panels
    wide = max(_PANEL * len(panels) + 1.6, WIDE)
    title = f"{program.phase}: logical bytes from device to device in one step of {program.title} {program.cell}"
    with open_figure(title, [_COUNTED], high=[_PANEL + 0.4], wide=wide) as (figure, tall, _):
        square = ((_PANEL - 0.45) / wide, (_PANEL - 0.45) / tall)
        cells = [figure.add_axes(((0.55 + _PANEL * index) / wide, 0.5 / tall, *square)) for index in range(len(panels))]
        norm = LogNorm(vmin=max(top / 1e6, 1.0), vmax=max(top, 10.0), clip=True)
        for cell, (axes, matrix) in zip(cells, panels.items(), strict=True):
            _matrix(cell, matrix, norm=norm)
            what = "total" if axes not in table.by_axes else axes_text(axes)
            cell.set_title(f"{what}: {bytes_text(matrix.sum() / num_devices)}", loc="left", parse_math=False)
        cells[0].set_ylabel("from device")
        colorbar_axes = figure.add_axes(((_PANEL * len(panels) + 0.65) / wide, 0.5 / tall, 0.12 / wide, square[1]))
        bar = figure.colorbar(ScalarMappable(norm=norm, cmap=COLOURS), cax=colorbar_axes)
        bar.set_label("bytes a step, log scale", fontsize=8)
        bar.ax.minorticks_off()
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: bytes_text(value)))
        caption = (
            f"{program.title}, {program.phase}: logical bytes from device to device in one compiled step "
            f"(a collective's bytes spread evenly over the other members of its group; panels say the mean a device)"
        )
        return save_figure(f"traffic-{program.phase}-{program.arm}", caption, figure)


def _matrix(cell: Axes, matrix: Matrix, *, norm: LogNorm) -> None:
    """One matrix; white where nothing is sent; few ticks, so that 256 devices fit."""
    size = len(matrix)
    cell.imshow(np.ma.masked_equal(matrix, 0), cmap=COLOURS, norm=norm, interpolation="nearest")
    ticks = np.arange(0, size, max(1, size // 8))
    cell.set_xticks(ticks, ticks)
    cell.set_yticks(ticks, ticks)
    cell.set_xlabel("to device")
    for side in ("top", "right"):
        cell.spines[side].set_visible(True)


@contextmanager
def open_figure(
    title: str, labels: Sequence[str], *, high: Sequence[float], wide: float = WIDE
) -> Iterator[tuple[Figure, float, float]]:
    """In our style: a figure with its heading, how tall it is, and where below the heading begins, in inches.

    high: of the parts below the heading.  Positions are in inches: letting matplotlib measure every text takes seconds.
    """
    head = tall = heading_inches(labels)
    for part in high:  # not as a sum of them: the last bit of a place decides over names in an SVG
        tall += part
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(wide, tall))
        draw_heading(figure, title, labels)
        yield figure, tall, tall - head


def draw_heading(figure: Figure, title: str, labels: Sequence[str]) -> None:
    """Draw a title and, below it, the sources of the numbers: `heading_inches` high.

    The source labels of figures of time can be long.
    """
    wide, tall = figure.get_size_inches()
    figure.text(0.12 / wide, 1 - 0.24 / tall, title, weight="bold", fontsize=10.5, parse_math=False)
    for index, line in enumerate(_lines(labels)):
        height = 1 - (0.42 + 0.16 * index) / tall
        figure.text(0.12 / wide, height, line, fontsize=8, color=UNCLEAR, parse_math=False)


def heading_inches(labels: Sequence[str]) -> float:
    """The height that `draw_heading` needs."""
    return 0.36 + 0.16 * len(_lines(labels))


def _lines(labels: Sequence[str]) -> list[str]:
    return [line for label in dict.fromkeys(labels) for line in textwrap.wrap(label, width=118)]


def draw_legend(figure: Figure, *, ncols: int, fontsize: float | None = None) -> None:
    """Below all panels, each label once, whichever panel has it."""
    handles: dict[str, Artist] = {}
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()), list(handles), loc="lower center", ncols=ncols, frameon=False, fontsize=fontsize
    )


def save_figure(name: str, caption: str, figure: Figure) -> Picture:
    """A figure as PNG and SVG, reproducible byte for byte."""
    png, svg = BytesIO(), BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Glyph .* missing"
        )  # a run's names may have glyphs of no font: drawn as boxes
        figure.set_dpi(DPI)
        FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
        figure.set_dpi(72)
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None, "Creator": None})
    legal = _NO_XML.sub("\N{REPLACEMENT CHARACTER}", svg.getvalue().decode())
    return Picture(name=name, caption=caption, png=png.getvalue(), svg=legal.encode())
