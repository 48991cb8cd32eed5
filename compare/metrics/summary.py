"""A one-page summary of a timeline: means over devices and steps, in total, by axes and by kind of collective."""

from collections.abc import Mapping

import pandas as pd

from compare.metrics.measured_power import measure_power
from compare.report.model.timing import PartTimes, TraceSummary, TraceTimes
from compare.timeline.timeline import Timeline
from compare.timeline.tracks.numbers import Number, to_number, to_ratio
from compare.timeline.tracks.times import TIMES, VOLUMES, TimeTable, measure_times
from compare.timeline.tracks.tracks import DeviceTracks


def trace_summary(timeline: Timeline) -> TraceSummary:
    """The summary of any profile or modelled schedule.  Raises `TimingError` where there are no steps.

    Times are per device and step, means over both; each shown device counts as many as it represents.  `None` where
    a field does not apply, or the timeline does not show it.
    """
    return summarize_tracks(DeviceTracks.of(timeline))


def summarize_tracks(tracks: DeviceTracks, *, verdicts: pd.DataFrame | None = None) -> TraceSummary:
    """The same, from the tracks of a timeline.  verdicts: from `verdict_shares`, where the program was judged."""
    timeline = tracks.timeline
    return TraceSummary(
        source=timeline.source,
        label=timeline.label,
        devices=timeline.num_devices,
        steps=timeline.num_steps,
        unjoined_events=timeline.unjoined_events,
        per_step=TraceTimes(
            **step_times(measure_times(tracks)),
            by_axes=by_column(tracks, "axes"),
            by_kind=by_column(tracks, "kind"),
        ),
        notes=tuple(tracks.notes),
        power=measure_power(tracks, verdicts=verdicts),
    )


def step_times(table: TimeTable) -> dict[str, Number]:
    """The fields of `Times`, from a table of full steps."""
    return _times(table.mean_rows()[()])


def by_column(tracks: DeviceTracks, column: str) -> dict[str, PartTimes]:
    """The means of each value of one column, with executions and payload."""
    return {
        value: PartTimes(**_times(row), **{name: to_number(row[name]) for name in VOLUMES})
        for (value,), row in measure_times(tracks, by=[column]).mean_rows().items()
    }


def _times(row: Mapping[str, float]) -> dict[str, Number]:
    communication, hidden, step = row["communication_ns"], row["hidden_ns"], row["step_ns"]
    return {
        **{name: to_number(row[name]) for name in TIMES},
        "communication_fraction": to_ratio(communication, step),
        "overlap": to_ratio(hidden, communication),
    }
