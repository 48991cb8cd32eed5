"""The energy of a modelled step, by component and by verdict, its power over time, and two steps compared."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from compare.energy.amounts import (
    AMOUNTS,
    event_amounts,
    joules,
    span,
    span_of_ratio,
    static_amounts,
)
from compare.energy.coefficients import BOUNDS, COMPONENTS, HIGH, JOULES, LOW, VALUE, energy_calibrated_on, joule_rates
from compare.metrics.verdicts import VERDICTS
from compare.metrics.work import Peaks
from compare.report.model.energy import EnergyDifference, EnergyModel, StepEnergy
from compare.report.model.timing import Side, Times, VerdictTimes
from compare.timeline.arrays import Floats, Ints
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.timeline import COMMUNICATION, COMPUTE, Timeline
from meshes.devices.chip import Chip

REST = "rest"
"""What is no communication with a verdict: compute, its static power, and communication of unknown verdict."""
VERDICTS_AND_REST = (*VERDICTS, REST)

WINDOW_NS = 1e6
"""Least length of a window of power; a shorter step is one window."""
MOST_WINDOWS = 1000
"""Most windows of a report; those of a longer step are pooled."""

TIME_ERROR = 0.15
"""Median of the schedule model's errors against measurements (docs/model.md): of a step's time, up or down."""

_DIGITS = 11
"""Significant digits of a total in joules or watts: six rounded parts add up to it within 1e-9."""


def list_coefficients(chip: Chip) -> EnergyModel:
    """As a report has them."""
    rows = {name: chip.energy[name] for name in COMPONENTS}
    return EnergyModel(name=chip.title, calibrated_on=energy_calibrated_on(chip), coefficients=rows)


def list_rates(model: EnergyModel) -> Floats:
    """(6,): joules per unit of what is counted, by a report's coefficients."""
    rows = model.coefficients
    return np.array([rows[name].value * JOULES[rows[name].unit] for name in COMPONENTS])


def measure_energy(
    timeline: Timeline,
    per_step: Times,
    by_verdict: Mapping[str, VerdictTimes],
    shares: pd.DataFrame,
    chip: Chip,
    *,
    per_chip: int,
    peaks: Peaks,
    tokens: int,
) -> StepEnergy | None:
    """The energy of a modelled timeline's step on the full mesh; `None` where work or its times are unknown.

    per_step, by_verdict: of the timeline's section; shares: of `verdict_shares`.  per_chip: devices of one chip; peaks:
    of a device.
    """
    if timeline.source != "modelled" or not set(WORK_COLUMNS) <= set(timeline.events.columns):
        return None
    chips, step_ns = timeline.num_devices / per_chip, _step_ns(timeline)
    events = timeline.events[timeline.events["step"].to_numpy() >= 0]
    weights = _weights(timeline, events) / max(timeline.num_steps, 1)
    rows = event_amounts(events)
    amounts = _by_verdict(events, rows, weights, by_verdict, shares, static_amounts(step_ns, chips=chips), chips)
    if not step_ns or not np.isfinite(amounts).all():
        return None
    power = {
        bound: _power(events, weights * joules(rows, joule_rates(chip, bound)).sum(axis=1), step_ns=step_ns)
        + chips * joule_rates(chip, bound)[-1]
        for bound in BOUNDS
    }
    times = _time_by_component(events, weights / timeline.num_devices, per_step, peaks)
    return _describe(amounts, chip, chips=chips, tokens=tokens, step_ns=step_ns, power=power, times=times)


def _step_ns(timeline: Timeline) -> float:
    """Mean over devices and steps; a report's is rounded to picoseconds."""
    steps = timeline.steps[timeline.steps["device"].isin(timeline.stands_for)]
    return float(np.average(steps["duration_ns"], weights=_weights(timeline, steps))) if len(steps) else 0.0


def _time_by_component(events: pd.DataFrame, shares: Floats, per_step: Times, peaks: Peaks) -> dict[str, float]:
    """ns: an operation counts as memory where its bytes take longer than its FLOPs, each at the data sheet's rate.

    shares: of each event, of all devices.
    """
    step, computing, exposed = (
        float(time or 0.0) for time in (per_step.step_ns, per_step.compute_ns, per_step.exposed_ns)
    )
    of_bytes = events["memory_bytes"].to_numpy(np.float64) / peaks.memory_bytes_per_s
    is_held_up = of_bytes > events["matrix_flops"].to_numpy(np.float64) / peaks.flops_per_s
    chosen = is_held_up & events["role"].eq(COMPUTE).to_numpy()
    memory = min(computing, float((shares * events["duration_ns"].to_numpy(np.float64))[chosen].sum()))
    idle = max(0.0, step - computing - exposed)
    parts = {"compute": computing - memory, "memory": memory, "network": exposed, "idle": idle}
    return {name: round(time, 3) for name, time in parts.items()}


