"""The tables of work: on numbers given by hand."""

from dataclasses import replace

from compare.render.blocks import Fold, Table
from compare.render.time.work import work_blocks
from tests.compare.render.time.programs import make_program, part

CORE, UP = "layer.attention.core", "layer.mlp.up"
SHORT = make_program("JAX", 20, {CORE: part(5, 100, 10), UP: part(15, 900, 50)})
LONG = make_program("TorchXLA", 58, {CORE: part(45, 400, 1140), UP: part(13, 900, 50)})


def test_the_tables_have_a_row_for_each_program_and_for_each_part_longest_first() -> None:
    (fold,) = work_blocks("prefill", "modelled", [SHORT, LONG])
    assert isinstance(fold, Fold)
    _, programs, parts = fold.blocks
    assert isinstance(programs, Table)
    assert isinstance(parts, Table)
    assert [cell.words for cell in programs.rows[0].cells] == [
        "18.6 TFLOP",
        "80.0 %",
        "29.6 %",
        "10.5 GB",
        "5.07 %",
        "6.23 GB",
        "94.2 ms",
        "100 ms",
    ]
    assert [row.name for row in parts.rows] == [CORE, UP]
    assert [cell.words for cell in parts.rows[0].cells] == [
        "5.00 ms",
        "100 FLOP",
        "10 B",
        "45.0 ms",
        "400 FLOP",
        "1.14 kB",
    ]


def test_older_reports_without_work_show_nothing() -> None:
    bare = replace(SHORT, section=replace(SHORT.section, work=None))
    assert list(work_blocks("prefill", "modelled", [bare])) == []
