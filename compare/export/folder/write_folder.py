"""The folder of an export: written beside its place, then put there whole; another's is never touched."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from compare.export.folder.errors import ExportError
from compare.run.folder.replace_folder import swap_folders
from meshes.process import atomic_files
from meshes.process.documents import read_json
from meshes.process.errors import MeshError

MARK = "wirediff-export.txt"
"""What makes a folder an export: JSON, named so that no tool takes it for a trace."""


@dataclass(frozen=True, slots=True)
class ExportFolder:
    """A folder that is being written."""

    path: Path

    def finish(self, *, to: str, names: Sequence[str]) -> None:
        """Say what is in it."""
        (self.path / MARK).write_text(json.dumps({"to": to, "folders": list(names)}, indent=1) + "\n")


@contextmanager
def open_export(place: Path) -> Iterator[ExportFolder]:
    """A folder to write into; left well, it takes its place, left by an error it is gone.

    `ExportError` where something else is there, or it can't be written.
    """
    try:
        place = place.resolve()
        _refuse_others(place)
        with atomic_files.new_folder(place.parent, lambda word: f".{place.name}.{word}.part") as beside:
            yield ExportFolder(beside)
            _refuse_others(place)
            if place.exists():
                swap_folders(beside, place)
            else:
                beside.rename(place)
    except OSError as error:
        raise ExportError(f"cannot write {place}: {error.strerror or error}") from None


def _refuse_others(place: Path) -> None:
    """An export may be replaced, if it holds what was written, and nothing else."""
    if not place.exists():
        return
    if not place.is_dir():
        raise ExportError(f"{place} is no folder; choose another with --out")
    names = {path.name for path in place.iterdir()}
    if not names:
        return
    try:
        written = read_json(place / MARK) if MARK in names else {}
    except (OSError, MeshError):
        written = {}
    folders = written.get("folders") if isinstance(written, dict) else None
    others = names - {MARK, *(folders if isinstance(folders, list) else ())}
    if MARK not in names or others:
        named = ", ".join(sorted(others or names)[:3])
        raise ExportError(f"{place} holds what no export wrote ({named}); choose another with --out")
