"""A refusal is the last line on stderr: what library threads print while the process ends does not follow it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from meshes.process.errors import MeshError
from meshes.process.one_line import one_line

_alone = False
"""Whether this process runs one command, and stderr is its own."""
_kept: int | None = None
"""The original stderr, once everything else on it is discarded."""


NOT_OFFERED, DOES_NOT_FIT = "not offered", "does not fit"
"""Reasons that the parent process acts on, printed as JSON on stdout beside the line on stderr."""


def give_reason(reason: str, **figures: int) -> None:
    """Print on stdout, as the protocol has it, why a worker gives no result."""
    import json

    print(json.dumps({"reason": reason, **figures}), flush=True)


def claim_stderr() -> None:
    """Declare that this process runs one command, whose message is the last on stderr."""
    global _alone
    _alone = True


def refuse(words: object) -> None:
    """Print one clean line on stderr.  After `claim_stderr` it is the last: later output is discarded."""
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
    """Hold back stderr until the end of the block, and discard it if the block raises a `MeshError`.

    Only after `claim_stderr`: otherwise stderr belongs to another program.
    """
    if not _alone or _kept is not None or sys.stderr is None:
        yield
        return
    sys.stderr.flush()
    from tempfile import TemporaryFile

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
    """Discard all that is written to stderr; `kept` is the original."""
    global _kept
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    _kept = kept


def _heard(said: int, kept: int) -> None:
    """Restore stderr, and print what was held back."""
    sys.stderr.flush()
    os.dup2(kept, 2)
    os.close(kept)
    os.lseek(said, 0, os.SEEK_SET)
    while words := os.read(said, 2**16):
        os.write(2, words)
