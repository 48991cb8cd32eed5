"""The energy of a step by component and by verdict, its power over time, and two steps compared: by hand."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest

from compare.energy.step_energy import TIME_ERROR, compare_energy, list_coefficients, measure_energy, spread
from compare.metrics.metrics_section import build_section
from compare.metrics.verdict_shares import verdict_shares
from compare.metrics.work import Peaks
from compare.report.model.timing import Side
from compare.run.folder.load_run import judge_run, read_run
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.timeline import PART
from meshes.devices.chip_file import parse_chip
from meshes.devices.generations import GENERATIONS
from tests.compare.energy.conserving import check_energy, check_report_energy
from tests.compare.timeline.build import comm, compute, row, steps, timeline
from tests.places import EXAMPLE, ROOT

MS = 1e6
RANGE = {"unit": "pJ/FLOP", "value": 0.5, "low": 0.25, "high": 1.0}
TABLE = {
    "matrix": RANGE,
    "vector": RANGE | {"unit": "pJ/op"},
    "memory": {"unit": "pJ/byte", "value": 40, "low": 20, "high": 80},
    "ici": {"unit": "pJ/byte", "value": 16, "low": 8, "high": 32},
    "dcn": {"unit": "pJ/byte", "value": 200, "low": 100, "high": 400},
    "static": {"unit": "W", "value": 100, "low": 50, "high": 200},
}
CHIP = parse_chip({"energy": TABLE, "name": "by hand"}, GENERATIONS["v5e"], name="")
PEAKS = Peaks(flops_per_s=1e15, memory_bytes_per_s=1e12)
GROUPS = [[0, 1, 2, 3]]
ROWS = [
    row("all-reduce.1", "all-reduce", "tp", 1000, GROUPS, inherent=600, inflated=300, induced=100),
    row("all-gather.2", "all-gather", "tp", 1000, GROUPS, induced=1000),
]


def worked(events, work, *, length=4 * MS, stands_for=None):
    made = timeline(
        events,
        steps(0, length, devices=sorted({event["device"] for event in events})),
        source="modelled",
        stands_for=stands_for,
    )
    order = sorted(range(len(events)), key=lambda at: (events[at]["device"], events[at]["start_ns"]))
    for column, name in enumerate(WORK_COLUMNS):
        made.events[name] = [float(work[at][column]) for at in order]
    return made


def energy_of(made, *, rows=ROWS, per_chip=1, tokens=8):
    section = build_section(made, rows=rows)
    times, shares = (section.per_step, section.by_verdict), verdict_shares(rows)
    return measure_energy(made, *times, shares, CHIP, per_chip=per_chip, peaks=PEAKS, tokens=tokens)


STEP = [compute(0, MS), comm(MS, 2 * MS), comm(2 * MS, 4 * MS, name="all-gather.2", kind="all-gather")]
WORK = [(1e11, 0, 1e8, 0, 0), (0, 0, 0, 1e9, 0), (0, 0, 0, 0, 1e8)]


def test_a_step_of_four_chips_by_component_and_by_verdict():
    """Each chip: 50 mJ of products, 4 mJ of memory, 16 mJ of links, 20 mJ to other slices; 4 ms at 100 W are 0.4 J."""
    energy = energy_of(worked(STEP, WORK, stands_for={0: (0, 1, 2, 3)}))
    assert energy.by_component_j == pytest.approx(
        {"matrix": 0.2, "vector": 0, "memory": 0.016, "ici": 0.064, "dcn": 0.08, "static": 1.6}
    )
    # All of the communication is exposed: 1 ms of the all-reduce, 2 ms of the all-gather, at 4 × 100 W.
    assert energy.by_verdict_j == pytest.approx(
        {
            "inherent": 0.6 * (0.064 + 0.4),
            "inflated": 0.3 * (0.064 + 0.4),
            "induced": 0.1 * 0.464 + 0.08 + 0.8,
            "rest": 0.216 + 0.4,
        }
    )
    assert (energy.step_j, energy.low_j, energy.high_j) == pytest.approx((1.96, 0.98, 3.92))
    assert energy.avoidable_j == pytest.approx(energy.by_verdict_j["inflated"] + energy.by_verdict_j["induced"])
    assert energy.avoidable_span_j == pytest.approx((energy.avoidable_j / 2, energy.avoidable_j * 2))
    assert (energy.per_token_j, energy.tokens_per_j, energy.chips) == pytest.approx((0.245, 8 / 1.96, 4))


def test_power_is_of_windows_of_a_millisecond_and_the_peak_is_the_largest():
    """One chip: 54 mJ in the first ms, 16 in the second, 10 in each of the last two, beside 100 W."""
    energy = energy_of(worked(STEP, WORK))
    assert energy.power_w == (154, 116, 110, 110)
    assert (energy.window_ns, energy.peak_w, energy.mean_w) == pytest.approx((MS, 154, 122.5))
    assert (energy.low_peak_w, energy.high_peak_w) == pytest.approx((77, 308))


def test_time_is_of_what_holds_it_up():
    """At 10^15 FLOP/s and 10^12 bytes/s: 10^11 FLOPs are 0.1 ms, 10^8 bytes too; twice the bytes are the memory's."""
    events = [compute(0, MS), compute(MS, 3 * MS), compute(3 * MS, 4 * MS, role=PART), comm(2 * MS, 5 * MS)]
    work = [(1e11, 0, 1e8, 0, 0), (1e11, 0, 2e8, 0, 0), (0, 0, 9e9, 0, 0), (0, 0, 0, 1e9, 0)]
    energy = energy_of(worked(events, work, length=6 * MS))
    assert energy.time_by_component_ns == {"compute": MS, "memory": 2 * MS, "network": 2 * MS, "idle": MS}


