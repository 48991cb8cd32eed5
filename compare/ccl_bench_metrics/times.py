"""Metrics of time: steps, communication, overlap, bubble, and what memory costs (docs/metrics.md, section 13)."""

import numpy as np
import pandas as pd

from compare.ccl_bench_metrics.card import Card
from compare.ccl_bench_metrics.errors import NotApplicable
from compare.ccl_bench_metrics.subject import Subject
from compare.ccl_bench_metrics.value import Detail, Value, applicable, in_seconds
from compare.hlo.emission.hlo_category import category_of
from compare.metrics.devices import arrival_lags, per_device, stragglers
from compare.metrics.pipeline import find_ticks, summarize_pipeline
from compare.metrics.summary import summarize_tracks
from compare.report.model.timing import TraceTimes
from compare.schedule.work.memory import copied_bytes
from compare.timeline.intervals import Union
from compare.timeline.timeline import COMMUNICATION, COMPUTE, OCCUPIED, PART
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTrack, spans
from meshes.devices.generations import GENERATIONS

NO_DEVICE = "the trace shows no device, so no time of one"
_PREFILL, _DECODE = "prefill", "decode"
_COPY = r"^%?(?:copy|slice|dynamic-slice|dynamic-update-slice)-start\b"
_COPY_OP = r"^%?(?:copy|slice|dynamic-slice|dynamic-update-slice)-(?:start|done)\b"


def _per_step(subject: Subject) -> TraceTimes:
    return summarize_tracks(subject.tracks).per_step


def _step_ns(subject: Subject) -> float:
    return applicable(_per_step(subject).step_ns, "the trace holds no step")


def avg_step_time(subject: Subject) -> Value:
    """The mean step."""
    return Value(_step_ns(subject) / 1e9, {"each_step_s": [*_steps(subject)]})


def _steps(subject: Subject) -> list[float]:
    """Each step, mean over the devices."""
    frame = measure_times(subject.tracks).frame()
    means = (frame["step_ns"] * frame["weight"]).groupby(frame["step"]).sum() / frame.groupby("step")["weight"].sum()
    return [float(value) / 1e9 for value in means]


def ttft(subject: Subject) -> Value:
    """The step of a prefill; of a trace of a whole inference its first step."""
    if subject.phase == _DECODE:
        raise NotApplicable("this is a decode step, which gives no first token")
    steps = _steps(subject)
    if not subject.phase:
        _check_inference(subject)
        return Value(steps[0], {"each_step_s": [*steps]})
    return avg_step_time(subject)


def tpot(subject: Subject) -> Value:
    """The step of a decode; of a trace of a whole inference the mean of those after the first."""
    if subject.phase == _PREFILL:
        raise NotApplicable("this is a prefill, which gives the first token and no other")
    if subject.phase:
        return avg_step_time(subject)
    card = _check_inference(subject)
    if card.number("workload", "data", "output_len") <= 1:
        raise NotApplicable("output_len is 1: there is no token after the first")
    steps = _steps(subject)
    if len(steps) < 2:
        raise NotApplicable("the trace holds one step: there is no token after the first")
    return Value(sum(steps[1:]) / len(steps[1:]), {"each_step_s": [*steps]})


def _check_inference(subject: Subject) -> Card:
    """The card.  `NotApplicable` where there is none, or it is of no inference."""
    card = subject.card
    if card is None:
        raise NotApplicable("there is no workload card that says whether this is inference")
    if card.find("workload", "model", "phase") != "inference":
        raise NotApplicable("the workload card says that this is no inference")
    return card


def communication_fraction(subject: Subject) -> Value:
    """Communication ÷ step."""
    per_step = _per_step(subject)
    share = applicable(per_step.communication_fraction, NO_DEVICE)
    return Value(
        _percent(share),
        {"communication_s": in_seconds(per_step.communication_ns), "step_s": in_seconds(per_step.step_ns)},
    )


def communication_ratio(subject: Subject) -> Value:
    """Communication ÷ the time in which the device computes or communicates."""
    per_step, busy = _per_step(subject), _busy_ns(subject)
    communication = applicable(per_step.communication_ns, NO_DEVICE)
    if not busy:
        raise NotApplicable("no device does anything in a step")
    return Value(100 * communication / busy, {"communication_s": communication / 1e9, "busy_s": busy / 1e9})


