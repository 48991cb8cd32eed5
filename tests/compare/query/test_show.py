"""Answers as lines of a terminal."""

import duckdb

from compare.query.show import print_csv_rows, table_lines

COLUMNS = ["phase", "step_wire_bytes", "step_ns", "overlap", "sp", "devices"]
ROWS = [
    ("prefill", 4_127_195_280, 2_280_000.0, 0.005078, True, 8),
    ("decode", None, 0.0, float("inf"), False, 1024),
]


def test_bytes_and_times_have_units_and_unknown_is_a_dash():
    assert list(table_lines(COLUMNS, ROWS, width=80)) == [
        "           step_",
        "           wire_",
        "phase      bytes  step_ns   overlap  sp   devices",
        "─────────────────────────────────────────────────",
        "prefill  4.13 GB  2.28 ms  0.005078  yes        8",
        "decode         –      0 s       inf  no     1,024",
    ]


def test_a_table_too_wide_says_once_what_is_the_same_in_all_rows():
    rows = [("llama", "prefill", 1, 2), ("llama", "decode", 3, 2)]
    assert list(table_lines(["model", "phase", "mean", "rank"], rows, width=22)) == [
        "In all rows: model",
        "  llama, rank 2",
        "phase    mean",
        "─────────────",
        "prefill     1",
        "decode      3",
    ]


def test_numbers_that_still_have_no_room_stand_in_a_second_table():
    rows = [("prefill", 11111, 22222), ("decode", 33333, 44444)]
    assert list(table_lines(["phase", "first", "other"], rows, width=16)) == [
        "phase     first",
        "───────────────",
        "prefill  11,111",
        "decode   33,333",
        "",
        "phase     other",
        "───────────────",
        "prefill  22,222",
        "decode   44,444",
    ]


def test_words_that_have_no_room_stand_below_each_other():
    assert list(table_lines(["kind", "scope"], [("all-reduce", "layer.mlp.down")], width=20)) == [
        "────────────────────",
        "kind   all-reduce",
        "scope  layer.mlp.down",
    ]


def test_no_line_is_wider_than_the_terminal_and_every_value_is_there():
    columns = [f"column_{at}_bytes" for at in range(30)]
    rows = [tuple(row * 1000 + at for at in range(30)) for row in (1, 2)]
    lines = list(table_lines(["arm", *columns], [("jax", *rows[0]), ("torchxla", *rows[1])], width=80))
    assert max(map(len, lines)) <= 80
    assert sum(line.count(" kB") for line in lines) == 60


def test_what_a_program_wrote_cannot_move_the_cursor():
    assert list(table_lines(["name"], [("a\x1b[2Jb\nc",)], width=80))[-1] == "a�[2Jb c"


def test_a_table_without_rows_has_its_columns():
    assert list(table_lines(["arm", "cell"], [], width=80)) == ["arm  cell", "─────────"]


def test_nor_can_the_name_of_a_column():
    assert next(table_lines(["a\x1b[31mb"], [(1,)], width=80)) == "a�[31mb"


def test_csv_on_a_terminal_keeps_lines_and_tabs_and_no_codes(capsys):
    print_csv_rows(duckdb.connect(), """select e'a\\x1b[31m\\n\\tb' || chr(155) as "c\x1b[0m", ['\x07'] as d""")
    assert capsys.readouterr().out == 'c�[0m,d\n"a�[31m\n\tb�","[""\\u0007""]"\n'
