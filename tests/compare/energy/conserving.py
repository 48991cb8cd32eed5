"""What the energy of every compiled program must be, from its timeline's events and the coefficients alone."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from compare.energy.coefficients import COMPONENTS, JOULES, joule_rates
from compare.energy.step_energy import measure_energy
from compare.metrics.summary import step_times
from compare.metrics.verdict_shares import verdict_shares
from compare.metrics.verdicts import by_verdict
from compare.metrics.work import Peaks
from compare.report.model.program import CollectiveRow
from compare.report.model.timing import Times
from compare.report.programs import JudgedProgram
from compare.report.rows import collective_row
from compare.schedule.schedule import model_step
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.timeline import Timeline
from compare.timeline.tracks.step_clipping import clip_to_steps
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTracks
from meshes.devices.chip import Chip


def check_energy(program: JudgedProgram) -> float:
    """Of a compiled program: Σ events + static = step, in total, by component and by verdict; the step's joules."""
    assert program.module is not None
    assert program.judgement is not None
    rows = [collective_row(verdict) for verdict in program.judgement.verdicts]
    timeline = model_step(program.module, program.rows, program.case.plan)
    return check_timeline(timeline, rows, program.case.topology.generation)


def check_timeline(timeline: Timeline, rows: Sequence[CollectiveRow], row: Chip) -> float:
    """The same of a modelled timeline."""
    chip, per_chip, shares, tracks = row, row.devices, verdict_shares(rows), DeviceTracks.of(timeline)
    # Of the metrics of a report only these two: all of them take longer than what is tested.
    times = Times(**step_times(measure_times(tracks)))
    verdicts = by_verdict(tracks, clip_to_steps(tracks), shares)
    peaks = Peaks(flops_per_s=row.bf16_flops / per_chip, memory_bytes_per_s=row.hbm_bytes_per_s / per_chip)
    energy = measure_energy(timeline, times, verdicts, shares, chip, per_chip=per_chip, peaks=peaks, tokens=1)
    assert energy is not None
    weights = timeline.events["device"].map({device: len(alike) for device, alike in timeline.stands_for.items()})
    by_hand = {
        name: rate * math.fsum(timeline.events[column].to_numpy() * weights.to_numpy())
        for name, column, rate in zip(COMPONENTS, WORK_COLUMNS, joule_rates(chip), strict=False)
    }
    chips = timeline.num_devices / per_chip
    by_hand["static"] = chip.energy["static"].value * chips * float(timeline.steps["duration_ns"].iloc[0]) / 1e9
    total = math.fsum(by_hand.values())
    assert energy.step_j == pytest.approx(total, rel=1e-9)
    for name, joules in by_hand.items():
        assert energy.by_component_j[name] == pytest.approx(joules, rel=1e-9, abs=1e-9 * total)
    for parts in (energy.by_component_j, energy.by_verdict_j):
        assert math.fsum(parts.values()) == pytest.approx(energy.step_j, rel=1e-12)
        assert min(parts.values()) >= 0
    exposed = {name: each.exposed_ns or 0 for name, each in verdicts.items()}
    of_networks = by_hand["ici"] + by_hand["dcn"]
    beside = (
        chip.energy["static"].value * chips * sum(exposed[name] for name in ("inherent", "inflated", "induced")) / 1e9
    )
    if not verdicts["unknown"].communication_ns:
        assert energy.by_verdict_j["rest"] == pytest.approx(total - of_networks - beside, rel=1e-6)
    windows = np.array(energy.power_w) * energy.window_ns / 1e9
    assert windows.sum() == pytest.approx(energy.step_j, rel=1e-3)
    assert math.fsum(energy.time_by_component_ns.values()) == pytest.approx(times.step_ns, rel=1e-6)
    assert energy.low_j < energy.step_j < energy.high_j
    return energy.step_j


def check_report_energy(report: dict[str, Any], events: Path) -> dict[str, int]:
    """The same of a report.json and its table of events; how many programs of each phase were held to it."""
    columns = ["arm", "phase", "cell", "source", "stands_for", *WORK_COLUMNS]
    table = pd.read_parquet(events, columns=columns)
    table = table[table["source"] == "modelled"]
    for name in WORK_COLUMNS:
        table[name] *= table["stands_for"]
    sums = table.groupby(["phase", "arm", "cell"], observed=True)[list(WORK_COLUMNS)].sum()
    rates = [row["value"] * JOULES[row["unit"]] for row in report["energy_model"]["coefficients"].values()]
    held: Counter[str] = Counter()
    for (phase, arm, cell), work in sums.iterrows():
        default = report["phases"][phase]["arms"][arm]
        program = default if default["cell"] == cell else default["controls"][cell]
        energy, step_s = program["energy"], program["timing"]["per_step"]["step_ns"] / 1e9
        joules = [*(rates[:-1] * work.to_numpy()), rates[-1] * energy["chips"] * step_s]
        assert energy["step_j"] == pytest.approx(math.fsum(joules), rel=1e-9)
        assert list(energy["by_component_j"].values()) == pytest.approx(joules, abs=1e-9 * energy["step_j"])
        for parts in ("by_component_j", "by_verdict_j"):
            for bound in ("", "low_", "high_"):
                total = energy["step_j" if not bound else f"{bound}j"]
                assert math.fsum(energy[bound + parts].values()) == pytest.approx(total, rel=1e-12)
        held[phase] += 1
    return held
