"""All metrics of one timeline: the `timing` section of a program in a report."""

from collections.abc import Mapping, Sequence

import pandas as pd

from compare.metrics.collectives import collective_rows, messages
from compare.metrics.devices import arrival_lags, imbalance, per_device, stragglers
from compare.metrics.network.gaps import interval_rows, measure_gaps
from compare.metrics.network.matrix import COLUMNS, list_uncounted, traffic_matrix
from compare.metrics.network.phases import bin_volume, find_up_phases, rate_traffic, summarize_network
from compare.metrics.network.routes import peaks as link_peaks
from compare.metrics.network.sent_bytes import SentBytes, bytes_sent_by
from compare.metrics.operations import ProgramText, list_operations
from compare.metrics.pipeline import find_ticks, stages_of, summarize_pipeline
from compare.metrics.summary import by_column, step_times, summarize_tracks
from compare.metrics.verdict_shares import verdict_shares
from compare.metrics.verdicts import by_verdict
from compare.metrics.work import Least, Peaks, summarize_work
from compare.report.model.mesh import DeviceMesh
from compare.report.model.program import CollectiveRow
from compare.report.model.timing import OneStep, PairTraffic, PipelineTimes, StepTimes, Timing, Volume
from compare.timeline.timeline import Timeline
from compare.timeline.tracks.numbers import Number, to_number
from compare.timeline.tracks.step_clipping import clip_to_steps
from compare.timeline.tracks.times import TimeTable, measure_times
from compare.timeline.tracks.tracks import DeviceTracks

MOST_CELLS = 20_000
"""Most cells (device pairs) of a section's traffic matrix; larger ones only from `traffic_matrix`."""


def build_section(
    timeline: Timeline,
    *,
    rows: Sequence[CollectiveRow] = (),
    mesh: DeviceMesh | None = None,
    microbatches: int = 1,
    link_bytes_per_s: float | None = None,
    useful_flops: float | None = None,
    peaks: Peaks | None = None,
    reached: Peaks | None = None,
    floor: Mapping[str, Least] | None = None,
    text: ProgramText | None = None,
) -> Timing:
    """The `timing` section of a report; its fields are described in docs/metrics.md.

    rows: the report's collectives (for verdicts, wire bytes, shapes).  mesh: the report's mesh (for routes, stages).
    link_bytes_per_s: one link, one direction; `None` unless the timeline is of a TPU.  useful_flops: the model's own,
    of one device.  peaks: of one device of a TPU; reached: the same at the rates of the schedule model.  floor: the
    least that the plan needs.  text: the program.  What needs a missing argument is `None` or empty.
    """
    tracks = DeviceTracks.of(timeline)
    sent = bytes_sent_by(rows, mesh) if mesh is not None else {}
    table, verdicts = measure_times(tracks), verdict_shares(rows, axes=mesh.groups if mesh else None)
    summary = summarize_tracks(tracks, verdicts=verdicts if rows else None)
    cut = clip_to_steps(tracks)
    carried = rate_traffic(tracks, cut, sent)
    up = find_up_phases(carried)
    device_rows = per_device(tracks, table)
    lags = arrival_lags(tracks, sent)
    speeds = link_peaks(sent, mesh, link_bytes_per_s) if mesh is not None else {}
    per_step = StepTimes(
        **step_times(table),
        by_axes=summary.per_step.by_axes,
        by_kind=summary.per_step.by_kind,
        by_scope=by_column(tracks, "scope"),
    )
    return Timing(
        source=summary.source,
        label=summary.label,
        devices=summary.devices,
        steps=summary.steps,
        unjoined_events=summary.unjoined_events,
        per_step=per_step,
        power=summary.power,
        notes=(*summary.notes, *_notes(sent)),
        each_step=_each_step(table),
        by_verdict=by_verdict(tracks, cut, verdicts),
        collectives=collective_rows(tracks, cut, sent, verdicts, speeds),
        intervals=interval_rows(measure_gaps(tracks)),
        network=summarize_network(tracks, up),
        volume=_volume(bin_volume(tracks, carried, up)),
        matrix=_matrix(sent, mesh),
        pipeline=_pipeline(tracks, mesh, microbatches),
        per_device=device_rows,
        imbalance=imbalance(device_rows),
        stragglers=stragglers(lags),
        messages=messages(tracks, rows),
        work=summarize_work(
            tracks,
            per_step,
            useful_flops=useful_flops,
            peaks=peaks,
            reached=reached,
            waits=text.waits if text else frozenset(),
            floor=floor,
        ),
        operations=list_operations(tracks, text, rows=rows, reached=reached) if text else None,
    )


def _each_step(table: TimeTable) -> tuple[OneStep, ...]:
    """Each step by itself, means over devices."""
    frame = table.frame()
    return tuple(
        OneStep(
            step=int(rows["step"].iloc[0]),
            step_ns=_mean(rows, "step_ns"),
            communication_ns=_mean(rows, "communication_ns"),
            exposed_ns=_mean(rows, "exposed_ns"),
        )
        for _, rows in frame[frame["step_ns"].notna()].groupby("step")
    )


def _mean(rows: pd.DataFrame, name: str) -> Number:
    return to_number(float((rows[name] * rows["weight"]).sum() / rows["weight"].sum()))


def _volume(table: pd.DataFrame) -> dict[str, Volume]:
    """Axes -> curves over the step: per bin the bytes sent, and the fraction of time in which the network is in use."""
    return {
        str(axes): Volume(
            bins=len(rows),
            wire_bytes=tuple(to_number(value) for value in rows["wire_bytes"]),
            up=tuple(to_number(value) for value in rows["up"]),
        )
        for axes, rows in table.groupby("axes")
    }


def _matrix(sent: Mapping[str, SentBytes], mesh: DeviceMesh | None) -> tuple[PairTraffic, ...] | None:
    if mesh is None or len(mesh.devices) ** 2 > MOST_CELLS:
        return None
    table = traffic_matrix(sent, mesh)
    rows = zip(*(table[name].tolist() for name in COLUMNS), strict=True)
    return tuple(
        PairTraffic(
            device_from=source,
            device_to=target,
            axes=axes,
            logical_bytes=to_number(logical),
            routed_bytes=to_number(routed),
        )
        for source, target, axes, logical, routed in rows
    )


def _pipeline(tracks: DeviceTracks, mesh: DeviceMesh | None, microbatches: int) -> PipelineTimes | None:
    stages = stages_of(mesh) if mesh is not None else [0]
    if max(stages) == 0:
        return None
    ticks = find_ticks(tracks, stages, microbatches=microbatches)
    return summarize_pipeline(tracks, ticks, microbatches=microbatches, num_stages=max(stages) + 1)


def _notes(sent: Mapping[str, SentBytes]) -> list[str]:
    uncounted = list_uncounted(sent)
    return [f"the traffic matrix leaves out {', '.join(uncounted)}: how often each device runs them is unknown"] * bool(
        uncounted
    )
