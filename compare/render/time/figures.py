"""The figures of time: exposed time by verdict, one step, the pipeline's ticks.  Each states its source."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from compare.render.figures import INK, WIDE, open_figure, save_figure
from compare.render.palette import COMPUTE, COPIES, IDLE, UNCLEAR, VERDICTS
from compare.render.picture import Drawing, Picture
from compare.render.time import network_figures
from compare.render.time.timeline_strip import LaneCommunications, Strip
from compare.render.time.timing_section import ProgramTiming, by_group
from compare.render.units import capitalize_first, time_text
from compare.report.model.timing import Number, PipelineTimes
from compare.timeline.arrays import Floats, Ints, Times
from compare.timeline.intervals import Union, intersect

_COLUMNS = 400
"""Pixel columns of the picture of a step."""

_COMM_ROWS, _COMPUTE_ROWS, _GAP = 36, 18, 15
"""Pixel rows of that picture: communication, compute, gap between devices."""

_COLOURS = {**VERDICTS, "unknown": UNCLEAR}
_PALE = 0.65
"""Fraction of white in the colour of hidden communication."""

TIMES = FuncFormatter(lambda value, _: time_text(value))


def list_drawings(
    phases: Mapping[str, Sequence[ProgramTiming]], *, num_devices: int, strips: Sequence[Strip]
) -> list[Drawing]:
    """The figures of every phase with times; some show the default programs only.

    phases: phase -> timings.
    """
    drawings: list[Drawing] = []
    for phase, timings in phases.items():
        if not timings:
            continue
        drawings.append(partial(draw_exposed, phase, timings))
        phase_strips = [strip for strip in strips if strip.phase == phase and strip.default and strip.lanes]
        drawings += [partial(draw_step, phase, phase_strips)] if phase_strips else []
        default = [timing for timing in timings if timing.default]
        piped = [
            (timing, timing.section.pipeline)
            for timing in default
            if timing.section.pipeline and timing.section.pipeline.ticks
        ]
        drawings += [partial(draw_pipeline, phase, piped)] if piped else []
        drawings += network_figures.list_drawings(phase, default, num_devices=num_devices)
    return drawings


def draw_exposed(phase: str, timings: Sequence[ProgramTiming]) -> Picture:
    """A bar for each program: compute, exposed communication by verdict, and idle time of a step."""
    groups = by_group(timings)
    heights, sources = [0.34 * len(group) for group in groups.values()], [timing.label for timing in timings]
    high = [sum(heights), 0.66 * len(heights), 0.3]
    left = 0.4 + 0.075 * max(len(timing.name) for timing in timings)
    title = f"{phase}: compute and exposed communication of a step"
    with open_figure(title, sources, high=high) as (figure, tall, top):
        for (source, members), height in zip(groups.items(), heights, strict=True):
            top -= 0.66 + height
            panel = figure.add_axes((left / WIDE, (top + 0.36) / tall, (WIDE - left - 0.2) / WIDE, height / tall))
            _bars(panel, members)
            panel.set_title(source, loc="left")
        handles, words = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, words, loc="lower center", ncols=6, frameon=False)
        caption = (
            f"{_sources(timings)}, {phase}: compute and exposed communication of a step; mean over devices and steps"
        )
        return save_figure(f"time-{phase}-exposed", caption, figure)


def _bars(panel: Axes, timings: Sequence[ProgramTiming]) -> None:
    rows, left = np.arange(len(timings)), np.zeros(len(timings))
    parts: list[tuple[str, str, list[float]]] = [
        ("compute", COMPUTE, [timing.times.compute_ns or 0 for timing in timings])
    ]
    for verdict, colour in _COLOURS.items():
        parts.append((f"exposed: {verdict}", colour, [timing.exposed(verdict) or 0 for timing in timings]))
    parts.append(("waits for local copies", COPIES, [timing.times.copy_wait_ns or 0 for timing in timings]))
    parts.append(("neither", IDLE, [timing.idle_ns for timing in timings]))
    for words, colour, amounts in parts:
        if any(amounts) or words == "compute":
            panel.barh(rows, amounts, left=left, color=colour, label=words, height=0.66)
            left += np.array(amounts)
    for row, (timing, end) in enumerate(zip(timings, left, strict=True)):
        words = f"  {time_text(timing.times.exposed_ns)} of {time_text(timing.times.step_ns)} exposed"
        panel.annotate(words, (end, row), va="center", fontsize=8, parse_math=False)
    panel.set_yticks(rows, [timing.name for timing in timings], parse_math=False)
    panel.invert_yaxis()
    panel.set_xlim(0, max(float(left.max(initial=0)), 1.0) * 1.28)
    panel.xaxis.set_major_locator(MaxNLocator(5))
    panel.xaxis.set_major_formatter(TIMES)


def draw_step(phase: str, strips: Sequence[Strip]) -> Picture:
    """One step of each default program, on one scale: for each device compute, and communication below it."""
    longest, labels = max(strip.step_ns for strip in strips), [strip.label for strip in strips]
    heights = [_height(strip) * 0.0094 for strip in strips]
    title = f"{phase}: one step: compute of each device and, below it, communication"
    high = [sum(heights), 0.4 * len(strips), 0.62]
    with open_figure(title, labels, high=high) as (figure, tall, top):
        for strip, height in zip(strips, heights, strict=True):
            top -= 0.4 + height
            panel = figure.add_axes((1.75 / WIDE, (top + 0.05) / tall, (WIDE - 1.95) / WIDE, height / tall))
            drawn = (0, longest, _height(strip), 0)
            panel.imshow(_paint_strip(strip, longest), aspect="auto", interpolation="nearest", extent=drawn)
            middles = [
                (_COMPUTE_ROWS + _COMM_ROWS) / 2 + index * (_COMPUTE_ROWS + _COMM_ROWS + _GAP)
                for index in range(len(strip.lanes))
            ]
            panel.set_yticks(middles, [lane.name for lane in strip.lanes], fontsize=8, parse_math=False)
            panel.xaxis.set_major_locator(MaxNLocator(6))
            panel.xaxis.set_major_formatter(TIMES)
            panel.tick_params(labelbottom=strip is strips[-1])
            panel.spines[["left", "bottom"]].set_visible(False)
            panel.axvline(strip.step_ns, color=INK, linewidth=1)
            name = f"{strip.title}  {strip.cell}: {time_text(strip.step_ns)} a step"
            panel.set_title(name, loc="left", parse_math=False)
        copies = (
            {"waits for local copies": COPIES} if any(lane.copies for each in strips for lane in each.lanes) else {}
        )
        patches = {"compute": COMPUTE, **copies, **_COLOURS}
        handles = [Patch(color=colour, label=words) for words, colour in patches.items()]
        handles.append(Patch(color=_pale(VERDICTS["induced"], _PALE), label="pale: hidden"))
        figure.legend(handles=handles, loc="lower center", ncols=6, frameon=False)
        sources = " and ".join(dict.fromkeys(strip.source for strip in strips)).capitalize()
        caption = (
            f"{sources}, {phase}: one step; heights are shares of the time; communication hidden behind compute is pale"
        )
        return save_figure(f"time-{phase}-strip", caption, figure)


def _height(strip: Strip) -> int:
    return len(strip.lanes) * (_COMPUTE_ROWS + _COMM_ROWS + _GAP) - _GAP


def _paint_strip(strip: Strip, longest: float) -> NDArray[np.float64]:
    """(rows, columns, RGB): in each column, heights are fractions of its time."""
    paper = np.ones((_height(strip), _COLUMNS, 3))
    width = longest / strip.unit_ns / _COLUMNS
    for index, lane in enumerate(strip.lanes):
        line = index * (_COMPUTE_ROWS + _COMM_ROWS + _GAP) + _COMPUTE_ROWS
        computes, copies = _blocks(lane.compute), _blocks(lane.copies or [])
        from_line = np.arange(_COMPUTE_ROWS)[::-1, None]
        low = np.zeros(_COLUMNS)
        for blocks, own in ((computes, COMPUTE), (copies, COPIES)):
            up = low + np.rint(pixel_coverage(*blocks, width=width, columns=_COLUMNS) * _COMPUTE_ROWS)
            paper[line - _COMPUTE_ROWS : line][(from_line >= low) & (from_line < up)] = to_rgb(own)
            low = up
        busy = Union.of(*(np.concatenate(edges).astype(np.float64) for edges in zip(computes, copies, strict=True)))
        edge = np.zeros(_COLUMNS)
        for colour, share in _communication_shares(strip, lane.talk, busy.starts, busy.ends, width):
            low, edge = edge, edge + share
            rows = np.arange(_COMM_ROWS)[:, None] + 0.5
            paper[line : line + _COMM_ROWS][(rows >= low * _COMM_ROWS) & (rows < edge * _COMM_ROWS)] = colour
    return paper


def _blocks(lane: list[int]) -> tuple[Ints, Ints]:
    """Starts and ends of a lane's blocks."""
    pairs = np.array(lane, dtype=np.int64).reshape(-1, 2)
    starts: Ints = np.cumsum(pairs[:, 0])
    return starts, starts + pairs[:, 1]