def _busy_ns(subject: Subject) -> float:
    tracks = subject.tracks
    total = sum(
        track.weight
        * float((Union.of(track.starts, track.stops) | track.busy).inside(track.begins, track.ends)[track.known].sum())
        for track in tracks.devices
    )
    return total / max(tracks.known_device_steps, 1)


def total_communication_time(subject: Subject) -> Value:
    """Of one device in one step."""
    per_step = _per_step(subject)
    by_kind: dict[str, Detail] = {kind: in_seconds(part.communication_ns) for kind, part in per_step.by_kind.items()}
    by_axes: dict[str, Detail] = {axes: in_seconds(part.communication_ns) for axes, part in per_step.by_axes.items()}
    total_ns = applicable(per_step.communication_ns, NO_DEVICE)
    return Value(total_ns / 1e9, {"by_kind_s": by_kind, "by_axes_s": by_axes})


def comm_kernel_breakdown_tpu(subject: Subject) -> Value:
    """Communication by kind, summed: kinds that run at once count once each."""
    by_kind = _per_step(subject).by_kind
    if not subject.tracks.has_devices:
        raise NotApplicable(NO_DEVICE)
    seconds: dict[str, Detail] = {kind: in_seconds(part.communication_ns) for kind, part in by_kind.items()}
    return Value(sum(part.communication_ns or 0.0 for part in by_kind.values()) / 1e9, {"by_kind_s": seconds})


def compute_comm_overlap(subject: Subject) -> Value:
    """Hidden ÷ communication."""
    per_step = _per_step(subject)
    if per_step.communication_ns == 0:
        raise NotApplicable("no step communicates: there is nothing to overlap")
    share = applicable(per_step.overlap, NO_DEVICE)
    return Value(
        _percent(share), {"hidden_s": in_seconds(per_step.hidden_ns), "exposed_s": in_seconds(per_step.exposed_ns)}
    )


def _percent(share: float) -> float:
    """Of a quotient of nine digits."""
    return round(100 * share, 7)


def straggler(subject: Subject) -> Value:
    """(longest − shortest) ÷ longest communication of a device."""
    tracks = subject.tracks
    rows = per_device(tracks, measure_times(tracks))
    times = {row.device: row.communication_ns for row in rows if row.communication_ns is not None}
    longest = max(times.values(), default=0)
    if sum(row.stands_for for row in rows) < 2 or not longest:
        raise NotApplicable("fewer than two devices communicate")
    by_device: dict[str, Detail] = {str(device): value / 1e9 for device, value in times.items()}
    lags: list[Detail] = [
        {"device": late.device, "mean_lag_s": in_seconds(late.mean_lag_ns), "last_share": late.last_share}
        for late in stragglers(arrival_lags(tracks, subject.sends))
    ]
    return Value((longest - min(times.values())) / longest, {"communication_s": by_device, "lags": lags})


def bubble_size_pipeline(subject: Subject) -> Value:
    """Bubble ÷ ticks of the pipeline."""
    stages, microbatches = subject.stages, _microbatches(subject)
    ticks = find_ticks(subject.tracks, stages, microbatches=microbatches)
    pipeline = summarize_pipeline(subject.tracks, ticks, microbatches=microbatches, num_stages=max(stages) + 1)
    if pipeline is None:
        raise NotApplicable(f"no {microbatches + max(stages)} ticks of a pipeline: no such collectives of its shift")
    shares: dict[str, Detail] = {str(stage.stage): stage.bubble_share for stage in pipeline.stages}
    whole = applicable(pipeline.bubble_share, "the ticks take no time")
    return Value(whole, {"gpipe_bubble_share": pipeline.gpipe_bubble_share, "by_stage": shares})


def _microbatches(subject: Subject) -> int:
    if subject.microbatches is None:
        raise NotApplicable("the number of microbatches is not known; give --microbatches")
    return subject.microbatches


def mfu(subject: Subject) -> Value:
    """`model_flops` of the operations ÷ (step × peak)."""
    events = subject.timeline.events
    if "flops" not in events or not events["flops"].gt(0).any():
        raise NotApplicable("the trace shows no model_flops")
    peak = _peak_flops(subject)
    done = _per_device_step(subject, "flops")
    step_s = _step_ns(subject) / 1e9
    return Value(100 * done / (step_s * peak), {"flops_per_device_step": done, "step_s": step_s, "peak_flops": peak})


