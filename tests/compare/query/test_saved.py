"""Saved tables answer as the run folders do."""

import shutil
from pathlib import Path

import pytest

from compare.cli.options.query_request import parse_question
from compare.query import query_runs
from compare.query.engine import save_tables
from compare.query.errors import QueryError
from compare.query.named_queries import list_queries
from compare.query.saved import LEFT_OUT, read_source
from compare.query.tables import TABLES
from tests.places import EXAMPLE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    save_tables(read_source([EXAMPLE]), folder)
    return folder


@pytest.mark.parametrize("name", list_queries())
def test_every_query_that_ships_has_the_same_answer(name: str, saved: Path) -> None:
    first, second = query_runs(name, EXAMPLE), query_runs(name, saved)
    assert first.columns == second.columns
    assert first.fetchall() == second.fetchall()
    assert len(first) > 0


def count_rows(folder: Path) -> dict[str, int]:
    """Of windows, alike ones stand once, with how often."""
    counts = {name: "count(*)" for name in TABLES} | {"windows": "sum(stands_for)"}
    sql = " union all ".join(f"select '{name}', {count} from \"{name}\"" for name, count in counts.items())
    return dict(query_runs(sql, folder).fetchall())


def test_what_is_left_out_has_no_rows_and_all_else_as_many(saved: Path) -> None:
    kept, there = count_rows(saved), count_rows(EXAMPLE)
    assert "windows" not in LEFT_OUT
    assert there["events"] > 0
    assert kept == {name: 0 if name in LEFT_OUT else rows for name, rows in there.items()}


def test_the_same_runs_give_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    for path in save_tables(read_source([EXAMPLE]), tmp_path / "again"):
        assert path.read_bytes() == (saved / path.name).read_bytes(), path.name


def test_saved_tables_are_not_mixed_nor_saved_again_nor_put_among_other_files(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="they are asked alone"):
        read_source([saved, EXAMPLE])
    (tmp_path / "notes.txt").write_text("mine")
    for words, said in [
        ([str(saved), "--save", str(tmp_path / "new")], "holds saved tables already"),
        ([str(EXAMPLE), "--save", str(tmp_path)], "holds something else; choose an empty folder"),
    ]:
        with pytest.raises(QueryError, match=said):
            parse_question(words)


def test_a_damaged_file_is_named(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved, tmp_path / "cut")
    path = tmp_path / "cut" / "totals.parquet"
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(QueryError, match=r"totals\.parquet cannot be read"):
        query_runs("select * from totals", tmp_path / "cut")
