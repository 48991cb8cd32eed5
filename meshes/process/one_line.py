"""Untrusted text for a terminal: one line, without control characters."""

MOST = 500
"""Characters of an error message."""

_CUT = " … "
_END = 160
"""Characters kept at the end of a line that is cut: it says what would be right."""


def plain(words: object) -> str:
    """Text of a program or a file in one line; characters that cannot be printed become �."""
    line = " ".join(str(words).split())
    return line if line.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def one_line(words: object, *, most: int = MOST) -> str:
    """The same in at most `most` characters; a longer line is cut in the middle."""
    line = plain(words)
    return line if len(line) <= most else line[: most - _END - len(_CUT)] + _CUT + line[-_END:]


def quote(value: object) -> str:
    """A value as an error names it: what was read, cut where it is long."""
    try:
        return one_line(repr(value), most=200)
    except ValueError:  # of a whole number that is too long to be written out
        return f"a {type(value).__name__} of more digits than are written out"
