"""Tables of timelines: what DuckDB reads of them, held against times that are known by hand."""

from pathlib import Path
from typing import Any

import pytest

from tests.compare.render.from_json import save_time_tables as save
from tests.compare.render.timings import add_times, make_times

duckdb = pytest.importorskip("duckdb")

Report = dict[str, Any]


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
