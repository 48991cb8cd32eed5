"""Replace a run folder atomically: written beside it, then renamed, also with concurrent runs."""

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
"""The file that marks a run folder."""
PROGRAMS = "programs"
"""Key in case.json: the requested programs, as `<arm>/<phase>/<cell>`."""
SIMULATION = "simulation.json"
"""In a run folder, the machine on which its compiled programs are simulated (`compare.simulate RUN --out`)."""
_OWN = (
    re.compile(r"((case|report|remedies|simulation|what-if)\.json|(report|remedies)\.html|(chip|power)\.toml)"),
    re.compile(r"figures/(verdicts|what-if|(traffic|time|energy)-(prefill|decode)-[^/]+)\.(png|svg)"),
    re.compile(r"timeline\.perfetto\.json\.gz"),
    re.compile(r"tables/[^/]*\.parquet"),
    re.compile(r"[^/]+/(prefill|decode)/[^/]+/(program\.mlirbc|optimized\.hlo\.gz|passes\.tar\.xz|about\.json)"),
    re.compile(r"[^/]+/(prefill|decode)/[^/]+/trace/plugins/profile/.*"),
)
"""The files that wirediff writes; all others in a run folder belong to the user, and are kept."""
_OLD = ".old.part"
"""Suffix of a run that is being replaced in two steps."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def is_cell(path: Path) -> bool:
    """Whether it is the folder of one program of a run, RUN/jax/decode/tpu."""
    folders = path.resolve().parents
    return (path / "about.json").is_file() and len(folders) > 2 and (folders[2] / CASE).is_file()


@contextmanager
def open_replacement(target: Path) -> Iterator[Path]:
    """A scratch folder for a run; on success it replaces `target`, unless `put_in_place` has moved it elsewhere.

    The user's files in an existing run folder are carried over.  On an error or interrupt the scratch folder is removed
    and an existing run is untouched.  Raises `WorkError` when the target is not a run folder, cannot be written, or the
    disk is full: enter it before the work, to fail early.
    """
    try:
        target = target.resolve()
        refuse_foreign_folder(target)
        with ExitStack() as stack:
            scratch = stack.enter_context(
                atomic_files.new_folder(target.parent, lambda word: f".{target.name}.{word}.part")
            )
            remove_scratch(target)
            cleanup = stack.pop_all()
    except OSError as error:
        raise WorkError(f"cannot write to {target.parent}: {error.strerror or error}") from error
    with cleanup:
        try:
            yield scratch
            if scratch.exists():
                move_into_place(scratch, target)
        except OSError as error:
            if isinstance(error, FileNotFoundError) and error.filename and not _is_below(error.filename, target.parent):
                raise  # another missing file, which the work needed
            raise WorkError(f"cannot write {target}: {error.strerror or error}") from error


def _is_below(name: str | bytes, folder: Path) -> bool:
    return Path(os.fsdecode(name)).resolve().is_relative_to(folder)


def refuse_file(place: Path) -> None:
    """`WorkError` where a file is in the place of a folder."""
    if place.exists() and not place.is_dir():
        raise WorkError(f"{place} is no folder; choose another with --out")


def refuse_foreign_folder(target: Path) -> None:
    """`WorkError` where no run may be written: at a file, or in a folder with files that is no run folder."""
    refuse_file(target.parent)
    refuse_file(target)
    if not target.exists():
        return
    if not (target / CASE).is_file() and any(target.iterdir()):
        raise WorkError(
            f"{target} is not a run folder of wirediff (no {CASE} in it), and not empty; choose another --out"
        )


def remove_scratch(target: Path) -> None:
    """Remove the scratch folders of killed processes beside this target; the only copy of a folder is moved back."""

    def leave(leftover: Path) -> bool:
        if not leftover.name.endswith(_OLD) or target.exists():
            return False
        leftover.rename(target)
        return True

    with _alone_in(target.parent):
        atomic_files.remove_leftovers(target.parent, f".{glob.escape(target.name)}.*.part", leave=leave)


def move_into_place(scratch: Path, target: Path) -> None:
    """Rename into place, in one step, so that there is a complete run folder at every moment."""
    with _alone_in(target.parent):
        refuse_foreign_folder(target)
        try:
            scratch.rename(target)
            return
        except OSError:
            if not target.exists():
                raise
        _carry(target, scratch)
        swap_folders(scratch, target)


@contextmanager
def _alone_in(parent: Path) -> Iterator[None]:
    """Lock the parent folder, so that runs do not interfere while one carries files over."""
    opened = os.open(parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _carry(old: Path, new: Path) -> None:
    """Carry the user's files of a run folder over to the new one, as hard links or copies."""
    for folder, folders, files in os.walk(old):
        relative = Path(folder).relative_to(old)
        links = [name for name in folders if (old / relative / name).is_symlink()]
        empty = not folders and not files and relative.parts
        for name in [*files, *links]:
            path = relative / name
            if any(pattern.fullmatch(path.as_posix()) for pattern in _OWN) or os.path.lexists(new / path):
                continue
            (new / relative).mkdir(parents=True, exist_ok=True)
            try:
                os.link(old / path, new / path, follow_symlinks=False)
            except (OSError, NotImplementedError):
                shutil.copy2(old / path, new / path, follow_symlinks=False)
        if empty:
            (new / relative).mkdir(parents=True, exist_ok=True)


def swap_folders(scratch: Path, target: Path) -> None:
    """Put a folder in the place of another, which is then deleted."""
    if _exchange(scratch, target):
        shutil.rmtree(scratch, ignore_errors=True)
        return
    # No such system call: for a moment there is no folder, but never a partial one; after a kill `remove_scratch`
    # recovers it.
    old = scratch.with_name(scratch.name.removesuffix(".part") + _OLD)
    target.rename(old)
    try:
        scratch.rename(target)
    except OSError:
        with suppress(OSError):
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(path: Path, other: Path) -> bool:
    """Swap two folders atomically, where the system (Linux) and the file system can."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(path), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)
