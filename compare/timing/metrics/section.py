"""All metrics of one timeline: what a report holds for every program that was timed."""

from collections.abc import Mapping, Sequence

import pandas as pd

from compare.report.model.mesh import DeviceMesh
from compare.report.model.program import CollectiveRow
from compare.report.model.timing import OneStep, PairTraffic, PipelineTimes, StepTimes, Timing, Volume
from compare.timing.metrics.collectives import collective_rows, messages
from compare.timing.metrics.devices import arrival_lags, imbalance, per_device, stragglers
from compare.timing.metrics.network.bandwidth import peaks
from compare.timing.metrics.network.gaps import interval_rows, measure_gaps
from compare.timing.metrics.network.matrix import COLUMNS, list_uncounted, traffic_matrix
from compare.timing.metrics.network.phases import bin_volume, find_up_phases, rate_traffic, summarize_network
from compare.timing.metrics.network.sent_bytes import SentBytes, bytes_sent_by
from compare.timing.metrics.pipeline import summarize_pipeline
from compare.timing.metrics.pipeline_ticks import find_ticks, stages_of
from compare.timing.metrics.summary import by_column, step_times, summarize_tracks
from compare.timing.metrics.verdicts import by_verdict, verdict_shares
from compare.timing.timeline import Timeline
from compare.timing.tracks.numbers import Number, to_number
from compare.timing.tracks.step_clipping import clip_to_steps
from compare.timing.tracks.times import Table, measure_times
from compare.timing.tracks.tracks import DeviceTracks

MOST_CELLS = 20_000
"""Pairs of devices and axes that a section's traffic matrix may have; larger ones: `traffic_matrix` only."""


def build_section(
    timeline: Timeline,
    *,
    rows: Sequence[CollectiveRow] = (),
    mesh: DeviceMesh | None = None,
    microbatches: int = 1,
    link_bytes_per_s: float | None = None,
) -> Timing:
    """The `timing` section of a report; its fields are described in docs/metrics.md.

    rows: the program's collectives as its report has them (for verdicts, wire bytes, shapes).  mesh: the report's
    mesh (for routes, stages).  link_bytes_per_s: one way, one link; none where the timeline is of no
    TPU.  What cannot be told without them is null, or an empty list.
    """
    tracks = DeviceTracks.of(timeline)
    found = bytes_sent_by(rows, mesh) if mesh is not None else {}
    table, verdicts = measure_times(tracks), verdict_shares(rows, axes=mesh.groups if mesh else None)
    summed = summarize_tracks(tracks)
    cut = clip_to_steps(tracks)
    carried = rate_traffic(tracks, cut, found)
    up = find_up_phases(carried)
    device_rows = per_device(tracks, table)
    late = arrival_lags(tracks, found)
    speeds = peaks(found, mesh, link_bytes_per_s) if mesh is not None else {}
    return Timing(
        source=summed.source,
        label=summed.label,
        devices=summed.devices,
        steps=summed.steps,
        unjoined_events=summed.unjoined_events,
        per_step=StepTimes(
            **step_times(table),
            by_axes=summed.per_step.by_axes,
            by_kind=summed.per_step.by_kind,
            by_scope=by_column(tracks, "scope"),
        ),
        notes=(*summed.notes, *_notes(found)),
        each_step=_each_step(table),
        by_verdict=by_verdict(tracks, cut, verdicts),
        collectives=collective_rows(tracks, cut, found, verdicts, speeds),
        intervals=interval_rows(measure_gaps(tracks)),
        network=summarize_network(tracks, up),
        volume=_volume(bin_volume(tracks, carried, up)),
        matrix=_matrix(found, mesh),
        pipeline=_pipeline(tracks, mesh, microbatches),
        per_device=device_rows,
        imbalance=imbalance(device_rows),
        stragglers=stragglers(late),
        messages=messages(tracks, rows),
    )


def _each_step(table: Table) -> tuple[OneStep, ...]:
    """The means over devices of each step by itself."""
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
    """Curves by axes: of `bins` equal parts of the step, the bytes sent, and how much of each the network is up."""
    return {
        str(axes): Volume(
            bins=len(rows),
            wire_bytes=tuple(to_number(value) for value in rows["wire_bytes"]),
            up=tuple(to_number(value) for value in rows["up"]),
        )
        for axes, rows in table.groupby("axes")
    }


def _matrix(found: Mapping[str, SentBytes], mesh: DeviceMesh | None) -> tuple[PairTraffic, ...] | None:
    if mesh is None or len(mesh.devices) ** 2 > MOST_CELLS:
        return None
    table = traffic_matrix(found, mesh)
    rows = zip(*(table[name].tolist() for name in COLUMNS), strict=True)
    return tuple(
        PairTraffic(
            device_from=source, device_to=target, axes=axes, logical_bytes=to_number(logical),
            routed_bytes=to_number(routed),
        )
        for source, target, axes, logical, routed in rows
    )  # fmt: skip


def _pipeline(tracks: DeviceTracks, mesh: DeviceMesh | None, microbatches: int) -> PipelineTimes | None:
    stages = stages_of(mesh) if mesh is not None else [0]
    if max(stages) == 0:
        return None
    found = find_ticks(tracks, stages, microbatches=microbatches)
    return summarize_pipeline(tracks, found, microbatches=microbatches, num_stages=max(stages) + 1)


def _notes(found: Mapping[str, SentBytes]) -> list[str]:
    left = list_uncounted(found)
    return [f"the traffic matrix leaves out {', '.join(left)}: how often each device runs them is unknown"] * bool(left)
