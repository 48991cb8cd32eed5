"""What is compared: two programs, two cells of runs, or two run folders."""

from collections.abc import Mapping
from pathlib import Path

from compare.diff.diff_report import Key, diff_report, run_report
from compare.diff.matching import match
from compare.diff.result import ProgramsDiff, RunsDiff
from compare.report.programs import MISSING, JudgedProgram
from compare.run.errors import WorkError
from compare.run.folder.load_run import JudgedRun, judge_run, read_run
from compare.run.folder.replace_folder import CASE
from compare.user_program.program_mesh import format_axes
from compare.user_program.read_program import open_program, read_all
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
    if not path.is_dir() or is_saved(path):
        return PROGRAMS
    if (path / CASE).is_file():
        return RUNS
    if (path / "about.json").is_file() and (path.resolve().parents[2] / CASE).is_file():
        return CELLS
    if any(next(path.rglob(f"*{ending}"), None) for ending in _PROFILES):
        return PROFILES
    raise WorkError(
        f"{path} is not a run folder (no {CASE} in it), nor a cell of one, nor the folder of a profile; {_SHAPE}"
    )


def diff_programs(
    a: str, b: str, *, axes: Mapping[str, int], topology: str = "", no_cache: bool = False
) -> ProgramsDiff:
    """The diff of two files, or folders of saved programs, which are compiled first if need be.

    axes: if empty, those that the programs record, which must be equal.
    """
    first, second = read_all([open_program(a), open_program(b)], axes=axes, topology=topology, no_cache=no_cache)
    if first.saved.axes and second.saved.axes and dict(first.saved.axes) != dict(second.saved.axes):
        axes_of = f"{a} has the axes {format_axes(first.saved.axes)}, {b} has {format_axes(second.saved.axes)}"
        raise WorkError(f"{axes_of}; pass the axes of both with --axes")
    compiled = first.compiled, second.compiled
    return diff_report(match(first.rows, second.rows), names=(a, b), axes=second.saved.axes, compiled=compiled)


def diff_cells(a: Path, b: Path) -> ProgramsDiff:
    """The diff of two programs of run folders, over the axes of the second's case."""
    first, second = _cell(a), _cell(b)
    axes = second.case.mesh.split_axes
    return diff_report(match(first.rows, second.rows), names=(str(a), str(b)), axes=axes)


def _cell(path: Path) -> JudgedProgram:
    place = path.resolve()
    program = next(
        cell for cell in judge_run(read_run(place.parents[2])).programs if cell.result.key == place.parts[-3:]
    )
    if program.result.status != "ok":
        raise WorkError(f"{path} has no program: {program.result.status}: {program.result.error}")
    return program


def diff_runs(a: Path, b: Path) -> RunsDiff:
    """The diff of two run folders, both judged again by the same rules."""
    runs = judge_run(read_run(a)), judge_run(read_run(b))
    return run_report((_cells(runs[0]), _cells(runs[1])), (runs[0].report(), runs[1].report()), names=(str(a), str(b)))


def _cells(run: JudgedRun) -> dict[Key, JudgedProgram]:
    """The programs that a run folder still has."""
    return {cell.result.key: cell for cell in run.programs if cell.result.status != MISSING}
