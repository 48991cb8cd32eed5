"""Untrusted text for a terminal: one line, without control characters; and the log, whose lines are such."""

import logging
import sys
from collections.abc import Iterable
from functools import cache

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


class _Stderr(logging.Handler):
    """Each record is one clean line on what is stderr now."""

    def emit(self, record: logging.LogRecord) -> None:
        print(one_line(record.getMessage()), file=sys.stderr, flush=True)


LOG = logging.getLogger("wirediff")
"""Errors; progress and notes (INFO: off with `--quiet`); processes, cache hits and seconds (DEBUG: on with `-v`)."""
LOG.addHandler(_Stderr())
LOG.setLevel(logging.INFO)
LOG.propagate = False


def is_quiet() -> bool:
    """Whether progress and notes are off."""
    return not LOG.isEnabledFor(logging.INFO)


def complain(words: object) -> None:
    """One clean line on stderr."""
    LOG.error("%s", words)


def log_note(words: object) -> None:
    """`note: …`, unless `--quiet`."""
    LOG.info("note: %s", words)


note_once = cache(log_note)
"""The same line once a process."""


def complain_of(failures: Iterable[object]) -> int:
    """One clean line on stderr for each; the exit status: 1 where there is any."""
    status = 0
    for failure in failures:
        complain(failure)
        status = 1
    return status
