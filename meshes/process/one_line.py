"""Words for a terminal, whoever wrote them: one line, nothing in it that a terminal would obey."""

import sys

MOST = 500
"""Characters of a line that says what went wrong."""

_CUT = " … "
_END = 160
"""Characters that stay of the end of a line that is cut: there stands what would be right."""


def plain(words: object) -> str:
    """One line of what a program or a file wrote; what is no printable character is shown as �."""
    line = " ".join(str(words).split())
    return line if line.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def one_line(words: object, *, most: int = MOST) -> str:
    """The same, of at most so many characters: a longer one is cut in the middle."""
    line = plain(words)
    return line if len(line) <= most else line[: most - _END - len(_CUT)] + _CUT + line[-_END:]


def quote(value: object) -> str:
    """A value as an error names it: what was read, cut where it is long."""
    try:
        return one_line(repr(value), most=200)
    except ValueError:  # of a whole number that is too long to be written out
        return f"a {type(value).__name__} of more digits than are written out"


def complain(words: object) -> None:
    """One clean line on stderr."""
    print(one_line(words), file=sys.stderr, flush=True)
