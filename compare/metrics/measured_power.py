"""What meters say of a timeline's steps: energy by part of the step, by axes and verdict, by operation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from compare.metrics.meters import choose_power, summarize_meters, to_joules
from compare.metrics.verdicts import UNKNOWN_VERDICT, VERDICTS, verdict_fractions
from compare.report.model.power import MeasuredEnergy, MeasuredPower, OperationEnergy
from compare.timeline.arrays import Floats, Times
from compare.timeline.intervals import Union
from compare.timeline.series import TEMPERATURE, EnergyCurve, Series
from compare.timeline.timeline import COMMUNICATION, COPY, OCCUPIED, PART
from compare.timeline.tracks.step_clipping import clip_to_steps
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTrack, DeviceTracks

WINDOW_NS = 1e6
"""Of the peak power: 1 ms."""
MOST_OPERATIONS = 30
_OTHERS = "others"
_UNIT = 1e6
"""Tracks count energy in µJ, where others count time in ns."""
_OP_COLUMNS = ["operation", "kind", "axes", "scope", "time_ns", "energy_j"]


@dataclass(frozen=True, slots=True)
class _Measured:
    """The power of each measured device over time."""

    curves: Mapping[int, EnergyCurve]
    powers: Mapping[int, Series]

    @property
    def covers(self) -> str:
        return "; ".join(dict.fromkeys(series.name for series in self.powers.values()))


def measure_power(tracks: DeviceTracks, *, verdicts: pd.DataFrame | None = None) -> MeasuredPower | None:
    """What was measured of a timeline's power and heat; `None` where nothing was.

    verdicts: from `verdict_shares`, where the program was judged.
    """
    timeline = tracks.timeline
    has_operations = "core_energy_j" in timeline.events and bool(timeline.events["core_energy_j"].notna().any())
    if not timeline.meters and not has_operations:
        return None
    powers = choose_power(timeline.meters)
    measured = _Measured({device: EnergyCurve(power) for device, power in powers.items()}, powers)
    steps = [_by_meters(tracks, measured, verdicts)] if set(powers) & {track.device for track in tracks.devices} else []
    steps += [_by_operations(tracks, verdicts)] if has_operations else []
    return MeasuredPower(
        heat_measured=any(meter.quantity == TEMPERATURE for meter in timeline.meters),
        meters=summarize_meters(timeline.meters),
        steps=tuple(steps),
        windows=(),
        notes=tuple(_notes(tracks, powers)),
    )


def _by_meters(tracks: DeviceTracks, measured: _Measured, verdicts: pd.DataFrame | None) -> MeasuredEnergy:
    """At every moment a device's power goes to its compute; where it only communicates, evenly to what it runs then."""
    shown = [track for track in tracks.devices if track.device in measured.curves]
    in_joules = replace(tracks, devices=tuple(_in_microjoules(track, measured.curves[track.device]) for track in shown))
    in_time = replace(tracks, devices=tuple(shown))
    means = measure_times(in_joules).mean_rows()[()]
    devices = sum(track.weight for track in shown)
    total, compute, exposed, copies = (
        means[name] * devices / _UNIT for name in ("step_ns", "compute_ns", "exposed_ns", "copy_wait_ns")
    )
    parts = {"compute": compute, "communication": exposed} | ({"copies": copies} if tracks.has_copies else {})
    step_s = measure_times(in_time).mean_rows()[()]["step_ns"] / 1e9
    cut = clip_to_steps(in_joules)
    steps = in_joules.device_steps / devices
    cut = cut.assign(energy_j=cut["exposed_share_ns"] * cut["weight"] / _UNIT / steps)
    times = clip_to_steps(in_time)
    cut["time_ns"] = times["duration_ns"].to_numpy() * times["weight"].to_numpy() / in_time.device_steps
    operations = pd.concat(
        [
            cut.rename(columns={"collective": "operation"})[_OP_COLUMNS].astype({"operation": str}),
            *(_computed(tracks, track, measured.curves[track.device], steps, devices) for track in shown),
        ],
        ignore_index=True,
    )
    peaks = [
        measured.curves[track.device].peak_of_windows(begin, end, window_ns=WINDOW_NS)
        for track in shown
        for begin, end in zip(track.begins.tolist(), track.ends.tolist(), strict=True)
    ]
    return MeasuredEnergy(
        source="meters",
        covers=measured.covers,
        devices=devices,
        energy_j=to_joules(total),
        mean_w=to_joules(total / devices / step_s),
        peak_w=to_joules(max(peaks)),
        by_part_j=_numbers({**parts, "idle": total - sum(parts.values())}),
        by_axes_j=_sums(cut, "axes"),
        by_verdict_j=_verdicts(cut, verdicts),
        operations=_largest(operations),
    )


