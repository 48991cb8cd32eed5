"""How a run folder takes its place: written beside it, then put there whole, whoever else writes there."""

import ctypes
import fcntl
import glob
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from compare.run.errors import WorkError
from meshes.process import atomic_files

CASE = "case.json"
"""What a folder must hold to be taken for a run folder."""
_OWN = (
    re.compile(r"((case|report|remedies)\.json|(report|remedies)\.html)"),
    re.compile(r"figures/(verdicts|(traffic|time)-(prefill|decode)-[^/]+)\.(png|svg)"),
    re.compile(r"timeline\.perfetto\.json\.gz"),
    re.compile(r"tables/[^/]*\.parquet"),
    re.compile(r"[^/]+/(prefill|decode)/[^/]+/(program\.mlirbc|optimized\.hlo\.gz|passes\.tar\.xz|about\.json)"),
    re.compile(r"[^/]+/(prefill|decode)/[^/]+/trace/plugins/profile/.*"),
)
"""What is written here: anything else in a run folder is its owner's, and stays."""
_OLD = ".old.part"
"""Ends the name of a run that is being replaced, where that takes two steps."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def open_replacement(place: Path) -> Iterator[Path]:
    """A folder to write a run into; left well, it takes its place, unless `put_in_place` has put it elsewhere.

    What others keep in a run folder that was there before is carried over.  Left by an error or an interrupt it is
    gone, and a run that was there before is untouched.  Raises `WorkError` when the place is another's, can't be
    written, or the disk is full: enter it before the work, to be told at once.
    """
    try:
        place = place.resolve()
        _refuse_another_s(place)
        with ExitStack() as stack:
            beside = stack.enter_context(
                atomic_files.new_folder(place.parent, lambda word: f".{place.name}.{word}.part")
            )
            _tidy(place)
            leave = stack.pop_all()
    except OSError as error:
        raise WorkError(f"cannot write to {place.parent}: {error.strerror or error}") from error
    with leave:
        try:
            yield beside
            if beside.exists():
                move_into_place(beside, place)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and error.filename and not _is_below(error.filename, place.parent):
                raise  # something else that the work needed
            raise WorkError(f"cannot write {place}: {error.strerror or error}") from error


def _is_below(name: str | bytes, folder: Path) -> bool:
    return Path(os.fsdecode(name)).resolve().is_relative_to(folder)


def _refuse_another_s(place: Path) -> None:
    if not place.exists():
        return
    if not place.is_dir():
        raise WorkError(f"{place} is no folder; choose another with --out")
    if not (place / CASE).is_file() and any(place.iterdir()):
        raise WorkError(
            f"{place} is not a run folder of wirediff (no {CASE} in it), and not empty; choose another --out"
        )


def _tidy(place: Path) -> None:
    """Remove what runs that were killed have left beside this place; the only copy of a run goes back to it."""

    def leave(left: Path) -> bool:
        if not left.name.endswith(_OLD) or place.exists():
            return False
        left.rename(place)
        return True

    with _alone_in(place.parent):
        atomic_files.remove_leftovers(place.parent, f".{glob.escape(place.name)}.*.part", leave=leave)


def move_into_place(beside: Path, place: Path) -> None:
    """Rename into place; what was there goes in one step, so that there is a whole run folder at every moment."""
    with _alone_in(place.parent):
        _refuse_another_s(place)
        try:
            beside.rename(place)
            return
        except OSError:
            if not place.exists():
                raise
        _carry(place, beside)
        _swap(beside, place)


@contextmanager
def _alone_in(parent: Path) -> Iterator[None]:
    """One run at a time, so that what a run carries over is not taken away by another."""
    opened = os.open(parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _carry(old: Path, new: Path) -> None:
    """Whatever in a run folder was not written here is in the new one too: links to the same files, or copies."""
    for at, folders, files in os.walk(old):
        here = Path(at).relative_to(old)
        links = [name for name in folders if (old / here / name).is_symlink()]
        empty = not folders and not files and here.parts
        for name in [*files, *links]:
            path = here / name
            if any(own.fullmatch(path.as_posix()) for own in _OWN) or os.path.lexists(new / path):
                continue
            (new / here).mkdir(parents=True, exist_ok=True)
            try:
                os.link(old / path, new / path, follow_symlinks=False)
            except (OSError, NotImplementedError):
                shutil.copy2(old / path, new / path, follow_symlinks=False)
        if empty:
            (new / here).mkdir(parents=True, exist_ok=True)


def _swap(beside: Path, place: Path) -> None:
    if _exchange(beside, place):
        shutil.rmtree(beside, ignore_errors=True)
        return
    # No such system call here: for a moment there is none, never half of one; after a kill `_tidy` brings it back.
    aside = beside.with_name(beside.name.removesuffix(".part") + _OLD)
    place.rename(aside)
    try:
        beside.rename(place)
    except OSError:
        with suppress(OSError):
            aside.rename(place)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _exchange(path: Path, other: Path) -> bool:
    """Swap two folders at once, where the system (Linux) and the file system can."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(path), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)
