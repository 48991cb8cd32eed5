"""What a metric is taken of: a timeline, and what is known of its program, its plan and its workload."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from compare.ccl_bench_metrics.card import Card, read_card
from compare.ccl_bench_metrics.errors import MetricError, NotApplicable
from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import Module
from compare.metrics.network.sent_bytes import SentBytes, bytes_sent_by
from compare.profile.join.event_work import add_work
from compare.profile.join.profile import read_profile
from compare.profile.xplane.reader import profile_files
from compare.report.build import lay_out_mesh
from compare.report.model.program import DEFAULT_CELL
from compare.report.programs import UNREADABLE, JudgedProgram, judge_programs
from compare.report.rows import collective_row
from compare.run.folder.load_run import Run, read_run
from compare.run.folder.replace_folder import CASE, is_cell
from compare.run.folder.timelines import build_timelines
from compare.timeline.errors import TimingError
from compare.timeline.timeline import Timeline
from compare.timeline.tracks.tracks import DeviceTracks
from meshes.devices.chip import Chip
from meshes.mesh_argument import Plan, read_mesh

EXPORTED = "program"
"""In a directory that `compare.export` wrote: the run folder of its program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The words of a command line."""

    trace: Path
    axes: Mapping[str, int] = field(default_factory=dict)
    mesh: str = ""
    hlo: Module | None = None
    microbatches: int | None = None
    arm: str = ""
    phase: str = ""
    cell: str = ""
    likely_phase: str = ""
    """The one that the metric is of, taken where none was asked for and the run has it."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A timeline, and what belongs to it."""

    timeline: Timeline
    axes: Mapping[str, int]
    """Sizes by name, outermost first; empty where they are not known."""
    card: Card | None = None
    program: JudgedProgram | None = None
    """Of a run folder, or what it was exported to."""
    module: Module | None = None
    rows: tuple[Collective, ...] = ()
    """The program's collectives; empty where there is no program."""
    plan: Plan | None = None
    microbatches: int | None = None
    chip: Chip | None = None
    """What the chips of a run are taken for; `None`: their generation."""

    @cached_property
    def tracks(self) -> DeviceTracks:
        return DeviceTracks.of(self.timeline)

    @property
    def phase(self) -> str:
        """`prefill` or `decode`, "" unknown."""
        return self.program.case.phase if self.program else ""

    @cached_property
    def sends(self) -> Mapping[str, SentBytes]:
        """Collective -> what it sends; empty where the program's plan is not known."""
        if self.program is None or self.program.judgement is None:
            return {}
        rows = [collective_row(verdict) for verdict in self.program.judgement.verdicts]
        return bytes_sent_by(rows, lay_out_mesh(self.program.case))

    @property
    def stages(self) -> list[int]:
        """The stage of each device.  `NotApplicable` where there is no axis `pp`."""
        if self.axes.get("pp", 1) < 2:
            raise NotApplicable("no axis pp of more than one device is known; --mesh, or --axes with pp, names it")
        place = list(self.axes).index("pp")
        return [coordinates[place] for coordinates in product(*map(range, self.axes.values()))]

    @cached_property
    def communications(self) -> pd.DataFrame:
        """Those of all devices that start in a step.

        device, weight, collective, kind, axes, payload_bytes, duration_ns, wait_ns, group_size (NaN unknown, and of a
        permute), bus_factor (what a device sends in it by byte of payload).
        """
        tables = []
        for track in self.tracks.devices if self.tracks.has_devices else ():
            inside = self.tracks.comms.iloc[track.rows][track.step_index >= 0]
            tables.append(inside.assign(weight=track.weight))
        if not tables:
            raise NotApplicable("the trace shows no device")
        comms = pd.concat(tables, ignore_index=True)
        names, kinds = comms["collective"].astype(str), comms["kind"].astype(str)
        known = {row.name: float(max(map(len, row.groups), default=0)) for row in self.rows}
        size = names.map(known).astype(np.float64)
        if "group_size" in comms:
            size = size.fillna(comms["group_size"])
        size = size.where(kinds.ne("collective-permute"))
        return comms.assign(group_size=size, bus_factor=_bus_factors(kinds, size))


def _bus_factors(kinds: "pd.Series[str]", sizes: "pd.Series[float]") -> "pd.Series[float]":
    """NCCL-tests' factor of each (docs/metrics.md, section 4)."""
    part = (sizes - 1) / sizes
    whole = kinds.isin(["collective-permute", "collective-broadcast"])
    return (part * np.where(kinds.eq("all-reduce"), 2.0, 1.0)).where(~whole, 1.0)


