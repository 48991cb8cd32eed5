"""Measured power joined to steps: whose joules they are, worked out by hand."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pandas as pd
import pytest

from compare.metrics.measured_power import measure_power
from compare.metrics.metrics_section import build_section
from compare.metrics.verdict_shares import verdict_shares
from compare.profile.power.files import PowerFiles, add_power
from compare.render.time.measured_power import power_sentences
from compare.report.model.codec import decode, encode
from compare.report.model.power import MeasuredPower
from compare.report.model.timing import Timing
from compare.report.schema import report_schema
from compare.timeline.series import CHIP, CORE, MEMORY, POWER, TEMPERATURE, EnergyCurve, Series, add_series
from compare.timeline.tracks.tracks import DeviceTracks
from tests.compare.timeline.build import comm, compute, container, row, steps, timeline

MS = 1_000_000


def series(times_ms, values, device=0, component=CHIP, name="gpu_power", quantity=POWER, host=0):
    unit = "°C" if quantity == TEMPERATURE else "W"
    return Series(
        device=device,
        name=name,
        quantity=quantity,
        component=component,
        unit=unit,
        host=host,
        times_ns=np.array(times_ms, float) * MS,
        values=np.array(values, float),
    )


def measured(events, *meters, ends=(0, 10 * MS), devices=(0,), verdicts=None):
    made = replace(timeline(events, steps(*ends, devices=devices)), meters=meters)
    return measure_power(DeviceTracks.of(made), verdicts=verdicts)


def test_energy_of_a_ramp_is_its_area():
    """From 0 to 100 W in 10 ms: 0.5 J; the first half of the time takes a quarter of it."""
    curve = EnergyCurve(series([0, 10], [0, 100]))
    assert curve.joules(np.array([0.0, 0.0]), np.array([10.0, 5.0]) * MS) == pytest.approx([0.5, 0.125])
    assert curve.at(np.array([-1.0, 11.0]) * MS) == pytest.approx([0, 0.6])
    assert curve.peak_of_windows(0, 10 * MS, window_ns=2 * MS) == pytest.approx(90)
    assert curve.peak_of_windows(0, 10 * MS, window_ns=20 * MS) == pytest.approx(50)


def test_rails_of_one_chip_are_added_between_their_samples():
    total = add_series([series([0, 10], [0, 100], component=CORE), series([5], [20], component=MEMORY)], name="both")
    assert (total.times_ns.tolist(), total.values.tolist()) == ([0, 5 * MS, 10 * MS], [20, 70, 120])


def test_a_step_s_joules_go_to_compute_exposed_communication_and_idle_time():
    """100 W for 5 ms, then 200 W: compute 0–4 ms, a hidden part, exposed 4–6 ms (0.1 + 0.2 J), idle 6–10 ms."""
    power = series([0, 5, 5, 10], [100, 100, 200, 200])
    events = [compute(0, 4 * MS), comm(3 * MS, 6 * MS), container(0, 6 * MS)]
    energy = measured(events, power).steps[0]
    assert (energy.energy_j, energy.devices, energy.mean_w, energy.peak_w) == (1.5, 1, 150, 200)
    assert energy.by_part_j == {"compute": 0.4, "communication": 0.3, "idle": 0.8}
    assert energy.by_axes_j == {"tp": 0.3}
    assert [(op.operation, op.axes, op.time_ns, op.energy_j) for op in energy.operations] == [
        ("fusion", "", 4 * MS, 0.4),
        ("all-reduce.1", "tp", 3 * MS, 0.3),
    ]


def test_communications_at_once_share_the_joules_and_verdicts_divide_them():
    """Two exposed collectives for 2 ms at 100 W: 0.1 J each; three quarters of the first are in vain."""
    rows = [
        row("a", "all-reduce", "tp", 1, [[0, 1]], inherent=10, induced=30),
        row("b", "all-gather", "dp", 1, [[0, 1]]),
    ]
    events = [comm(0, 2 * MS, name="a"), comm(0, 2 * MS, name="b", axes="dp")]
    energy = measured(events, series([0, 10], [100, 100]), verdicts=verdict_shares(rows)).steps[0]
    assert energy.by_axes_j == {"dp": 0.1, "tp": 0.1}
    assert energy.by_verdict_j == {"inherent": 0.025, "inflated": 0, "induced": 0.075, "unknown": 0.1}


def test_it_is_summed_over_devices_and_is_the_mean_of_steps():
    """Two devices of 100 and 300 W in two steps of 10 ms: 4 J a step; the events are in one step of two."""
    events = [compute(0, 10 * MS, device) for device in (0, 1)]
    meters = [series([0, 20], [watts] * 2, device) for device, watts in ((0, 100), (1, 300))]
    energy = measured(events, *meters, ends=(0, 10 * MS, 20 * MS), devices=(0, 1)).steps[0]
    assert (energy.energy_j, energy.devices, energy.mean_w, energy.peak_w) == (4, 2, 200, 300)
    assert energy.by_part_j == {"compute": 2, "communication": 0, "idle": 2}
    assert [(op.energy_j, op.time_ns) for op in energy.operations] == [(2, 5 * MS)]


def test_energy_that_operations_state_counts_starts_and_dones_and_no_loops():
    events = [compute(0, 4 * MS), container(0, 9 * MS), comm(4 * MS, 6 * MS), comm(6 * MS, 7 * MS, name="b", axes="dp")]
    made = timeline(events, steps(0, 10 * MS))
    joules = {"fusion": 0.5, "while": 9.0, "all-reduce.1": 0.1, "b": 0.2}
    events = made.events.assign(core_energy_j=made.events["name"].astype(str).map(joules))
    events["role"] = pd.Categorical(events["role"].astype(str).where(events["name"].ne("b"), "part"))
    power = measure_power(DeviceTracks.of(replace(made, events=events)))
    energy = power.steps[0]
    assert (energy.source, energy.energy_j, energy.mean_w, energy.peak_w) == ("operations", 0.8, 80, None)
    assert energy.by_part_j == {"compute": 0.5, "communication": 0.3}
    assert energy.by_axes_j == {"dp": 0.2, "tp": 0.1}
    assert not power.heat_measured


def test_without_meters_nothing_is_said_and_nothing_is_modelled():
    assert measured([compute(0, MS)]) is None
    heat = series([0, 10], [40, 50], name="t", quantity=TEMPERATURE)
    assert (measured([compute(0, MS)], heat).heat_measured, measured([compute(0, MS)], heat).steps) == (True, ())


def test_it_says_what_no_meter_saw():
    events = [compute(0, 10 * MS, device) for device in (0, 1)]
    power = measured(events, series([2, 4], [100, 100]), devices=(0, 1))
    assert power.notes == (
        "no power meter of 1 of 2 devices: their energy is in no sum",
        "power was sampled during 20 % of the steps: before its first and after its last sample it is taken to stay as "
        "they say",
    )
    seldom = measured([compute(0, 10 * MS)], series([-500, 500], [100, 100]))
    assert "less often than once a step" in seldom.notes[0]


def test_samples_are_joined_by_the_wall_clock():
    begin = 1_757_000_000 * 10**9
    files = PowerFiles(label="csv", series=(series([0, 100], [100, 100]),), zero_unix_ns=begin)
    made = replace(timeline([compute(0, 10 * MS)], steps(0, 10 * MS)), zero_unix_ns=begin + 20 * MS)
    assert add_power(made, files).meters[0].times_ns.tolist() == [-20 * MS, 80 * MS]
    away = add_power(replace(made, zero_unix_ns=begin + 3600 * 10**9), files)
    assert (away.meters, away.notes) == (
        (),
        ("csv: its samples begin -3,600 s from the first step: nothing is joined",),
    )
    assert "does not say when it began" in add_power(replace(made, zero_unix_ns=None), files).notes[0]


def test_a_report_keeps_what_was_measured_and_says_it():
    """Its section has the verdicts of the program; without meters it has no key at all."""
    rows = [row("a", "all-reduce", "tp", 1, [[0, 1]], inherent=10, induced=30)]
    plain = timeline([comm(0, 2 * MS, name="a")], steps(0, 10 * MS))
    heat = series([0, 10], [40, 60], name="HBM FW Max Temperature(C)", quantity=TEMPERATURE)
    section = build_section(replace(plain, meters=(series([0, 10], [100, 100]), heat)), rows=rows)
    document = encode(section)
    assert document["power"]["steps"][0]["by_verdict_j"] == {
        "inherent": 0.05,
        "inflated": 0,
        "induced": 0.15,
        "unknown": 0,
    }
    assert decode(Timing, json.loads(json.dumps(document))) == section
    jsonschema.validate(document["power"], report_schema(MeasuredPower))
    assert list(power_sentences(section.power)) == [
        "measured: a step takes 1.00 J on 1 device, 100 W each, at most 100 W in 1 ms; measured is gpu_power. 150 mJ "
        "are for communication that the plan does not need.",
        "HBM FW Max Temperature: 40 °C, at most 60 °C.",
    ]
    assert "power" not in encode(build_section(plain, rows=rows))