def _in_microjoules(track: DeviceTrack, curve: EnergyCurve) -> DeviceTrack:
    """The track with the energy until each time in place of the time: lengths become µJ, and shares stay shares."""

    def at(times_ns: Times) -> Floats:
        return np.maximum.accumulate(curve.at(times_ns) * _UNIT) if times_ns.size else times_ns

    return replace(
        track,
        begins=at(track.begins),
        ends=at(track.ends),
        starts=at(track.starts),
        stops=curve.at(track.stops) * _UNIT,
        waits=np.full(track.waits.size, np.nan),
        busy=Union.of(at(track.busy.starts), at(track.busy.ends)),
        copying=Union.of(at(track.copying.starts), at(track.copying.ends)),
    )


def _computed(tracks: DeviceTracks, track: DeviceTrack, curve: EnergyCurve, steps: float, devices: int) -> pd.DataFrame:
    events = tracks.timeline.events
    rows = events[events["device"].eq(track.device) & events["role"].isin(OCCUPIED) & events["step"].ge(0)]
    begins = rows["start_ns"].to_numpy(np.float64)
    lengths = rows["duration_ns"].to_numpy(np.float64)
    return pd.DataFrame(
        {
            "operation": _operation(rows),
            "kind": "",
            "axes": "",
            "scope": rows["scope"].astype(str).to_numpy(),
            "time_ns": lengths * track.weight / steps / devices,
            "energy_j": curve.joules(begins, begins + lengths) * track.weight / steps,
        }
    )


def _operation(rows: pd.DataFrame) -> list[str]:
    return rows["hlo_op"].astype(str).where(rows["hlo_op"].astype(str) != "", rows["name"].astype(str)).tolist()


def _by_operations(tracks: DeviceTracks, verdicts: pd.DataFrame | None) -> MeasuredEnergy:
    """`vdd_energy_j` of each operation; of an asynchronous one that of its start and its done."""
    events = tracks.timeline.events
    roles = events["role"].isin((*OCCUPIED, COMMUNICATION, PART))
    rows = events[roles & events["step"].ge(0) & events["core_energy_j"].notna()]
    shown = [track for track in tracks.devices if track.device in set(rows["device"].unique().tolist())]
    devices, steps = sum(track.weight for track in shown), 1.0
    in_time = replace(tracks, devices=tuple(shown))
    if devices:
        steps = in_time.device_steps / devices
    weights = rows["device"].map({track.device: track.weight for track in shown}).fillna(0).to_numpy(np.float64)
    frame = pd.DataFrame(
        {
            "operation": rows["collective"]
            .astype(str)
            .where(~rows["role"].isin(OCCUPIED), _operation(rows))
            .to_numpy(),
            **{name: rows[name].astype(str).to_numpy() for name in ("kind", "axes", "scope")},
            "collective": rows["collective"].astype(str).to_numpy(),
            "role": rows["role"].astype(str).to_numpy(),
            "time_ns": rows["duration_ns"].to_numpy(np.float64) * weights / steps / max(devices, 1),
            "energy_j": rows["core_energy_j"].to_numpy(np.float64) * weights / steps,
        }
    )
    total = float(frame["energy_j"].sum())
    compute, copies = (float(frame.loc[frame["role"].eq(role), "energy_j"].sum()) for role in OCCUPIED)
    step_s = measure_times(in_time).mean_rows()[()]["step_ns"] / 1e9
    moved = frame[~frame["role"].isin(OCCUPIED)]
    return MeasuredEnergy(
        source="operations",
        covers="the core's power rail (vdd_energy_j)",
        devices=devices,
        energy_j=to_joules(total),
        mean_w=to_joules(total / devices / step_s) if devices else None,
        peak_w=None,
        by_part_j=_numbers(
            {
                "compute": compute,
                "communication": total - compute - copies,
                **({"copies": copies} if frame["role"].eq(COPY).any() else {}),
            }
        ),
        by_axes_j=_sums(moved, "axes"),
        by_verdict_j=_verdicts(moved, verdicts),
        operations=_largest(frame),
    )


