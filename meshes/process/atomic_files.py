"""Files and folders that are there whole, or not at all, whoever kills whom: written beside, then renamed.

A folder that is still being written is locked by the process that writes it, and the system takes the lock away with
the process: what nobody holds is a dead process's, and goes.
"""

import fcntl
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

STALE_S = 24 * 3600
"""Where a file system has no locks: after a day, what is half made is a dead process's."""


_TEMPORARY = "wirediff-"


def write_text(path: Path, text: str) -> None:
    """A text file, whole; what is no regular file (a terminal, a pipe) is written to as it is."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """The same of bytes.  A link is replaced, and what it leads to left alone."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    sweep(path.parent, f".{glob.escape(path.name)}.*.part")
    beside = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with beside.open("wb") as file:
            _lock(file.fileno())
            if not beside.exists():  # another's sweep was in between
                return write_bytes(path, data)
            file.write(data)
            file.flush()
            beside.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def new_folder(parent: Path, name: Callable[[str], str]) -> Iterator[Path]:
    """A new folder that this process holds, gone at the end if it is still there.  `name` makes one of a random word.

    It may be renamed meanwhile: then it stays.
    """
    folder, descriptor = _made(parent, name)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def sweep(parent: Path, pattern: str, *, leave: Callable[[Path], bool] = lambda left: False) -> None:
    """Remove what processes have left that are no more: files and folders of this user, and of no living process.

    leave: of those, which to keep: called while this process holds it.
    """
    for left in sorted(parent.glob(pattern)):
        with suppress(OSError), _locked(left) as free:
            if free and not leave(left):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()


@contextmanager
def temporary() -> Iterator[Path]:
    """A folder for what nobody keeps, gone at the end; what dead processes have left of theirs goes, too."""
    parent = Path(tempfile.gettempdir())
    sweep(parent, f"{_TEMPORARY}*")
    with new_folder(parent, _TEMPORARY.__add__) as folder:
        yield folder


def _made(parent: Path, name: Callable[[str], str]) -> tuple[Path, int]:
    while True:
        folder = parent / name(uuid4().hex)
        parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # another's sweep was in between
            continue
        _lock(descriptor)
        if folder.exists():
            return folder, descriptor
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextmanager
def _locked(left: Path) -> Iterator[bool]:
    """Whether nobody holds this file or folder; then this process does.  `OSError` where it is a link."""
    descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        there = os.fstat(descriptor)
        if there.st_uid != os.geteuid():
            yield False
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        except OSError:
            yield time.time() - there.st_mtime > STALE_S
        else:
            yield True
    finally:
        os.close(descriptor)
