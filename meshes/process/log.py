"""What commands say on stderr, through Python's `logging`: each record is one clean line."""

import sys
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from meshes.process.one_line import one_line

if TYPE_CHECKING:
    from logging import Logger, LogRecord


_level = "INFO"


@cache
def log() -> "Logger":
    """Errors; progress and notes (INFO: off with `--quiet`); processes, cache hits and seconds (DEBUG: on with `-v`).

    `logging` is loaded with the first line that is logged: many commands log none.
    """
    from logging import Handler, getLogger

    class Stderr(Handler):
        """What is stderr now."""

        def emit(self, record: "LogRecord") -> None:
            print(one_line(record.getMessage()), file=sys.stderr, flush=True)

    logger = getLogger("wirediff")
    logger.addHandler(Stderr())
    logger.setLevel(logger.level or _level)  # a notebook may have chosen its own
    logger.propagate = False
    return logger


def set_level(name: str) -> None:
    """What is logged from now on, by `logging`'s names: `DEBUG`, `INFO`, `ERROR`, `CRITICAL`."""
    global _level
    _level = name
    if log.cache_info().currsize:
        log().setLevel(name)


def is_quiet() -> bool:
    """Whether progress and notes are off."""
    from logging import INFO

    return not log().isEnabledFor(INFO)


def complain(words: object) -> None:
    """One clean line on stderr."""
    log().error("%s", words)


def log_note(words: object) -> None:
    """`note: …`, unless `--quiet`."""
    log().info("note: %s", words)


note_once = cache(log_note)
"""The same line once a process."""


def complain_of(failures: Iterable[object]) -> int:
    """One clean line on stderr for each; the exit status: 1 where there is any."""
    status = 0
    for failure in failures:
        complain(failure)
        status = 1
    return status