def _weights(timeline: Timeline, events: pd.DataFrame) -> Floats:
    """Of each event, or step, the devices that it stands for."""
    size = {device: float(len(members)) for device, members in timeline.stands_for.items()}
    devices, at = np.unique(events["device"].to_numpy(), return_inverse=True)
    weights: Floats = np.array([size.get(device, 0.0) for device in devices.tolist()])[at]
    return weights


def _by_verdict(
    events: pd.DataFrame,
    rows: Floats,
    weights: Floats,
    by_verdict: Mapping[str, VerdictTimes],
    shares: pd.DataFrame,
    static: Floats,
    chips: float,
) -> Floats:
    """(verdicts and rest, AMOUNTS): the work of each collective divided as its bytes are, exposed time as it is.

    rows: of the events; static: of the step's full time.
    """
    amounts = np.zeros((len(VERDICTS_AND_REST), len(AMOUNTS)))
    comms = events["role"].eq(COMMUNICATION).to_numpy()
    collectives = events["collective"].astype("category")
    codes = collectives.cat.codes.to_numpy().astype(np.int64)
    names = collectives.cat.categories.astype(str)
    table = shares.drop_duplicates("collective").set_index("collective")[list(VERDICTS)]
    fractions = np.nan_to_num(table.reindex(names).to_numpy(np.float64), nan=0.0)
    sums = _sum_by_code(rows[comms], weights[comms], codes[comms], len(names))
    # Not as a product of matrices, whose sums a library may add in another order on another machine.
    amounts[:-1] = (fractions[:, :, None] * sums[:, None, :]).sum(axis=0)
    total = (weights[:, None] * rows).sum(axis=0) + static
    times = [by_verdict.get(verdict) for verdict in VERDICTS]
    exposed = static_amounts(np.array([(each.exposed_ns if each else None) or 0.0 for each in times]), chips=chips)
    # A report's times are rounded: of a step that is all exposed, they can add up to more than it.
    amounts[:-1] += exposed * min(1.0, static.sum() / max(exposed.sum(), 1e-300))
    amounts[-1] = total - amounts[:-1].sum(axis=0)
    # Differences of equal sums are not exactly 0; nothing that is counted is less.
    amounts[-1] = np.where(amounts[-1] < 1e-12 * total, 0.0, amounts[-1])
    return amounts


def _sum_by_code(rows: Floats, weights: Floats, codes: Ints, size: int) -> Floats:
    """(size, columns): weighted sums of the rows of each code; those of code −1 are left out."""
    known = codes >= 0
    columns = [np.bincount(codes[known], weights=weights[known] * column[known], minlength=size) for column in rows.T]
    return np.stack(columns, axis=1)


