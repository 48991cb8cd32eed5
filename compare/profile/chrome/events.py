"""The events of one Chrome trace; of a large one a second process reads the second half."""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from isal.igzip import IGzipFile

from compare.profile.chrome.columns import Columns, TraceEvents
from compare.profile.chrome.pieces import UNPACKING_ERRORS, TraceText
from compare.timeline.errors import TimingError

LARGE = 128 << 20
"""Bytes of a trace, unpacked, from which a second process is worth its start, in which the first reads 60 MB."""
_FIRST, _FIRST_PACKED = 0.6, 0.62
"""The share that the first process reads.  Of a gzipped trace the second one has to unpack what it leaves out."""
_READER = "compare.profile.chrome.second_half"


def read_events(file: BinaryIO) -> TraceEvents:
    """Every event of a trace.  `TimingError` where it is no JSON, no trace, or cut."""
    columns, text = Columns(), TraceText(file)
    try:
        text.read_head()
        with _second_half(file, text) as second:
            if second is not None:
                columns.add_all(text, end_near=second.start)
            if not text.is_read:
                if second is not None and (rest := second.read()) is not None:
                    columns.extend(rest)
                else:  # what is wrong with it is said as of a small trace
                    columns.add_all(text)
    except UNPACKING_ERRORS as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise TimingError("the gzip file is cut or damaged") from None
    if not columns.count:
        raise TimingError("the trace is empty: no event in it has a duration")
    return columns.read()


@dataclass(frozen=True, slots=True)
class _SecondHalf:
    start: int
    """An offset in the trace; it reads from the first event behind it."""
    process: subprocess.Popen[bytes]

    def read(self) -> Columns | None:
        """Its events; None where the process read none, for whatever reason."""
        words, _ = self.process.communicate()
        if self.process.returncode:
            return None
        columns = pickle.loads(words)
        return columns if isinstance(columns, Columns) else None


@contextmanager
def _second_half(file: BinaryIO, text: TraceText) -> Iterator[_SecondHalf | None]:
    """A process that reads from the middle, ended behind the block; None where one process is enough."""
    size, share = _unpacked_size(file)
    if size < LARGE or _processors() < 2:
        yield None
        return
    start = int(size * share)
    command = [sys.executable, "-m", _READER, os.path.abspath(file.name), str(start), str(int(text.is_list))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            yield _SecondHalf(start, process)
        finally:
            process.kill()


def _unpacked_size(file: BinaryIO) -> tuple[int, float]:
    """(bytes, share of the first process); of a gzipped file what its last four bytes say, which is a hint."""
    if not isinstance(file, IGzipFile):
        return os.fstat(file.fileno()).st_size, _FIRST
    with open(file.name, "rb") as packed:
        packed.seek(-4, os.SEEK_END)
        return int.from_bytes(packed.read(4), "little"), _FIRST_PACKED


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