def read_subject(request: Request) -> Subject:
    """The subject of a run folder, an exported directory, one of CCL-Bench, or any profile.

    `OSError`, `MetricError` or another one-line error where it cannot be read.
    """
    place = request.trace
    if any((place / folder / CASE).is_file() for folder in ("", EXPORTED)):
        _refuse_facts(request)
    if place.is_dir() and ((place / CASE).is_file() or is_cell(place)):
        return _of_run(request)
    if place.is_dir() and (place / EXPORTED / CASE).is_file():
        return _of_export(request)
    return _of_trace(request)


def _refuse_facts(request: Request) -> None:
    """`MetricError` where something is given that the program of a run or of an export has itself."""
    given = {
        "--mesh": request.mesh,
        "--axes": request.axes and not request.mesh,
        "--hlo": request.hlo,
        "--microbatches": request.microbatches,
    }
    if words := [word for word, value in given.items() if value]:
        raise MetricError(f"{', '.join(words)}: {request.trace} has its own program and mesh; leave it out")


def _of_run(request: Request) -> Subject:
    run = read_run(request.trace)
    program = _choose(run, request)
    key = program.result.key
    times = build_timelines([program], folder=run.folder)
    if key not in times.by_key:
        raise MetricError(f"{'/'.join(key)} of {run.folder} has no timeline: {times.errors.get(key, 'it failed')}")
    return replace(_of_program(program, times.by_key[key], card=None), chip=times.chip)


def _of_export(request: Request) -> Subject:
    run = read_run(request.trace / EXPORTED)
    program = _choose(run, request)
    axes = program.case.mesh.split_axes
    timeline = read_profile(trace_files(request.trace), axes=axes, hlo=program.module, rows=program.rows)
    on_tpu = timeline.source == "modelled" or (program.about.executed or {}).get("platform") == "tpu"
    assert program.module is not None
    timeline = add_work(timeline, program.module, program.rows, program.case.plan if on_tpu else None)
    return _of_program(program, timeline, card=read_card(request.trace))


def _of_program(program: JudgedProgram, timeline: Timeline, *, card: Card | None) -> Subject:
    case = program.case
    return Subject(
        timeline=timeline,
        axes=case.mesh.split_axes,
        card=card,
        program=program,
        module=program.module,
        rows=program.rows,
        plan=case.plan,
        microbatches=case.microbatches,
    )


def _choose(run: Run, request: Request) -> JudgedProgram:
    """The one program that is meant.  `MetricError`, listing them, where there are several."""
    compiled = [result for result in run.results if result.hlo is not None]
    # One that cannot be read is not passed over for another: it may be the one that is meant.
    known = [result for result in run.results if result.hlo is not None or result.status in UNREADABLE]
    phase = request.phase
    if not phase and any(result.phase == request.likely_phase for result in known):
        phase = request.likely_phase
    words = (request.arm, phase, request.cell)
    results = [result for result in run.select(words) if result in known]
    if len(results) > 1 and not request.cell:
        results = [result for result in results if result.cell == DEFAULT_CELL] or results
    if len(results) != 1:
        names = ", ".join("/".join(result.key) for result in results or compiled)
        many = "no program of these words" if not results else f"{len(results)} programs"
        raise MetricError(f"{run.folder} has {many}; choose by --framework, --phase, --variant: {names or 'none'}")
    (program,) = judge_programs(run.case, results)
    if program.module is None:
        raise MetricError(program.result.error or f"{'/'.join(program.result.key)} cannot be read")
    return program


def _of_trace(request: Request) -> Subject:
    card = read_card(request.trace) if request.trace.is_dir() else None
    plan = read_mesh(request.mesh) if request.mesh else None
    axes = request.axes
    rows = tuple(collectives(request.hlo, axes)) if request.hlo is not None and axes else ()
    timeline = read_profile(trace_files(request.trace), axes=axes, hlo=request.hlo, rows=rows)
    return Subject(
        timeline=timeline,
        axes=axes,
        card=card,
        module=request.hlo,
        rows=rows,
        plan=plan,
        microbatches=request.microbatches,
    )


def trace_files(place: Path) -> list[Path]:
    """The files of a profile; in a trace directory whose trace is named otherwise, its only JSON file."""
    try:
        return profile_files(place)
    except TimingError:
        others = sorted(path for path in place.iterdir() if path.name.endswith((".json", ".json.gz")))
        if len(others) != 1:
            raise
        return others


def weighted_median(values: pd.DataFrame, column: str) -> float:
    """The median of a column, each row as often as its device stands for one; NaN of nothing."""
    known = values[values[column].notna()]
    if known.empty:
        return math.nan
    return float(np.median(np.repeat(known[column].to_numpy(np.float64), known["weight"].to_numpy(np.int64))))