def _power(events: pd.DataFrame, energy: Floats, *, step_ns: float) -> Floats:
    """Mean dynamic watts of equal windows of a step: an event's joules are spread evenly over it, without its wait."""
    worked = np.flatnonzero(energy)
    starts = events["start_ns"].to_numpy(np.float64)[worked]
    ends = starts + events["duration_ns"].to_numpy(np.float64)[worked]
    waits = np.nan_to_num(events["wait_ns"].to_numpy(np.float64)[worked], nan=0.0)
    count = max(1, int(step_ns // WINDOW_NS))
    window = step_ns / count
    begins = np.minimum(starts + waits, ends)
    return spread(energy[worked], begins, ends, window=window, count=count) / (window / 1e9)


def spread(amounts: Floats, begins: Floats, ends: Floats, *, window: float, count: int) -> Floats:
    """Of each of `count` windows from 0 what falls into it, if each amount is spread evenly from begin to end.

    What lies outside falls into the first or last; an amount without length falls where it is.
    """
    first, last = (np.clip((times // window).astype(np.int64), 0, count - 1) for times in (begins, ends))
    sums: Floats = np.bincount(first[first == last], weights=amounts[first == last], minlength=count).astype(np.float64)
    across = first < last
    amounts, begins, ends = (values[across] for values in (amounts, begins, ends))
    first, last = first[across], last[across]
    density = amounts / (ends - begins)
    np.add.at(sums, first, density * ((first + 1) * window - begins))
    np.add.at(sums, last, density * (ends - last * window))
    # Windows between that of the start and that of the end are full: what begins in one ends in another.
    changes = np.zeros(count + 1)
    np.add.at(changes, first + 1, density * window)
    np.add.at(changes, last, -density * window)
    sums += np.cumsum(changes)[:-1]
    return sums


def _describe(
    amounts: Floats,
    chip: Chip,
    *,
    chips: float,
    tokens: int,
    step_ns: float,
    power: Mapping[str, Floats],
    times: Mapping[str, float],
) -> StepEnergy:
    by_bound = {bound: joules(amounts, joule_rates(chip, bound)) for bound in BOUNDS}
    digits = _decimals(float(by_bound[HIGH].sum()))
    components = {
        bound: dict(zip(COMPONENTS, _rounded(table.sum(axis=0), digits), strict=True))
        for bound, table in by_bound.items()
    }
    step = {bound: round(math.fsum(parts.values()), digits) for bound, parts in components.items()}
    verdicts = {bound: _verdicts(table.sum(axis=1), step[bound], digits) for bound, table in by_bound.items()}
    mean = {bound: _significant(joule / step_ns * 1e9) for bound, joule in step.items()}
    peak = {bound: _significant(float(watts.max())) for bound, watts in power.items()}
    windows = power[VALUE]
    pooled = -(-windows.size // MOST_WINDOWS)
    return StepEnergy(
        step_j=step[VALUE],
        low_j=step[LOW],
        high_j=step[HIGH],
        by_component_j=components[VALUE],
        low_by_component_j=components[LOW],
        high_by_component_j=components[HIGH],
        by_verdict_j=verdicts[VALUE],
        low_by_verdict_j=verdicts[LOW],
        high_by_verdict_j=verdicts[HIGH],
        chips=chips,
        tokens=tokens,
        per_token_j=_significant(step[VALUE] / tokens),
        tokens_per_j=_significant(tokens / step[VALUE]),
        mean_w=mean[VALUE],
        low_mean_w=mean[LOW],
        high_mean_w=mean[HIGH],
        peak_w=peak[VALUE],
        low_peak_w=peak[LOW],
        high_peak_w=peak[HIGH],
        window_ns=_significant(step_ns / windows.size * pooled),
        power_w=tuple(round(float(part.mean()), 1) for part in np.split(windows, range(pooled, windows.size, pooled))),
        time_by_component_ns=times,
        amounts={
            verdict: {name: _significant(float(amount), 12) for name, amount in zip(AMOUNTS, row, strict=True)}
            for verdict, row in zip(VERDICTS_AND_REST, amounts, strict=True)
        },
    )


def _verdicts(sums: Floats, step: float, digits: int) -> dict[str, float]:
    """By verdict; the rest is what is left of the step, so that they add up to it."""
    known = dict(zip(VERDICTS, _rounded(sums[:-1], digits), strict=True))
    return {**known, REST: max(0.0, round(step - math.fsum(known.values()), digits))}


def amounts_of(energy: StepEnergy) -> Floats:
    """(verdicts and rest, AMOUNTS) of a report's energy."""
    return np.array([[energy.amounts[verdict][name] for name in AMOUNTS] for verdict in VERDICTS_AND_REST])


def compare_energy(left: StepEnergy, right: StepEnergy, chip: Chip, *, sides: tuple[Side, Side]) -> EnergyDifference:
    """Right less left, by component and by verdict; ranges and the ratio with the same coefficients on both sides."""
    first, second = (amounts_of(energy).sum(axis=0) for energy in (left, right))
    least_and_most, ratios = span(second - first, chip), span_of_ratio(second, first, chip)
    with_times = span_of_ratio(second, first, chip, time_error=TIME_ERROR)
    digits = _decimals(min(left.high_j, right.high_j))
    return EnergyDifference(
        left=sides[0],
        right=sides[1],
        left_j=left.step_j,
        right_j=right.step_j,
        difference_j=round(right.step_j - left.step_j, digits),
        low_j=round(least_and_most.low, digits),
        high_j=round(least_and_most.high, digits),
        by_component_j=_subtract(right.by_component_j, left.by_component_j, digits),
        by_verdict_j=_subtract(right.by_verdict_j, left.by_verdict_j, digits),
        ratio=_known(right.step_j / left.step_j) if left.step_j else None,
        low_ratio=_known(ratios.low),
        high_ratio=_known(ratios.high),
        time_error=TIME_ERROR,
        low_ratio_with_times=_known(with_times.low),
        high_ratio_with_times=_known(with_times.high),
    )


def _subtract(after: Mapping[str, float], before: Mapping[str, float], digits: int) -> dict[str, float]:
    return {name: round(after[name] - before[name], digits) for name in before}


def _known(value: float) -> float | None:
    return _significant(value) if math.isfinite(value) else None


def _decimals(total: float) -> int:
    """Of all parts of a total, so that these add up to it exactly, and both are as on another machine."""
    return max(0, _DIGITS - math.ceil(math.log10(total))) if total > 0 else 0


def _rounded(values: Floats, digits: int) -> list[float]:
    return [round(float(value), digits) for value in values]


def _significant(value: float, digits: int = _DIGITS) -> float:
    return float(f"{value:.{digits}g}")