def test_a_step_shorter_than_a_window_is_one():
    energy = energy_of(worked([compute(0, 1000)], [(1e9, 0, 0, 0, 0)], length=2000))
    assert (len(energy.power_w), energy.window_ns) == (1, 2000)
    assert energy.peak_w == pytest.approx(energy.mean_w) == pytest.approx(100 + 0.5e-3 / 2e-6)


def test_two_devices_of_a_chip_share_its_static_power():
    events = [compute(0, MS), compute(0, MS, device=1)]
    energy = energy_of(worked(events, [(0, 0, 0, 0, 0)] * 2), per_chip=2)
    assert (energy.chips, energy.step_j) == pytest.approx((1, 0.4))


def test_hidden_communication_costs_its_bytes_and_no_waiting_chip():
    events = [compute(0, 2 * MS), comm(0, 2 * MS)]
    energy = energy_of(worked(events, [(0, 0, 0, 0, 0), (0, 0, 0, 1e9, 0)]))
    assert energy.by_verdict_j == pytest.approx(
        {"inherent": 0.6 * 0.016, "inflated": 0.3 * 0.016, "induced": 0.1 * 0.016, "rest": 0.4}
    )


def test_communication_of_unknown_verdict_and_local_copies_are_of_the_rest():
    events = [comm(0, MS, name="other"), compute(0, MS, role=PART)]
    energy = energy_of(worked(events, [(0, 0, 0, 1e9, 0), (0, 0, 1e8, 0, 0)]))
    assert energy.by_verdict_j == pytest.approx({"inherent": 0, "inflated": 0, "induced": 0, "rest": 0.42})


def test_a_wait_moves_nothing():
    """Waiting 3 of 4 ms, then 16 mJ in the last."""
    energy = energy_of(worked([comm(0, 4 * MS, wait=3 * MS)], [(0, 0, 0, 1e9, 0)]))
    assert energy.power_w == (100, 100, 100, 116)


def test_what_is_measured_or_not_known_has_no_modelled_energy():
    made = worked(STEP, WORK)
    lost = worked(STEP, [(0, 0, 0, 0, 0), (0, 0, 0, math.nan, 0), (0, 0, 0, 0, 0)])
    bare = timeline(STEP, steps(0, 4 * MS), source="modelled")
    measured = timeline(STEP, steps(0, 4 * MS), source="measured")
    assert energy_of(made) is not None
    assert energy_of(lost) is energy_of(bare) is energy_of(measured) is None


def test_amounts_are_spread_over_windows_as_they_last():
    parts = spread(
        np.array([8.0, 3.0, 5.0, 1.0]),
        np.array([5.0, 0, 39.0, 30.0]),
        np.array([25.0, 10.0, 39.0, 45.0]),
        window=10,
        count=4,
    )
    # 8 over 5..25: 2, 4, 2; 3 in the first (it ends where the next begins); 5 at a point; 1 beyond the end.
    assert parts.tolist() == pytest.approx([5, 4, 2, 6])


def test_the_difference_of_two_steps_adds_up_exactly_and_shares_its_coefficients():
    left, right = energy_of(worked(STEP[:2], WORK[:2], length=2 * MS)), energy_of(worked(STEP, WORK))
    sides = Side(arm="jax", cell="tpu"), Side(arm="torchxla", cell="tpu")
    difference = compare_energy(left, right, CHIP, sides=sides)
    assert difference.by_component_j == pytest.approx(
        {"matrix": 0, "vector": 0, "memory": 0, "ici": 0, "dcn": 0.02, "static": 0.2}, abs=1e-15
    )
    assert difference.by_verdict_j["induced"] == pytest.approx(0.22)
    for parts in (difference.by_component_j, difference.by_verdict_j):
        assert math.fsum(parts.values()) == pytest.approx(difference.difference_j, rel=1e-12)
    assert (difference.low_j, difference.high_j) == pytest.approx((0.11, 0.44))
    assert difference.ratio == pytest.approx(0.49 / 0.27)
    # Least: 140 and 140 mJ of what both do (high), 100 and 200 of static and 10 of DCN (low).  Most: all low but DCN's
    # 40 mJ.  Far from 245 ÷ 540 and 980 ÷ 135 mJ of the totals apart.
    assert (difference.low_ratio, difference.high_ratio) == pytest.approx((350 / 240, 275 / 135))


