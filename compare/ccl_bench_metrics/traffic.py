"""Metrics of what is sent: volumes, calls, bandwidths, windows, and what links give (docs/metrics.md, section 13)."""

from dataclasses import replace

import numpy as np
import pandas as pd

from compare.ccl_bench_metrics.errors import NotApplicable
from compare.ccl_bench_metrics.subject import Subject, weighted_median
from compare.ccl_bench_metrics.value import Detail, Value, applicable, in_seconds
from compare.metrics.network.gaps import interval_rows, measure_gaps, quantiles
from compare.schedule.hardware import Hardware
from compare.schedule.schedule import model_step
from compare.timeline.tracks.times import sum_volumes

_NO_BYTES = "the bytes of a collective are not known; give the program with --hlo"
_NO_GROUPS = "the groups of the collectives are not known; give the program with --hlo"
_NO_AXES = "the axes of the collectives are not known; give --mesh or --axes, and the program with --hlo"


def bandwidth(subject: Subject, kind: str) -> Value:
    """The median bus bandwidth of a kind's executions, GB/s."""
    rows = subject.communications
    executions = rows[rows["kind"].astype(str).eq(kind) & rows["step"].ge(0)]
    if executions.empty:
        raise NotApplicable(f"no step has any {kind}")
    if executions["group_size"].isna().all():
        raise NotApplicable(_NO_GROUPS)
    rates = (
        executions["payload_bytes"]
        * executions["bus_factor"]
        / executions["duration_ns"].where(executions["duration_ns"] > 0)
    )
    rated = executions.assign(rate=rates)
    median = applicable(weighted_median(rated, "rate"), _NO_BYTES)
    known = rated[rated["rate"].notna()]
    at = [0.0, 0.25, 0.5, 0.75, 1.0]
    spread = quantiles(known["rate"].to_numpy(np.float64), known["weight"].to_numpy(np.int64), at)
    return Value(median, {"executions": len(executions), "quartiles_gb_per_s": [*spread]})


def volume(subject: Subject, kind: str | None = None) -> Value:
    """Payload of a kind, or of all, of one device and step, GB."""
    table = sum_volumes(subject.tracks, by=["kind"])
    sums = {str(row["kind"]): float(row["payload_bytes"]) for row in table.to_dict("records")}
    chosen = [amount for name, amount in sums.items() if kind in (None, name)]
    by_kind: dict[str, Detail] = {name: amount / 1e9 if np.isfinite(amount) else None for name, amount in sums.items()}
    return Value(applicable(sum(chosen), _NO_BYTES) / 1e9, {"by_kind_gb": by_kind})


def coll_call_num(subject: Subject) -> Value:
    """Executions of collectives of one device in one step."""
    table = sum_volumes(subject.tracks, by=["kind"])
    counts = {str(row["kind"]): float(row["executions"]) for row in table.to_dict("records")}
    return Value(sum(counts.values()), {"by_kind": {**counts}})


def traffic_window(subject: Subject) -> Value:
    """The median positive interval from the traffic of one axis to that of another, s."""
    table = measure_gaps(subject.tracks)
    across = table[table["from_axes"].astype(str) != table["to_axes"].astype(str)]
    if not _axes_known(subject):
        raise NotApplicable(_NO_AXES)
    rest = across[across["interval_ns"] > 0]
    if rest.empty:
        raise NotApplicable("no traffic of one axis is followed, after a rest, by that of another")
    pairs: list[Detail] = [
        {
            "from_axes": row.from_axes,
            "to_axes": row.to_axes,
            "n": row.n,
            "median_s": in_seconds(row.median_ns),
            "p95_s": in_seconds(row.p95_ns),
        }
        for row in interval_rows(across)
    ]
    return Value(weighted_median(rest, "interval_ns") / 1e9, {"intervals": pairs})


def _axes_known(subject: Subject) -> bool:
    names = subject.tracks.comms["axes"].astype(str)
    return bool(len(names)) and not names.isin(["?", ""]).all()


def traffic_distribution(subject: Subject) -> Value:
    """The largest axis' share of the wire bytes."""
    if not len(subject.tracks.comms):
        raise NotApplicable("no step communicates")
    if not _axes_known(subject):
        raise NotApplicable(_NO_AXES)
    wire = _wire_bytes(subject)
    if not np.isfinite(list(wire.values())).all():
        raise NotApplicable(_NO_GROUPS)
    total = sum(wire.values())
    if not total:
        raise NotApplicable("no step sends anything")
    shares: dict[str, Detail] = {axes: amount / total for axes, amount in sorted(wire.items())}
    return Value(max(wire.values()) / total, {"by_axes": shares, "wire_bytes": total})


