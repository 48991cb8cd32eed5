"""Tables of timelines: what DuckDB reads of them, held against times that are known by hand."""

from pathlib import Path
from typing import Any

import pytest

from compare.views.time_tables import save
from tests.compare.views.timings import made_times, with_times

duckdb = pytest.importorskip("duckdb")

Report = dict[str, Any]


def test_means_over_all_devices_can_be_asked_for_though_alike_ones_are_shown_once(
    report: Report, tmp_path: Path
) -> None:
    # Two stages, of which each stands for its four devices: 80 layers of an all-reduce of 300 µs.
    save(with_times(report), tmp_path, timelines=list(made_times().values()))
    found = duckdb.sql(
        f"SELECT sum(stands_for) / 8, sum(stands_for * duration_ns) / 8 FROM '{tmp_path}/events.parquet' "
        "WHERE arm = 'jax' AND cell = 'tpu' AND collective = 'all-reduce.2'"
    ).fetchall()
    assert found == [(80, 24_000_000)]
    steps = duckdb.sql(f"SELECT DISTINCT device, stands_for FROM '{tmp_path}/steps.parquet' ORDER BY device")
    assert steps.fetchall() == [(0, 4), (4, 4)]