def _communication_shares(
    strip: Strip, lane_comms: LaneCommunications, begins: Times, ends: Times, width: float
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """(colour, fraction of each column) of a lane's communication; the hidden part is pale and last."""
    starts, of = np.cumsum(np.array(lane_comms.start, dtype=np.int64)), np.array(lane_comms.of, dtype=np.int64)
    stops = starts + np.array(lane_comms.length, dtype=np.int64)
    shares = np.array([[*row.parts, 0.0 if sum(row.parts) else 1.0] for row in strip.collectives]).reshape(-1, 4)
    everything, hidden = np.zeros((4, _COLUMNS)), np.zeros((4, _COLUMNS))
    for index, parts in enumerate(shares[:, :, None]):
        selected = of == index
        everything += parts * pixel_coverage(starts[selected], stops[selected], width=width, columns=_COLUMNS)
        hidden += parts * pixel_coverage(
            *intersect(starts[selected].astype(np.float64), stops[selected].astype(np.float64), begins, ends),
            width=width,
            columns=_COLUMNS,
        )
    total = np.maximum(everything.sum(axis=0), 1)
    for paleness, amounts in ((0.0, np.clip(everything - hidden, 0, None)), (_PALE, hidden)):
        for colour, share in zip(_COLOURS.values(), amounts / total, strict=True):
            yield _pale(colour, paleness), share


def _pale(colour: str, paleness: float) -> NDArray[np.float64]:
    return paleness + (1 - paleness) * np.array(to_rgb(colour))


def draw_pipeline(phase: str, piped: Sequence[tuple[ProgramTiming, PipelineTimes]]) -> Picture:
    """Which stage holds which microbatch in which tick; a tick without one is a bubble."""
    longest, labels = max(timing.times.step_ns or 1 for timing, _ in piped), [timing.label for timing, _ in piped]
    rows = [_stages(pipeline) for _, pipeline in piped]
    title = f"{phase}: the microbatch that each stage holds in each tick"
    high = [sum(0.3 * count + 0.62 for count in rows), 0.05]
    with open_figure(title, labels, high=high) as (figure, tall, top):
        for (timing, pipeline), count in zip(piped, rows, strict=True):
            top -= 0.62 + 0.3 * count
            panel = figure.add_axes((0.9 / WIDE, (top + 0.36) / tall, (WIDE - 1.1) / WIDE, 0.3 * count / tall))
            _ticks(panel, pipeline)
            panel.set_xlim(0, longest)
            panel.xaxis.set_major_locator(MaxNLocator(6))
            panel.xaxis.set_major_formatter(TIMES)
            bubble, ideal = _percent(pipeline.bubble_share), _percent(pipeline.gpipe_bubble_share)
            words = f"{timing.name}: {bubble} bubble; (p−1)/(m+p−1) is {ideal}"
            panel.set_title(words, loc="left", parse_math=False)
        caption = (
            f"{_sources([timing for timing, _ in piped])}, {phase}: the microbatch that each stage holds in each tick; "
            "hatched: none, a bubble"
        )
        return save_figure(f"time-{phase}-pipeline", caption, figure)


def _percent(share: Number) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def _stages(pipeline: PipelineTimes) -> int:
    """The number of stages (`stages` may list identical ones once)."""
    return len(pipeline.ticks[0].microbatches)


def _ticks(panel: Axes, pipeline: PipelineTimes) -> None:
    stages = _stages(pipeline)
    last_microbatch = max(
        (held for tick in pipeline.ticks for held in tick.microbatches if held is not None), default=0
    )
    shades = mpl.colormaps["viridis"](np.linspace(0.25, 0.95, last_microbatch + 1))
    for tick in pipeline.ticks:
        start, duration = tick.start_ns, tick.duration_ns
        if start is None or duration is None:
            continue
        for stage, held in enumerate(tick.microbatches):
            colours = ("none", COMPUTE) if held is None else (shades[held], "white")
            panel.barh(
                stage,
                duration,
                left=start,
                height=0.8,
                facecolor=colours[0],
                edgecolor=colours[1],
                hatch="////" if held is None else None,
                linewidth=0.8,
            )
            if held is not None and len(pipeline.ticks) <= 40:
                middle = (start + duration / 2, stage)
                panel.annotate(str(held), middle, ha="center", va="center", fontsize=8)
    panel.set_yticks(range(stages), [f"stage {stage}" for stage in range(stages)])
    panel.invert_yaxis()


def _sources(timings: Sequence[ProgramTiming]) -> str:
    return capitalize_first(" and ".join(by_group(timings)))


def pixel_coverage(starts: Ints | Times, ends: Ints | Times, *, width: float, columns: int) -> Floats:
    """For each of `columns` columns of `width`, from 0: the fraction covered by the intervals; overlaps count twice."""
    edges = np.zeros(columns + 1)
    for times, sign in ((starts, 1.0), (ends, -1.0)):
        # An interval covers all columns after its start, minus those after its end.
        position = np.clip(times / width, 0, columns)
        first = np.floor(position).astype(np.int64)
        np.add.at(edges, np.minimum(first, columns), sign * (1 - (position - first)))
        np.add.at(edges, np.minimum(first + 1, columns), sign * (position - first))
    return np.clip(np.cumsum(edges)[:columns], 0, None)
