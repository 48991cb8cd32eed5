"""The cells and files of an untrusted run folder, without links that lead out of it."""

import re
from collections.abc import Iterator
from pathlib import Path

from compare.run.errors import WorkError
from meshes.process.one_line import quote

ABOUT = "about.json"
"""The file that marks a cell."""

_NAME = re.compile(r"[\w.+-]{1,100}", re.ASCII)


def is_inside(run: Path, path: Path) -> bool:
    """Whether this is a file within the run folder, not a link out of it."""
    return path.is_file() and path.resolve().is_relative_to(run.resolve())


def list_cells(run: Path) -> Iterator[Path]:
    """The folders `<arm>/<phase>/<cell>` with an about.json, sorted by name.

    Links out of the run folder are skipped.  Raises `WorkError` for a name that no arm or cell can have.
    """
    folders = [run]
    for _ in range(3):
        folders = [path for folder in folders for path in sorted(folder.iterdir()) if _is_folder(run, path)]
    for cell in folders:
        if is_inside(run, cell / ABOUT):
            for name in cell.relative_to(run).parts:
                if not is_name(name):
                    raise WorkError(f"{run} has a program in a folder named {quote(name)}, which no run has; rename it")
            yield cell


def is_name(word: object) -> bool:
    """Whether this is a valid name of an arm, a phase or a cell."""
    return isinstance(word, str) and bool(_NAME.fullmatch(word)) and word not in (".", "..")


def _is_folder(run: Path, path: Path) -> bool:
    return path.is_dir() and path.resolve().is_relative_to(run.resolve())
