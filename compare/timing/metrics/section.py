"""All metrics of one timeline: what a report holds for every program that was timed."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from compare.report.model.codec import decode
from compare.report.model.mesh import DeviceMesh
from compare.report.model.program import CollectiveRow
from compare.report.model.timing import Timing
from compare.timing.metrics.collectives import collective_rows, messages
from compare.timing.metrics.devices import arrival_lags, imbalance, per_device, stragglers
from compare.timing.metrics.network.bandwidth import peaks
from compare.timing.metrics.network.gaps import interval_rows, intervals
from compare.timing.metrics.network.matrix import matrix, uncounted
from compare.timing.metrics.network.phases import network, phases, traffic, volume
from compare.timing.metrics.network.sent_bytes import SentBytes, bytes_sent_by
from compare.timing.metrics.pipeline import pipeline
from compare.timing.metrics.pipeline_ticks import stages_of, ticks
from compare.timing.metrics.summary import by_column, summary
from compare.timing.metrics.verdicts import by_verdict, shares
from compare.timing.timeline import Timeline
from compare.timing.tracks.numbers import to_number
from compare.timing.tracks.step_clipping import clip_to_steps
from compare.timing.tracks.times import Table, times
from compare.timing.tracks.tracks import DeviceTracks

MOST_CELLS = 20_000
"""Pairs of devices and axes that a section's traffic matrix may have; a larger one is left to `matrix` itself."""


def section(
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
    table, verdicts = times(tracks), shares(rows, axes=mesh.groups if mesh else None)
    summed = summary(tracks)
    summed["per_step"]["by_scope"] = by_column(tracks, "scope")
    cut = clip_to_steps(tracks)
    carried = traffic(tracks, cut, found)
    up = phases(carried)
    device_rows = per_device(tracks, table)
    late = arrival_lags(tracks, found)
    speeds = peaks(found, mesh, link_bytes_per_s) if mesh is not None else {}
    return decode(Timing, {
        **summed,
        "each_step": _each_step(table),
        "by_verdict": by_verdict(tracks, cut, verdicts),
        "collectives": collective_rows(tracks, cut, found, verdicts, speeds),
        "intervals": interval_rows(intervals(tracks)),
        "network": network(tracks, up),
        "volume": _volume(volume(tracks, carried, up)),
        "matrix": _matrix(found, mesh),
        "pipeline": _pipeline(tracks, mesh, microbatches),
        "per_device": device_rows,
        "imbalance": imbalance(device_rows),
        "stragglers": stragglers(late),
        "messages": messages(tracks, rows),
        "notes": [*summed["notes"], *_notes(found)],
    })  # fmt: skip


def _each_step(table: Table) -> list[dict[str, Any]]:
    """The means over devices of each step by itself."""
    frame = table.frame()
    names = ["step_ns", "communication_ns", "exposed_ns"]
    return [
        {"step": int(rows["step"].iloc[0]),
         **{name: to_number(float((rows[name] * rows["weight"]).sum() / rows["weight"].sum())) for name in names}}
        for _, rows in frame[frame["step_ns"].notna()].groupby("step")
    ]  # fmt: skip


def _volume(found: pd.DataFrame) -> dict[str, Any]:
    """Curves by axes: of `bins` equal parts of the step, the bytes sent, and how much of each the network is up."""
    return {
        str(axes): {"bins": len(rows), "wire_bytes": [to_number(value) for value in rows["wire_bytes"]],
                    "up": [to_number(value) for value in rows["up"]]}
        for axes, rows in found.groupby("axes")
    }  # fmt: skip


def _matrix(found: Mapping[str, SentBytes], mesh: DeviceMesh | None) -> list[dict[str, Any]] | None:
    if mesh is None or len(mesh.devices) ** 2 > MOST_CELLS:
        return None
    rows = matrix(found, mesh).to_dict("records")
    whole = ("logical_bytes", "routed_bytes")
    return [{str(name): to_number(value) if name in whole else value for name, value in row.items()} for row in rows]


def _pipeline(tracks: DeviceTracks, mesh: DeviceMesh | None, microbatches: int) -> dict[str, Any] | None:
    stages = stages_of(mesh) if mesh is not None else [0]
    if max(stages) == 0:
        return None
    found = ticks(tracks, stages, microbatches=microbatches)
    return pipeline(tracks, found, microbatches=microbatches, num_stages=max(stages) + 1)


def _notes(found: Mapping[str, SentBytes]) -> list[str]:
    left = uncounted(found)
    return [f"the traffic matrix leaves out {', '.join(left)}: how often each device runs them is unknown"] * bool(left)