def _wire_bytes(subject: Subject) -> dict[str, float]:
    """By axes, what a device sends in a step: payload × what it sends by byte of payload, the mean over devices."""
    if subject.sends:
        table = sum_volumes(subject.tracks, by=["collective", "axes"])
        factor = {name: float(sum(sends.factors)) / max(len(sends.factors), 1) for name, sends in subject.sends.items()}
        sent = table["payload_bytes"] * table["collective"].map(factor).astype(np.float64)
        return {str(axes): float(part.sum(skipna=False)) for axes, part in sent.groupby(table["axes"])}
    rows = subject.communications
    rows = rows[rows["step"].ge(0)]
    sent = rows["payload_bytes"] * rows["bus_factor"] * rows["weight"] / max(subject.tracks.device_steps, 1)
    return {str(axes): float(part.sum(skipna=False)) for axes, part in sent.groupby(rows["axes"].astype(str))}


def scale_up_bw_utility(subject: Subject) -> Value:
    """What twice the links' rate takes off a step, by the schedule model, %."""
    module, plan, rows = subject.module, subject.plan, subject.rows
    if module is None or plan is None:
        raise NotApplicable("the model needs the program and its mesh: a run folder, or --hlo and --mesh NAME@TOPOLOGY")
    if subject.program is not None and (subject.program.about.executed or {}).get("platform") == "cpu":
        raise NotApplicable("this program was compiled for CPU devices, which have no links")
    if subject.timeline.label.startswith("simulated on"):
        raise NotApplicable("its times are simulated on another machine, whose utility compare.simulate prints")
    rates = Hardware.of(subject.chip or plan.topology.generation)
    faster = replace(rates, link_bytes_per_ns=2 * rates.link_bytes_per_ns)
    once, twice = (
        float(model_step(module, rows, plan, hardware=hardware).steps["duration_ns"].max())
        for hardware in (rates, faster)
    )
    return Value(100 * (once - twice) / once, {"step_s": once / 1e9, "step_with_twice_the_rate_s": twice / 1e9})


_STEPS = {"all-reduce": 2, "all-gather": 1, "reduce-scatter": 1}
"""Steps of a ring of n, by n − 1."""


def hockney_alpha_s(subject: Subject) -> Value:
    """What a step of a ring takes before its bytes, s."""
    alpha, _, details = _hockney(subject)
    return Value(alpha, details)


def hockney_beta_s_per_byte(subject: Subject) -> Value:
    """What a byte takes in a step of a ring, s."""
    _, beta, details = _hockney(subject)
    return Value(beta, details)


def _hockney(subject: Subject) -> tuple[float, float, dict[str, Detail]]:
    """α and β of all-reduces, and those of every kind that a ring does in n − 1 steps, or twice as many."""
    rows = subject.communications
    rows = rows[rows["step"].ge(0)]
    by_kind: dict[str, Detail] = {}
    why = "no step has any all-reduce"
    for kind in _STEPS:
        executions = rows[rows["kind"].astype(str).eq(kind)]
        if executions.empty:
            continue
        fit, problem = _fit(executions, _STEPS[kind])
        why = problem if kind == "all-reduce" else why
        by_kind[kind] = (
            {"alpha_s": fit[0], "beta_s_per_byte": fit[1], "executions": len(executions)} if fit else problem
        )
    all_reduce = by_kind.get("all-reduce")
    if not isinstance(all_reduce, dict):
        raise NotApplicable(why)
    return float(all_reduce["alpha_s"]), float(all_reduce["beta_s_per_byte"]), by_kind


def _fit(rows: pd.DataFrame, rings: int) -> tuple[tuple[float, float] | None, str]:
    """The line through T ÷ steps over S ÷ n, by least squares; or why there is none."""
    size = rows["group_size"]
    known = rows[size.gt(1) & rows["payload_bytes"].gt(0) & rows["duration_ns"].gt(0)]
    if known.empty:
        return None, _NO_GROUPS if size.isna().all() else _NO_BYTES
    members = known["group_size"].to_numpy(np.float64)
    part = known["payload_bytes"].to_numpy(np.float64) / members
    moving = known["duration_ns"].to_numpy(np.float64) - np.nan_to_num(known["wait_ns"].to_numpy(np.float64))
    each = moving / 1e9 / (rings * (members - 1))
    if np.unique(part).size < 2:
        return None, "all of them are of one size: two are needed to tell α from β"
    weight = known["weight"].to_numpy(np.float64)
    middle, mean = np.average(part, weights=weight), np.average(each, weights=weight)
    slope = float(np.sum(weight * (part - middle) * (each - mean)) / np.sum(weight * (part - middle) ** 2))
    return (float(mean - slope * middle), slope), ""
