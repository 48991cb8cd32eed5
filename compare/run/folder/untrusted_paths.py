"""What a run folder of a stranger holds: its cells and their files, none of which lead out of it."""

import re
from collections.abc import Iterator
from pathlib import Path

from compare.run.errors import WorkError
from meshes.process.one_line import quote

ABOUT = "about.json"
"""What a folder must hold to be taken for a cell."""

_NAME = re.compile(r"[\w.+-]{1,100}", re.ASCII)


def is_inside(run: Path, path: Path) -> bool:
    """Whether this is a file of the run folder: not a link that leads out of it."""
    return path.is_file() and path.resolve().is_relative_to(run.resolve())


def list_cells(run: Path) -> Iterator[Path]:
    """The folders `<arm>/<phase>/<cell>` that hold an about.json, in order of their names.

    A folder that is a link out of the run is none.  Raises `WorkError` for a name that no arm and no cell can have.
    """
    found = [run]
    for _ in range(3):
        found = [path for folder in found for path in sorted(folder.iterdir()) if _is_folder(run, path)]
    for cell in found:
        if is_inside(run, cell / ABOUT):
            for name in cell.relative_to(run).parts:
                if not is_name(name):
                    raise WorkError(f"{run} has a program in a folder named {quote(name)}, which no run has; rename it")
            yield cell


def is_name(word: object) -> bool:
    """Whether an arm, a phase or a cell can be named so."""
    return isinstance(word, str) and bool(_NAME.fullmatch(word)) and word not in (".", "..")


def _is_folder(run: Path, path: Path) -> bool:
    return path.is_dir() and path.resolve().is_relative_to(run.resolve())
