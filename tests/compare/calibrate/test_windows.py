"""A CSV of windows: what is read, and the line for whatever is wrong."""

import pytest

from compare.calibrate.windows import COLUMNS, parse_windows, read_windows, write_windows
from compare.timeline.errors import TimingError
from tests.compare.calibrate.planted import windows

HEAD = "name,time_s,energy_j,memory_bytes"


def lines(text):
    return [line.split(",") for line in text.splitlines()]


def test_columns_that_are_left_out_have_their_default():
    table = parse_windows(lines("name,time_s,memory_bytes\ncopy,0.5,1e9")).table
    assert tuple(table.columns) == COLUMNS
    row = table.iloc[0]
    assert (row["chips"], row["calls"], row["matrix_flops"], row["memory_bytes"]) == (1, 0, 0, 1e9)
    assert not parse_windows(lines("name,time_s,memory_bytes\ncopy,0.5,1e9")).have_energy


def test_devices_that_are_left_out_are_those_of_the_chips():
    """A column, a word of it, or neither; each chip of a tpu7x is two devices."""
    given = lines("name,time_s,chips,devices,memory_bytes\na,1,4,3,1e9\nb,1,4,,1e9")
    assert parse_windows(given, devices_per_chip=2).table["devices"].to_list() == [3, 8]
    assert parse_windows(lines("name,time_s,memory_bytes\na,1,1e9")).table["devices"].to_list() == [1]


def test_a_failed_measurement_is_a_note_and_loses_nothing_else():
    """−1 as Zeus and CharLLM-PPT write it, and an empty word."""
    read = parse_windows(lines(f"{HEAD}\na,1,-1,1e9\nb,1,,2e9\nc,1,50,3e9\nd,-1,50,3e9"))
    assert read.table["name"].to_list() == ["a", "b", "c"]
    assert read.table["energy_j"].isna().to_list() == [True, True, False]
    assert read.notes == (
        "window 'd' has no time: left out",
        "2 of 3 windows have no energy: they count for times only",
    )


def test_what_is_written_is_read_again(tmp_path):
    table = windows(0)
    write_windows(table, tmp_path / "windows.csv")
    again = read_windows(tmp_path / "windows.csv").table
    assert again["name"].to_list() == table["name"].to_list()
    assert again.drop(columns=["name", "kind"]).to_numpy() == pytest.approx(
        table.drop(columns=["name", "kind"]).to_numpy(), rel=1e-14
    )


WRONG = [
    ("", "empty; the first line names columns, like name,kind"),
    (HEAD, "no windows, only the names of columns"),
    ("name,time_s\na,1", "no column of work; give one of matrix_flops"),
    ("name,memory_bytes\na,1", "column time_s is missing"),
    ("time_s,memory_bytes\n1,1", "column name is missing"),
    ("name,time_s,watts\na,1,1", "'watts' is no column; columns are name, kind, time_s"),
    ("name,name,time_s,memory_bytes\na,a,1,1", "column name is there twice"),
    (f"{HEAD}\na,1,2", "line 2 has 3 words for 4 columns"),
    (f"{HEAD}\na,fast,2,3", "line 2, time_s: 'fast' is no number"),
    (f"{HEAD}\na,1,2,inf", "line 2, memory_bytes: 'inf' is no finite number"),
    (f"{HEAD}\na,1,2,-1", "line 2: memory_bytes is -1; it must be no less than 0"),
    (f"{HEAD}\na,1,-5,1", "line 2: energy_j is -5; it must be no less than 0"),
    (f"{HEAD}\na,0,2,1", "line 2: time_s is 0; it must be positive"),
    ("name,time_s,chips,memory_bytes\na,1,0,1", "line 2: chips is 0; it must be positive"),
    (f"{HEAD}\na,1e-300,2,1", "line 2: time_s is 1e-300; from 1e-12 s on, and at most 1e+24, is read"),
    (f"{HEAD}\na,1,2,1e300", "line 2: memory_bytes is 1e+300; from"),
    (f"{HEAD}\n,1,2,1", "line 2: the window has no name"),
    (f"{HEAD}\na,-1,2,1\nb,,2,1", "no window has a time"),
]


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_whatever_is_wrong_is_one_line(text, words):
    with pytest.raises(TimingError) as caught:
        parse_windows(lines(text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_csv_names_itself(tmp_path):
    path = tmp_path / "windows.csv"
    with pytest.raises(TimingError, match=r"windows\.csv is no file"):
        read_windows(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TimingError, match=r"windows\.csv is no text"):
        read_windows(path)
    path.write_text(f"{HEAD}\na,1,2,x\n")
    with pytest.raises(TimingError, match=r"windows\.csv: line 2, memory_bytes: 'x' is no number"):
        read_windows(path)
