"""Atomic files and folders: written beside their destination, then renamed, so that a kill leaves nothing partial.

A folder being written is locked by its process, and the system releases the lock with the process: an unlocked one
belongs to a dead process, and is removed.
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
"""On a file system without locks a partial folder this old belongs to a dead process."""


_TEMPORARY = "wirediff-"


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically; what is no regular file (a terminal, a pipe) is written to directly."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically.  A link is replaced, and its target left alone."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
        return
    remove_leftovers(path.parent, f".{glob.escape(path.name)}.*.part")
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
    """A new folder, locked by this process and removed at the end; `name` makes its name from a random word.

    A folder that has been renamed meanwhile stays.
    """
    folder, descriptor = _create(parent, name)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_leftovers(parent: Path, pattern: str, *, leave: Callable[[Path], bool] = lambda left: False) -> None:
    """Remove the leftovers of dead processes: files and folders of this user that no process holds a lock on.

    leave: whether to keep one; called while this process holds its lock.
    """
    for left in sorted(parent.glob(pattern)):
        with suppress(OSError), _locked(left) as free:
            if free and not leave(left):
                shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink()


@contextmanager
def temporary() -> Iterator[Path]:
    """A temporary folder, removed at the end, as are those of dead processes."""
    parent = Path(tempfile.gettempdir())
    remove_leftovers(parent, f"{_TEMPORARY}*")
    with new_folder(parent, _TEMPORARY.__add__) as folder:
        yield folder


def _create(parent: Path, name: Callable[[str], str]) -> tuple[Path, int]:
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
    """Whether no process holds a lock on it; then this process takes one.  `OSError` for a link."""
    descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            yield False
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        except OSError:
            yield time.time() - status.st_mtime > STALE_S
        else:
            yield True
    finally:
        os.close(descriptor)
