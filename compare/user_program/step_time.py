"""The modelled step of a user's program: where its time goes, and its longest operations (docs/model.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from compare.hlo.collective import Collective
from compare.hlo.text.metadata import SourceNames
from compare.hlo.text.module import Module
from compare.metrics.operations import ProgramText, list_operations
from compare.metrics.summary import summarize_tracks
from compare.metrics.work import Peaks
from compare.report.model.timing import Operation, TraceSummary
from compare.report.rows import collective_row
from compare.run.errors import WorkError
from compare.schedule.hardware import Hardware
from compare.schedule.schedule import model_in_order
from compare.timeline.timeline import Timeline
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTracks
from compare.verdict.verdict import judge
from meshes.devices.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """One modelled step, means over devices."""

    timeline: Timeline
    summary: TraceSummary
    by_kind: pd.DataFrame
    """Columns axes, kind, executions, payload_bytes, communication_ns, exposed_ns, hidden_ns, wait_ns."""
    operations: tuple[Operation, ...]
    """The longest, the longest first."""


def model_program(
    module: Module,
    rows: Sequence[Collective],
    *,
    topology: str,
    axes: Mapping[str, int],
    names: SourceNames | None = None,
) -> StepTime:
    """Model a step of a program that was compiled for a TPU slice.

    topology: that slice, like `v6e:2x4`, whose i-th chip, row by row, is logical device i.  Raises `WorkError` where it
    is empty, `MeshError` for one that does not exist, `TimingError` where the program does not fit it, or has no times.
    """
    if not topology:
        raise WorkError(
            "for which TPU slice this program was compiled is not recorded; write --topology v6e:2x4 "
            "(in Python topology='v6e:2x4')"
        )
    slice_ = Topology.parse(topology)
    timeline, hardware = model_in_order(module, rows, slice_), Hardware.of(slice_.generation)
    return describe_step(timeline, module, rows, hardware=hardware, axes=axes, names=names)


def describe_step(
    timeline: Timeline,
    module: Module,
    rows: Sequence[Collective],
    *,
    hardware: Hardware,
    axes: Mapping[str, int],
    names: SourceNames | None = None,
) -> StepTime:
    """A timeline of a program in its sums.  hardware: the rates that it was modelled with."""
    tracks = DeviceTracks.of(timeline)
    text = ProgramText(
        module,
        # The program's text escapes quotation marks: weights[\\'mlp\\'].
        parameters={
            number: item.op_name.replace("\\'", "'") for number, item in module.entry.parameters.items() if item.op_name
        },
        caches=module.aliased_parameters,
        names=names,
    )
    reached = Peaks(flops_per_s=hardware.flops_per_ns * 1e9, memory_bytes_per_s=hardware.hbm_bytes_per_ns * 1e9)
    report_rows = [collective_row(verdict) for verdict in judge(rows, (), axes=axes).verdicts]
    return StepTime(
        timeline=timeline,
        summary=summarize_tracks(tracks),
        by_kind=measure_times(tracks, by=["axes", "kind"]).means(),
        operations=list_operations(tracks, text, rows=report_rows, reached=reached),
    )
