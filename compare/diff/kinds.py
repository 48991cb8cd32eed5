"""What is compared: two programs, two cells of runs, two run folders, or two profiles."""

from pathlib import Path

from compare.run.errors import WorkError
from compare.run.folder.replace_folder import CASE, is_cell
from compare.user_program.saved_program import is_saved

PROGRAMS, CELLS, RUNS, PROFILES = "programs", "cells", "runs", "profiles"
_SHAPE = "name two programs, two profiles, two run folders, or two cells of such (RUN/jax/prefill/tpu)"
_PROFILES = (".xplane.pb", ".xplane.pb.gz", ".trace.json", ".trace.json.gz")


def kind_of(a: Path, b: Path) -> str:
    """What two paths are.  Raises `WorkError` if they differ in kind, or are other folders."""
    kinds = [_kind(path) for path in (a, b)]
    if kinds[0] != kinds[1]:
        words = {PROGRAMS: "a program", CELLS: "a cell of a run", RUNS: "a run folder", PROFILES: "a profile"}
        raise WorkError(f"{a} is {words[kinds[0]]} and {b} is {words[kinds[1]]}; {_SHAPE}")
    return kinds[0]


def _kind(path: Path) -> str:
    if path.name.endswith(_PROFILES) and not path.is_dir():
        return PROFILES
    if str(path) != "-" and not path.exists():
        raise WorkError(f"{path}: No such file or directory; {_SHAPE}")
    if not path.is_dir() or is_saved(path):
        return PROGRAMS
    if (path / CASE).is_file():
        return RUNS
    if is_cell(path):
        return CELLS
    if any(next(path.rglob(f"*{ending}"), None) for ending in _PROFILES):
        return PROFILES
    raise WorkError(
        f"{path} is not a run folder (no {CASE} in it), nor a cell of one, nor the folder of a profile; {_SHAPE}"
    )
