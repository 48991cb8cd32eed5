"""The folder of an export: written beside its place, then put there whole; another's files are never touched."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compare.export.folder.errors import ExportError
from compare.run.cache import file_digest
from compare.run.folder.replace_folder import remove_scratch, swap_folders
from meshes.process import atomic_files
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

MARK = "wirediff-export.txt"
"""What makes a folder an export: JSON with a digest of every file, named so that no tool takes it for a trace."""


@dataclass(frozen=True, slots=True)
class ExportFolder:
    """A folder that is being written."""

    path: Path

    to: str
    """Which tool it is for."""

    def finish(self, names: Sequence[str]) -> None:
        """Say what is in it."""
        files = {name: file_digest(self.path / name) for name in sorted(_list_files(self.path))}
        mark = {"to": self.to, "folders": list(names), "files": files}
        (self.path / MARK).write_text(json.dumps(mark, indent=1) + "\n")


@contextmanager
def open_export(place: Path, *, to: str) -> Iterator[ExportFolder]:
    """A folder to write into; left well, it takes its place, left by an error it is gone.

    `ExportError` where something else is there, or it can't be written.
    """
    try:
        place = place.resolve()
        _refuse_others(place, to)
        remove_scratch(place)
        with atomic_files.new_folder(place.parent, lambda word: f".{place.name}.{word}.part") as beside:
            yield ExportFolder(beside, to)
            _refuse_others(place, to)
            if place.exists():
                swap_folders(beside, place)
            else:
                beside.rename(place)
    except OSError as error:
        raise ExportError(f"cannot write {place}: {error.strerror or error}") from None


def _refuse_others(place: Path, to: str) -> None:
    """An export may be replaced by one for the same tool where each file is as it was written."""
    if not place.exists():
        return
    if not place.is_dir():
        raise ExportError(f"{place} is no folder; choose another with --out")
    found = _list_files(place)
    if not found:
        return
    mark = _read_mark(place)
    if (other := mark.get("to", to)) != to:
        raise ExportError(f"{place} holds an export for {quote(other)}; choose another with --out")
    files = mark.get("files")
    written = files if isinstance(files, dict) else {}
    others = [name for name in found if name != MARK and not _is_written(place / name, written.get(name))]
    if MARK not in found or others:
        named = ", ".join(sorted(others or found)[:3])
        raise ExportError(f"{place} holds what no export wrote ({named}); choose another with --out")


def _is_written(path: Path, digest: object) -> bool:
    return bool(digest) and path.is_file() and not path.is_symlink() and file_digest(path) == digest


def _read_mark(place: Path) -> dict[str, object]:
    try:
        mark = read_json(place / MARK)
    except (OSError, MeshError):
        return {}
    return mark if isinstance(mark, dict) else {}


def _list_files(place: Path) -> set[str]:
    """All files below it, links to folders, and folders with nothing in them, by their paths."""
    return {
        (Path(at) / name).relative_to(place).as_posix()
        for at, folders, files in os.walk(place, onerror=_raise)
        for name in [*files, *(each for each in folders if _is_end(Path(at, each)))]
    }


def _is_end(folder: Path) -> bool:
    return folder.is_symlink() or not any(folder.iterdir())


def _raise(error: OSError) -> None:
    raise error
