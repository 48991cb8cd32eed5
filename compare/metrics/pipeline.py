"""The pipeline: which stage holds which microbatch when, and the bubble share.

GPipe (Huang et al., arXiv:1811.06965) idles (p − 1)/(m + p − 1) of the time.  A shifting buffer computes in these ticks
too, on no data: a stage's bubble is the ticks in which it holds no microbatch, busy or not.
"""

from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd

from compare.report.model.timing import PipelinePhase, PipelineTimes, StageTimes, Tick
from compare.timeline.tracks.numbers import Number, to_number, to_ratio
from compare.timeline.tracks.tracks import DeviceTracks

FILL, STEADY, DRAIN = "fill", "steady", "drain"
BEFORE, AFTER = "before", "after"


def summarize_pipeline(
    tracks: DeviceTracks, table: pd.DataFrame, *, microbatches: int, num_stages: int
) -> PipelineTimes | None:
    """Means over devices and steps of `table` (from `find_ticks`); `None` where it is empty, or with one stage.

    stages: stage, ticks, bubble_ticks, pipeline_ns, bubble_ns, bubble_share, busy_in_bubble_ns, idle_ns (in all
    ticks).  bubble_share: over all stages; gpipe_bubble_share: of a uniform pipeline.  ticks: tick, start_ns,
    duration_ns, microbatches (per stage, or `None`).  phases: before, fill, steady, drain, after.
    """
    if table.empty or num_stages == 1:
        return None
    bubble = table["microbatch"].lt(0)
    weighted = pd.DataFrame(
        {
            "stage": table["stage"],
            "pipeline_ns": table["tick_ns"],
            "bubble_ns": table["tick_ns"].where(bubble, 0.0),
            "busy_in_bubble_ns": table["busy_ns"].where(bubble, 0.0),
            "idle_ns": table["tick_ns"] - table["busy_ns"],
            "bubble_ticks": bubble.astype(float),
        }
    )
    sums = weighted.drop(columns="stage").mul(table["weight"], axis=0).groupby(weighted["stage"]).sum()
    device_steps = table[table["tick"].eq(0)].groupby("stage")["weight"].sum()
    total = sums.sum()
    count = int(table["tick"].max()) + 1
    return PipelineTimes(
        stages=tuple(
            _stage(stage, row, float(device_steps[stage]), count)
            for stage, row in zip(sums.index.tolist(), sums.to_dict("records"), strict=True)
        ),
        bubble_share=to_ratio(float(total["bubble_ns"]), float(total["pipeline_ns"])),
        gpipe_bubble_share=to_ratio(num_stages - 1, microbatches + num_stages - 1),
        ticks=_ticks(table, microbatches, num_stages),
        phases=_phases(tracks, table, microbatches, num_stages),
    )


def _stage(stage: int, row: Mapping[Hashable, float], device_steps: float, count: int) -> StageTimes:
    times = ("pipeline_ns", "bubble_ns", "busy_in_bubble_ns", "idle_ns")
    return StageTimes(
        stage=stage,
        ticks=count,
        bubble_ticks=to_number(row["bubble_ticks"] / device_steps),
        **{name: to_number(row[name] / device_steps) for name in times},
        bubble_share=to_ratio(row["bubble_ns"], row["pipeline_ns"]),
    )


def _ticks(table: pd.DataFrame, microbatches: int, num_stages: int) -> tuple[Tick, ...]:
    rows = []
    for _, group in table.groupby("tick"):
        held = [int(group["tick"].iloc[0]) - stage for stage in range(num_stages)]
        rows.append(
            Tick(
                tick=held[0],
                start_ns=_mean(group, group["start_ns"]),
                duration_ns=_mean(group, group["end_ns"] - group["start_ns"]),
                microbatches=tuple(microbatch if 0 <= microbatch < microbatches else None for microbatch in held),
            )
        )
    return tuple(rows)


def _phases(tracks: DeviceTracks, table: pd.DataFrame, microbatches: int, num_stages: int) -> tuple[PipelinePhase, ...]:
    """The phases of a mean step, in order; empty ones are left out."""
    names = np.select([table["tick"] >= microbatches, table["tick"] < num_stages - 1], [DRAIN, FILL], STEADY)
    step = pd.DataFrame(
        [
            {"device": track.device, "step": int(step), "step_ns": end - begin}
            for track in tracks.devices
            for step, begin, end in zip(track.steps, track.begins, track.ends, strict=True)
        ]
    )
    edges = table.assign(phase=names).groupby(["device", "step", "weight", "phase"], sort=False)
    spans = edges.agg(start_ns=("start_ns", "min"), end_ns=("end_ns", "max")).reset_index()
    bounds = spans.groupby(["device", "step", "weight"]).agg(low=("start_ns", "min"), high=("end_ns", "max"))
    bounds = bounds.reset_index().merge(step, on=["device", "step"])
    before = bounds.assign(phase=BEFORE, start_ns=0.0, end_ns=bounds["low"])
    after = bounds.assign(phase=AFTER, start_ns=bounds["high"], end_ns=bounds["step_ns"])
    columns = ["phase", "weight", "start_ns", "end_ns"]
    phases = pd.concat([before[columns], spans[columns], after[columns]])
    return tuple(
        PipelinePhase(
            phase=phase,
            start_ns=_mean(rows, rows["start_ns"]),
            duration_ns=_mean(rows, rows["end_ns"] - rows["start_ns"]),
        )
        for phase in (BEFORE, FILL, STEADY, DRAIN, AFTER)
        if len(rows := phases[phases["phase"].eq(phase)])
    )


def _mean(rows: pd.DataFrame, values: "pd.Series[float]") -> Number:
    return to_number(float(np.average(values, weights=rows["weight"])))