def _verdicts(frame: pd.DataFrame, verdicts: pd.DataFrame | None) -> dict[str, float | None]:
    if verdicts is None:
        return {}
    fractions = verdict_fractions(frame["collective"].astype(str), verdicts)
    sums = frame["energy_j"].to_numpy() @ fractions
    return _numbers(dict(zip((*VERDICTS, UNKNOWN_VERDICT), sums.tolist(), strict=True)))


def _sums(frame: pd.DataFrame, column: str) -> dict[str, float | None]:
    sums = frame.groupby(frame[column].astype(str).replace("", "?"), sort=True)["energy_j"].sum()
    return _numbers({str(name): float(value) for name, value in sums.items()})


def _largest(frame: pd.DataFrame) -> tuple[OperationEnergy, ...]:
    """The operations with the most energy; the others are one row."""
    keys = _OP_COLUMNS[:4]
    sums = frame.assign(**{name: frame[name].astype(str) for name in keys}).groupby(keys, sort=True)
    table = sums[["time_ns", "energy_j"]].sum().reset_index()
    table = table.sort_values("energy_j", ascending=False, kind="stable", ignore_index=True)
    rows = table.head(MOST_OPERATIONS).to_dict("records")
    rest = table.iloc[MOST_OPERATIONS:]
    if len(rest):
        rows.append({**dict.fromkeys(keys, ""), "operation": _OTHERS, **rest[["time_ns", "energy_j"]].sum().to_dict()})
    return tuple(
        OperationEnergy(
            operation=str(row["operation"]),
            kind=str(row["kind"]),
            axes=str(row["axes"]),
            scope=str(row["scope"]),
            time_ns=to_joules(row["time_ns"]),
            energy_j=to_joules(row["energy_j"]),
        )
        for row in rows
    )


def _notes(tracks: DeviceTracks, powers: Mapping[int, Series]) -> list[str]:
    shown = [track for track in tracks.devices if track.device in powers]
    notes = []
    lacking = [track.device for track in tracks.devices if track.device not in powers]
    if powers and lacking:
        notes.append(f"no power meter of {len(lacking)} of {len(tracks.devices)} devices: their energy is in no sum")
    if not shown:
        return notes
    begins, ends = (np.concatenate([getattr(track, name) for track in shown]) for name in ("begins", "ends"))
    inside = sum(
        float(
            np.clip(
                np.minimum(track.ends, powers[track.device].times_ns[-1])
                - np.maximum(track.begins, powers[track.device].times_ns[0]),
                0,
                None,
            ).sum()
        )
        for track in shown
    )
    length = float((ends - begins).sum())
    if inside < 0.99 * length:
        notes.append(
            f"power was sampled during {100 * inside / length:.3g} % of the steps: before its first and after its last "
            "sample it is taken to stay as they say"
        )
    gaps = [
        np.median(np.diff(powers[track.device].times_ns)) for track in shown if powers[track.device].times_ns.size > 1
    ]
    spacing, step = float(np.median(gaps)) if gaps else float("inf"), length / begins.size
    if spacing > step:
        notes.append(
            "power was sampled less often than once a step: what operations take of it is little more than their share "
            "of the time"
        )
    return notes


def _numbers(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: to_joules(value) for name, value in values.items()}