def _per_device_step(subject: Subject, column: str) -> float:
    """The sum of a statistic of the leaves of one device and step, mean over the devices that record it."""
    leaves = _leaves(subject)
    leaves = leaves[leaves[column].notna()]
    recorded = set(leaves["device"].unique().tolist())
    tracks = [track for track in subject.tracks.devices if track.device in recorded]
    device_steps = sum(track.weight * int(track.known.sum()) for track in tracks)
    return float((leaves[column] * _weights(subject, leaves)).sum()) / max(device_steps, 1)


def _leaves(subject: Subject) -> pd.DataFrame:
    """The events of steps in which a device computes, waits or communicates."""
    events = subject.timeline.events
    return events[events["role"].isin((*OCCUPIED, COMMUNICATION)) & events["step"].ge(0)]


def _weights(subject: Subject, events: pd.DataFrame) -> "pd.Series[float]":
    """How many devices the device of each event stands for; 0 of none that is shown."""
    weights = {track.device: float(track.weight) for track in subject.tracks.devices}
    return events["device"].map(weights).fillna(0.0)


def _peak_flops(subject: Subject) -> float:
    """Of one device, bf16."""
    if subject.plan is not None:
        row = subject.plan.topology.generation
        return row.bf16_flops / row.devices
    if subject.card is None and "flops_per_s" in subject.timeline.rates:
        return subject.timeline.rates["flops_per_s"]
    if subject.card is None:
        raise NotApplicable("the generation of the TPU is not known: no workload card, and no --mesh NAME@TOPOLOGY")
    name = str(subject.card.find("workload", "hardware", "xpu_spec", "model")).lower()
    known = GENERATIONS.get(name.removeprefix("tpu_"))
    if known is None:
        raise NotApplicable(f"the peak of {name!r} is not known; known are {', '.join(GENERATIONS)}")
    return known.bf16_flops / known.devices


def estimated_bandwidth(subject: Subject) -> Value:
    """What the operations of one device read and write in a step ÷ the step, GB/s."""
    events = subject.timeline.events
    if "accessed_bytes" not in events or not events["accessed_bytes"].gt(0).any():
        raise NotApplicable("the trace shows no bytes_accessed")
    moved = _per_device_step(subject, "accessed_bytes")
    step_ns = _step_ns(subject)
    return Value(moved / step_ns, {"bytes_per_device_step": moved, "step_s": step_ns / 1e9})


def dominant_kernel_concentration(subject: Subject) -> Value:
    """The largest share of a category in the time of all operations."""
    leaves = _leaves(subject)
    names, weights = _categories(subject, leaves), _weights(subject, leaves)
    sums = (leaves["duration_ns"] * weights).groupby(names.to_numpy()).sum().sort_values(ascending=False)
    total = float(sums.sum())
    if not total:
        raise NotApplicable("no operation of a step takes any time")
    shares: dict[str, Detail] = {str(name): 100 * float(value) / total for name, value in sums.items()}
    of_largest = leaves[names.eq(sums.index[0]).to_numpy()]
    longest = (of_largest["duration_ns"] * weights[of_largest.index]).groupby(of_largest["hlo_op"].astype(str)).sum()
    about: dict[str, Detail] = {"category": str(sums.index[0]), "longest_operation": str(longest.idxmax())}
    return Value(max(float(value) for value in sums) / total * 100, {**about, "by_category_percent": shares})


def _categories(subject: Subject, events: pd.DataFrame) -> "pd.Series[str]":
    """A communication's kind; of any other XLA's category, by the trace or by the program."""
    kinds = events["kind"].astype(str)
    shown = events["category"].astype(str) if "category" in events else pd.Series("", index=events.index)
    known: dict[str, str] = {}
    if subject.module is not None:
        names = set(events["hlo_op"].astype(str).unique())
        items = (item for part in subject.module.computations.values() for item in part)
        known = {item.name: category_of(item) for item in items if item.name in names}
    ours = events["hlo_op"].astype(str).map(lambda name: known.get(name, "?"))
    return kinds.where(kinds.ne(""), shown.where(shown.ne(""), ours))


