"""The one line of a refusal: what the threads of libraries say while the process ends does not follow it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile

from meshes.process.errors import MeshError
from meshes.process.one_line import one_line

_alone = False
"""Whether this process is a door's own, and stderr for nobody else."""
_kept: int | None = None
"""The descriptor that stderr had, once nobody else is heard on it."""


def claim_stderr() -> None:
    """Say that this process was started for one door: it ends with what that has to say."""
    global _alone
    _alone = True


def refuse(words: object) -> None:
    """Print one clean line on stderr, the last.  In a process of its own nothing that anyone says after it is heard."""
    if sys.stderr is None:  # it was closed before this process began
        return
    line = one_line(words)
    if _alone and _kept is None:
        sys.stderr.flush()
        _hush(os.dup(2))
    if _kept is None:
        print(line, file=sys.stderr, flush=True)
        return
    with suppress(OSError), os.fdopen(os.dup(_kept), "w", encoding="utf-8", errors="backslashreplace") as heard:
        print(line, file=heard)


@contextmanager
def defer_stderr() -> Iterator[None]:
    """What is said on stderr in here is heard when it is left, and not at all where that is a refusal.

    In a process of its own: elsewhere stderr is another's.
    """
    if not _alone or _kept is not None or sys.stderr is None:
        yield
        return
    sys.stderr.flush()
    with TemporaryFile() as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield
        except MeshError:
            _hush(kept)
            raise
        except BaseException:
            _heard(said.fileno(), kept)
            raise
        _heard(said.fileno(), kept)


def _hush(kept: int) -> None:
    """All that is written to stderr goes nowhere; `kept` is what it was."""
    global _kept
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    _kept = kept


def _heard(said: int, kept: int) -> None:
    """Put stderr back, and say on it what was said meanwhile."""
    sys.stderr.flush()
    os.dup2(kept, 2)
    os.close(kept)
    os.lseek(said, 0, os.SEEK_SET)
    while words := os.read(said, 2**16):
        os.write(2, words)
