"""What is printed of what somebody else wrote: one line, no character that a terminal obeys, at most 500."""

import pytest

from meshes.process.log import complain
from meshes.process.one_line import MOST, one_line, plain, quote


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("a  b\n\tc", "a b c"),
        ("\x1b[31mred\x07", "\N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}"),
        ("\x9b2J\x7f", "\N{REPLACEMENT CHARACTER}2J\N{REPLACEMENT CHARACTER}"),
        ("a\u202eb\u2066", "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}"),
        ("\udcff", "\N{REPLACEMENT CHARACTER}"),
        ("über × 2 … 中文", "über × 2 … 中文"),
    ],
)
def test_nothing_is_obeyed(words, line):
    assert plain(words) == one_line(words) == line


def test_a_long_line_keeps_its_beginning_and_what_would_be_right(capsys):
    line = one_line("cannot read '" + "x" * 400_000 + "'; write tp4pp2")
    assert len(line) == MOST == 500
    assert line.startswith("cannot read 'xxx")
    assert line.endswith("xxx'; write tp4pp2")
    complain("\x1b\n" * 400_000)
    err = capsys.readouterr().err
    assert (len(err), err.count("\n")) == (MOST + 1, 1)


def test_any_value_is_shown():
    assert quote("a\x1b") == r"'a\x1b'"
    assert len(quote(["x" * 1_000_000])) == 200
    assert quote(10**5_000) == "a int of more digits than are written out"