def memory_transfer_overhead(subject: Subject) -> Value:
    """The part of a step in which local copies run, and nothing computes or communicates."""
    copies, tracks = local_copies(subject), subject.tracks
    alone = 0.0
    for track in tracks.devices:
        of_device = copies[copies["device"].eq(track.device)].sort_values("start_ns")
        moving, busy = Union.of(*spans(of_device)), _working(subject, track)
        total = moving.inside(track.begins, track.ends) - (moving & busy).inside(track.begins, track.ends)
        alone += track.weight * float(total[track.known].sum())
    mean = alone / max(tracks.known_device_steps, 1)
    step = _step_ns(subject)
    return Value(100 * mean / step, {"copies_alone_s": mean / 1e9, "copies": len(copies)})


def _working(subject: Subject, track: DeviceTrack) -> Union:
    """When the device computes anything but a wait for a copy, or communicates."""
    events = subject.timeline.events
    computes = events[events["device"].eq(track.device) & events["role"].eq(COMPUTE)]
    other = computes[~computes["hlo_op"].astype(str).str.contains(_COPY_OP)]
    return Union.of(*spans(other)) | Union.of(track.starts, track.stops)


def average_memory_bandwidth(subject: Subject) -> Value:
    """Bytes ÷ time of local copies, all together."""
    copies = local_copies(subject)
    known = copies[copies["accessed_bytes"].gt(0) & copies["duration_ns"].gt(0)]
    if known.empty:
        raise NotApplicable("no local copy of the trace shows its bytes")
    weights = _weights(subject, known)
    moved, time = (float((known[name] * weights).sum()) for name in ("accessed_bytes", "duration_ns"))
    return Value(moved / time, {"bytes": moved, "seconds": time / 1e9, "copies": len(known)})


def local_copies(subject: Subject) -> pd.DataFrame:
    """Asynchronous copies of a device's own memory, from start to done: device, start_ns, duration_ns, accessed_bytes.

    From the line of asynchronous operations; of a device that has none there, from each start to its done.
    `NotApplicable` where no device has any.
    """
    events, asides = subject.timeline.events, subject.timeline.asides
    parts = events[events["role"].eq(PART) & events["kind"].astype(str).eq("")]
    spanning = [part for part in (parts, asides) if len(part)]
    tables = [part[part["hlo_op"].astype(str).str.contains(_COPY)] for part in spanning]
    # Profilers fill the line of asynchronous operations on one device of a host, and leave it empty on the others.
    shown = {device for part in tables for device in part["device"].unique().tolist()}
    tables.append(_paired(events[~events["device"].isin(shown)]))
    table = pd.concat([part for part in tables if len(part)] or tables[-1:], ignore_index=True)
    if table.empty:
        raise NotApplicable("the trace shows no local copies from start to done")
    accessed = table["accessed_bytes"] if "accessed_bytes" in table else pd.Series(np.nan, index=table.index)
    counted = table["hlo_op"].astype(str).map(_copied_bytes(subject)).astype(np.float64)
    return table[["device", "start_ns", "duration_ns"]].assign(accessed_bytes=counted.fillna(accessed))


def _paired(events: pd.DataFrame) -> pd.DataFrame:
    names = events["hlo_op"].astype(str)
    rows = events[names.str.contains(_COPY_OP)]
    # A start may take no time at all, and its done begin with it: the start comes first.
    rows = rows.assign(is_done=names.str.contains("-done")).sort_values(
        ["device", "start_ns", "is_done"], kind="stable"
    )
    names = names[rows.index]
    begun: dict[tuple[int, str], int] = {}
    pairs: list[tuple[int, float]] = []
    for index, device, name, start, length in zip(
        rows.index.tolist(),
        rows["device"].tolist(),
        names.tolist(),
        rows["start_ns"].tolist(),
        rows["duration_ns"].tolist(),
        strict=True,
    ):
        if "-start" in name:
            begun[device, name] = index
        elif (device, name.replace("-done", "-start")) in begun:
            pairs.append((begun.pop((device, name.replace("-done", "-start"))), start + length))
    table = events.loc[[index for index, _ in pairs]]
    return table.assign(duration_ns=np.array([end for _, end in pairs]) - table["start_ns"].to_numpy(np.float64))


def _copied_bytes(subject: Subject) -> dict[str, float]:
    """Of each copy of the program, what it reads and writes."""
    if subject.module is None:
        return {}
    items = (item for part in subject.module.computations.values() for item in part)
    return {item.name: float(copied_bytes(item)) for item in items if item.opcode in ("copy-start", "slice-start")}
