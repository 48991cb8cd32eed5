"""Tables: what DuckDB reads of them."""

from pathlib import Path
from typing import Any

import pytest

from tests.compare.render.from_json import TABLES
from tests.compare.render.from_json import save_tables as save

duckdb = pytest.importorskip("duckdb")

Report = dict[str, Any]


def test_a_query_finds_the_headline_s_numbers(report: Report, tmp_path: Path) -> None:
    save(report, tmp_path)
    rows = duckdb.sql(
        f"SELECT arm, cell, sum(step_wire_bytes) AS bytes, sum(induced_bytes) AS induced "
        f"FROM '{tmp_path}/collectives.parquet' WHERE is_default GROUP BY ALL ORDER BY arm"
    ).fetchall()
    assert rows == [
        ("jax", "tpu", 4_236_247_232, 0),
        ("torchxla", "tpu", 4_236_247_200 + 1_509_949_440, 1_509_949_440),
    ]
    totals = duckdb.sql(f"SELECT arm, wire_bytes, induced_bytes FROM '{tmp_path}/totals.parquet' WHERE is_default")
    assert [(arm, wire, induced) for arm, _, wire, induced in rows] == totals.fetchall()


def test_groups_and_causes_are_json_that_duckdb_reads(report: Report, tmp_path: Path) -> None:
    save(report, tmp_path)
    rows = duckdb.sql(
        f"SELECT json_array_length(groups_json), CAST(causes_json ->> 'wrap' AS BIGINT) "
        f"FROM '{tmp_path}/collectives.parquet' WHERE scope = 'pipeline.shift' AND arm = 'jax' AND is_default"
    ).fetchall()
    assert rows == [(8, 41_943_040)]


def test_the_contract_and_the_differences_are_tables_too(report: Report, tmp_path: Path) -> None:
    save(report, tmp_path)
    total = duckdb.sql(f"SELECT sum(step_wire_bytes) FROM '{tmp_path}/inherent.parquet'").fetchall()
    largest = duckdb.sql(f"SELECT arm, cause, excess_bytes FROM '{tmp_path}/differences.parquet' LIMIT 1").fetchall()
    assert total == [(3_305_111_640,)]
    assert largest == [("torchxla", "activation-gather", 1_509_949_440)]


def test_columns_keep_their_types_whatever_is_in_them(report: Report, failed_report: Report) -> None:
    for table in TABLES.values():
        assert table(report).dtypes.equals(table(failed_report).dtypes)
    failed_report["phases"]["prefill"] |= {"inherent": [], "differences": [], "arms": {}}
    for table in TABLES.values():
        assert table(failed_report).empty
        assert table(report).dtypes.equals(table(failed_report).dtypes)


def test_a_failed_program_has_a_row_with_its_reason(failed_report: Report) -> None:
    totals = TABLES["totals"](failed_report)
    row = totals[totals["arm"] == "torchxla"].iloc[0]
    assert row["status"] == "not installed"
    assert row.isna()["wire_bytes"]


def test_the_same_report_gives_the_same_files(report: Report, tmp_path: Path) -> None:
    for folder in ("one", "other"):
        save(report, tmp_path / folder)
    for name in TABLES:
        first, other = (tmp_path / folder / f"{name}.parquet" for folder in ("one", "other"))
        assert first.read_bytes() == other.read_bytes()
