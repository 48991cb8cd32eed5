"""Rows that are one collective in several instructions: one line, with nothing lost."""

from dataclasses import replace

import pytest

from compare.render.folded_rows import fold_rows
from tests.compare.split_programs import compile_split
from tests.compare.verdict.programs import collective


def rows_of(paths, **changes):
    return [
        replace(
            collective("tp4", "all-reduce", "tp", "?", 8),
            name=f"all-reduce.{number}",
            op_name=path,
            source_line="model.py:7",
            **changes,
        )
        for number, path in enumerate(paths)
    ]


def test_the_layers_of_an_unrolled_model_are_one_line():
    rows = rows_of(["jit(step)/DiT/block_0/mlp/dot", "jit(step)/DiT/block_1/mlp/dot", "jit(step)/DiT/block_11/mlp/dot"])
    (line,) = fold_rows(rows)
    assert (line.name, line.path) == ("all-reduce.0 and 2 more", "DiT/block_*/mlp/dot")
    assert line.times == "3 rows, 1 × each"
    assert line.step_wire_bytes == 3 * rows[0].step_wire_bytes
    assert [each.rows for each in fold_rows(rows, unfolded=True)] == [(row,) for row in rows]


def test_two_are_two_lines():
    assert len(fold_rows(rows_of(["a/block_0", "a/block_1"]))) == 2


@pytest.mark.parametrize("change", ["source_line", "dtype", "axes", "form", "executions", "scope", "network"])
def test_what_differs_is_a_line_of_its_own_in_the_place_where_it_stood(change):
    rows = rows_of(["a/block_0", "a/block_1", "a/block_2", "a/block_3"])
    rows[1] = replace(rows[1], **{change: 7 if change == "executions" else "other"})
    assert [[row.name for row in line.rows] for line in fold_rows(rows)] == [
        ["all-reduce.0", "all-reduce.2", "all-reduce.3"],
        ["all-reduce.1"],
    ]


def test_rows_of_which_nothing_is_known_are_not_alike():
    assert len(fold_rows([replace(row, source_line=None) for row in rows_of([""] * 4)])) == 4


def test_pieces_of_different_sizes_show_the_least_and_the_most():
    rows = rows_of(["a"] * 3)
    rows[2] = replace(rows[2], payload_bytes=rows[2].payload_bytes * 3)
    (line,) = fold_rows(rows)
    assert line.payload == f"{rows[0].payload_bytes:,}–{rows[2].payload_bytes:,} B"


def test_unknown_executions_stay_unknown():
    rows = rows_of(["a"] * 3)
    (line,) = fold_rows([replace(row, executions=None, step_wire_bytes=None) for row in rows])
    assert line.times == "3 rows, ? × each"
    assert line.step_wire_bytes is None


@pytest.mark.slow
def test_a_windowed_einsum_s_hops_are_one_line():
    """Lesson sequence-windows: a gather, and five permutes of B·S·D·2/dp/tp = 1 MB, one behind the other."""
    arrays = [((4, 1024, 1024), ("dp", "tp")), ((1024, 8192), (None, "tp")), ((8192, 1024), ("tp",))]
    table = compile_split(lambda x, w1, w2: (x @ w1) @ w2, arrays, ("dp", "tp"))
    folded = fold_rows(table.rows)
    assert sorted(len(line.rows) for line in folded) == [1, 5]
    assert len(table) == 6
    assert sum(line.step_wire_bytes for line in folded) == table.step_wire_bytes
    text = str(table)
    assert "5 rows, 1 × each" in text
    assert "5,242,880 B" in text
    assert "6 collectives move" in text
    assert "Rows alike in scope" in text
    assert "`rows` has each" in text
