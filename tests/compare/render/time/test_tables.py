"""Tables of timelines: what DuckDB reads of them, held against times that are known by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compare.render.time.tables import save as save_tables
from compare.render.time.timeline_view import program_timelines
from compare.report.model.report import Report as TypedReport
from compare.run.folder.load_run import judge_run, read_run
from compare.run.folder.timelines import add_times as add_run_times
from tests.compare.render.from_json import save_time_tables as save
from tests.compare.render.timings import add_times, make_times
from tests.places import EXAMPLE, example_report

duckdb = pytest.importorskip("duckdb")

Report = dict[str, Any]


@pytest.mark.slow
def test_means_over_all_devices_can_be_asked_for_though_alike_ones_are_shown_once(
    report: Report, tmp_path: Path
) -> None:
    # Two stages, of which each stands for its four devices: 80 layers of an all-reduce of 300 µs.
    save(add_times(report), tmp_path, timelines=list(make_times().values()))
    rows = duckdb.sql(
        f"SELECT sum(stands_for) / 8, sum(stands_for * duration_ns) / 8 FROM '{tmp_path}/events.parquet' "
        "WHERE arm = 'jax' AND cell = 'tpu' AND collective = 'all-reduce.2'"
    ).fetchall()
    assert rows == [(80, 24_000_000)]
    steps = duckdb.sql(f"SELECT DISTINCT device, stands_for FROM '{tmp_path}/steps.parquet' ORDER BY device")
    assert steps.fetchall() == [(0, 4), (4, 4)]


def test_times_are_told_by_device_and_by_step_and_their_weighted_mean_is_the_whole(
    report: Report, tmp_path: Path
) -> None:
    save(add_times(report), tmp_path, timelines=list(make_times().values()))

    def times(split_by: str) -> list[tuple[float, float]]:
        return duckdb.sql(
            f"SELECT step_ns, exposed_ns FROM '{tmp_path}/times.parquet' WHERE arm = 'jax' AND cell = 'tpu' "
            f"AND phase = 'prefill' AND split_by = '{split_by}' ORDER BY part"
        ).fetchall()

    ((step, exposed),) = times("all")
    devices = times("device")
    assert len(devices) == 2  # two stages, each shown once for its four devices
    assert sum(amount for amount, _ in devices) / 2 == pytest.approx(step)
    assert sum(amount for _, amount in devices) / 2 == pytest.approx(exposed)
    assert times("step") == [pytest.approx((step, exposed))]


def test_the_joules_of_all_events_and_the_static_ones_are_those_of_the_step() -> None:
    """On the example's ten programs; each event counts for the devices that it stands for."""
    report = TypedReport.from_json(example_report())
    sums = duckdb.sql(
        f"SELECT arm, phase, cell, sum(dynamic_j * stands_for) FROM '{EXAMPLE}/tables/events.parquet' "
        "WHERE step >= 0 GROUP BY ALL"
    ).fetchall()
    assert len(sums) == 10
    for arm, phase, cell, dynamic in sums:
        energy = report.phases[phase].arms[arm].cell(cell).energy
        assert energy is not None
        assert dynamic + energy.by_component_j["static"] == pytest.approx(energy.step_j, rel=1e-9)


def test_an_event_has_the_joules_of_its_work_and_none_where_its_timeline_has_no_energy(tmp_path: Path) -> None:
    run = read_run(EXAMPLE)
    made = judge_run(replace(run, results=run.select(("jax", "decode", ""))))
    times = made.timelines()
    report = add_run_times(made.report(), made.programs, times)
    (first, second) = program_timelines(report, times.by_key)
    save_tables(report, tmp_path, timelines=[first, replace(second, energy=None)])
    rows = duckdb.sql(
        "SELECT cell, matrix_flops, vector_ops, memory_bytes, ici_byte_hops, dcn_bytes, dynamic_j "
        f"FROM '{tmp_path}/events.parquet'"
    ).fetchall()
    known = [row for row in rows if row[0] == first.cell]
    assert max(row[-1] for row in known) > 0
    for _, matrix, vector, memory, ici, dcn, dynamic in known:
        # v5e by hand, docs/energy.md: pJ a FLOP, an operation, a byte (8 × pJ/bit)
        by_hand = 0.35 * matrix + 1.73 * vector + 44 * memory + 17.68 * ici + 200 * dcn
        assert dynamic == pytest.approx(1e-12 * by_hand, rel=1e-12)
    assert {row[-1] for row in rows if row[0] == second.cell} == {None}


def test_intervals_matrix_and_messages_are_tables_of_their_own(report: Report, tmp_path: Path) -> None:
    save(add_times(report), tmp_path, timelines=list(make_times().values()))
    section = report["phases"]["prefill"]["arms"]["torchxla"]["timing"]
    where = "WHERE phase = 'prefill' AND arm = 'torchxla' AND cell = 'tpu' AND source = 'modelled'"
    for name in ("intervals", "matrix", "messages"):
        assert section[name]
        rows = duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/{name}.parquet' {where}").fetchall()
        assert rows == [(len(section[name]),)], name
    sent = duckdb.sql(f"SELECT sum(logical_bytes) FROM '{tmp_path}/matrix.parquet' {where}").fetchall()
    assert sent == [(pytest.approx(sum(row["logical_bytes"] for row in section["matrix"])),)]