def test_a_ratio_has_a_second_range_with_the_error_of_both_steps_times():
    """The same, each step's static energy 15 % off the other way, which is most where it is high, 400 and 800 mJ."""
    left, right = energy_of(worked(STEP[:2], WORK[:2], length=2 * MS)), energy_of(worked(STEP, WORK))
    sides = Side(arm="jax", cell="tpu"), Side(arm="torchxla", cell="tpu")
    difference = compare_energy(left, right, CHIP, sides=sides)
    assert difference.time_error == 0.15
    assert difference.low_ratio_with_times == pytest.approx((140 + 0.85 * 200 + 10) / (140 + 1.15 * 100))
    assert difference.high_ratio_with_times == pytest.approx((35 + 1.15 * 800 + 40) / (35 + 0.85 * 400))


def test_the_error_of_a_ratios_times_is_the_median_that_the_docs_have():
    page = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    (median,) = re.findall(r"\| all \| \d+ \| (\d+)% \|", page)
    assert int(median) == 100 * TIME_ERROR


def test_a_report_says_what_the_coefficients_are():
    model = list_coefficients(CHIP)
    assert (model.name, model.calibrated_on) == ("by hand", "")
    assert (model.coefficients["static"].unit, model.coefficients["static"].high) == ("W", 200)


@pytest.fixture(scope="module")
def judged():
    return judge_run(read_run(EXAMPLE))


@pytest.mark.slow
def test_every_program_of_the_example_has_the_energy_of_its_events(judged):
    assert len([check_energy(program) for program in judged.programs]) == 10


def test_a_layer_of_the_example_is_as_worked_out_by_hand_in_the_docs():
    """JAX's prefill: 16 layers × 5 ticks on each device, 2 sequences of 1,024 tokens, tp4; docs/energy.md.

    What runs once for all layers of the step, copies of weights and caches, is no part of a layer.
    """
    table = pd.read_parquet(EXAMPLE / "tables/events.parquet")
    rows = table[(table["arm"] == "jax") & (table["phase"] == "prefill") & (table["cell"] == "tpu")]
    rows = rows[rows["scope"].astype(str).str.startswith("layer") | (rows["scope"] == "norm")]
    once = rows.groupby("name", observed=True)["name"].transform("size") < 80
    layer = rows[~once][[*WORK_COLUMNS, "exposed_ns"]].sum() / 80
    matrices = 4096 * (4096 + 2 * 1024) + 4096**2 + 3 * 4096 * 14336
    assert layer["matrix_flops"] == (2 * 2048 * matrices + 4 * 2 * 1024 * 1024 * 32 * 128) / 4
    assert layer["ici_byte_hops"] == 2 * 25_165_824 * 1.5
    assert layer["memory_bytes"] > matrices / 4 * 2
    compute = rows[~once & (rows["role"] == "compute")]["duration_ns"].sum() / 80
    counts = [231.93e9, layer["vector_ops"], layer["memory_bytes"], 75.5e6, compute + layer["exposed_ns"]]
    joules = np.array(counts) * [0.35e-12, 1.73e-12, 44e-12, 17.68e-12, 64e-9]
    page = (ROOT / "docs/energy.md").read_text(encoding="utf-8").partition("## One layer")[2].partition("\n## ")[0]
    for words in (
        f"| vector | {layer['vector_ops'] / 1e6:.0f} M elements",
        f"| memory | {layer['memory_bytes'] / 1e6:.1f} MB,",
        f"{compute / 1e6:.2f} ms of compute and {layer['exposed_ns'] / 1e6:.2f} ms of all-reduces",
        f"for the step, {rows[once]['memory_bytes'].sum() / 1e9:.2f} GB a device",
        *(f"| {1e3 * part:.3g} mJ |" for part in joules),
        f"80 × 8 × {1e3 * joules.sum():.0f} mJ are",
        f"are {640 * joules.sum():.0f} J of the step's",
        f"static energy of 1.36 ms, {64e-6 * layer['exposed_ns']:.0f} mJ, is inflated",
    ):
        assert words in " ".join(page.split()), words


def test_the_shipped_report_has_the_energy_of_its_own_table_of_events():
    report = json.loads((EXAMPLE / "report.json").read_text())
    assert check_report_energy(report, EXAMPLE / "tables/events.parquet") == {"prefill": 5, "decode": 5}
