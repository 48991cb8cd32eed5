"""What a dead worker's stderr says, in one line."""

import os
import re
from pathlib import Path

from meshes.process.one_line import one_line

TAIL_BYTES = 64 * 1024
LINE_LENGTH = 400

_LOG = re.compile(r"[IWEF]\d{4} [\d:.]+\s+\d+ \S+?\] ?")
"""The head of a log line of XLA's: severity, date, time, thread, file and line."""
_NOISE = re.compile(
    r"[IWE]\d{4} \d\d:|\s*@ +0x|\s*\*\*\*|https://symbolize|WARNING: |=== Source Location|learning/\S+:\d+$"
    r"|Fatal Python error: Aborted|Current thread 0x|Thread 0x|\s+File \"|Extension modules: |\s+\^+\s*$"
)
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")


def tail(path: Path) -> list[str]:
    """The last lines, at most 64 KiB of them, without control characters."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [_CONTROL.sub("", line).rstrip() for line in text.splitlines()]


def last_word(lines: list[str]) -> str:
    """The line that says why: a failed check of XLA's where there is one, else the last that is not noise."""
    fatal = [line for line in lines if line.startswith("F") and _LOG.match(line)]
    said = fatal[:1] or [line for line in lines if line.strip() and not _NOISE.match(line)][-1:]
    return one_line(_LOG.sub("", said[0]), most=LINE_LENGTH) if said else ""
