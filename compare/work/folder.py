"""The run folder: written beside its place, then put there whole.

It can be mailed, committed, and read again with neither framework installed.
"""

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from compare.work.arms import ARMS
from compare.work.cache import file_digest, sweep
from compare.work.error import WorkError
from compare.work.jobs import PROCESS, Outcome
from meshes.case import Case

CASE = "case.json"
"""What a folder must hold to be taken for a run folder."""
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def writing(place: Path) -> Iterator[Path]:
    """A folder to write a run into; left well, it takes its place.

    Left by an error or an interrupt it is gone, and a run that was there before is untouched.  Raises `WorkError`
    when the place is another's, can't be written, or the disk is full: enter it before the work, to be told at once.
    """
    try:
        place = place.resolve()
        _refuse_another_s(place)
        beside = place.with_name(f".{place.name}.{uuid4().hex[:8]}.part")
        beside.mkdir(parents=True)
        sweep(place.parent, f".{place.name}.*.part")
    except OSError as error:
        raise WorkError(f"cannot write to {place.parent}: {error.strerror or error}") from error
    try:
        yield beside
        _put(beside, place)
    except OSError as error:
        raise WorkError(f"cannot write {place}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def place_of(case: Case, *, parent: Path, arms: Collection[str]) -> Path:
    """Where the run folder of a case is; a run of some arms leaves that of all of them alone."""
    return parent / "-".join([case.name, *([] if set(arms) == set(ARMS) else arms)])


def fill(folder: Path, *, case: Case, outcomes: Sequence[Outcome]) -> None:
    """Write the case, and each cell's results under `<arm>/<phase>/<cell>/`; of a failed one what there is."""
    (folder / CASE).write_text(case.to_json() + "\n")
    for outcome in outcomes:
        cell = folder / outcome.arm / outcome.phase / outcome.cell
        cell.mkdir(parents=True)
        for source, name in ((outcome.program, "program.mlirbc"), (outcome.compiled, "optimized.hlo.gz")):
            if source:
                shutil.copyfile(source / name, cell / name)
        rows = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in about(outcome).items())
        (cell / "about.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


def copy(run: Path, folder: Path) -> None:
    """The case and the cells of a run folder, without what is drawn from them."""
    shutil.copyfile(run / CASE, folder / CASE)
    for source in sorted(run.glob("*/*/*/about.json")):
        shutil.copytree(source.parent, folder / source.parent.relative_to(run))


def about(outcome: Outcome) -> dict[str, Any]:
    """What was found of one cell: how it ended, and what its two steps say, merged."""
    lowered = _read(outcome.program, "about.json")
    compiled = _read(outcome.compiled, "compiled.json")
    steps = {"lower": outcome.program, "compile": outcome.compiled}
    stages = {"lower": lowered.pop("seconds", {}), "compile": compiled.pop("seconds", {})}
    processes = {step: _read(folder, PROCESS) for step, folder in steps.items() if folder}
    return {
        "arm": outcome.arm,
        "phase": outcome.phase,
        "cell": outcome.cell,
        "status": outcome.status,
        "error": outcome.error,
        "failed_step": outcome.step,
        "stderr": list(outcome.stderr[-40:]),
        "versions": lowered.pop("versions", {}) | compiled.pop("versions", {}),
        "program_digest": file_digest(outcome.program / "program.mlirbc") if outcome.program else None,
        **{name: value for name, value in (lowered | compiled).items() if name not in {"arm", "phase"}},
        "seconds": {step: found for step, found in stages.items() if found},
        "process_s": {step: found.get("process_s") for step, found in processes.items()},
        "process_peak_bytes": {step: found.get("peak_bytes") for step, found in processes.items()},
        "cached": list(outcome.cached),
    }


def _read(folder: Path | None, name: str) -> dict[str, Any]:
    found = json.loads((folder / name).read_bytes()) if folder else {}
    return found if isinstance(found, dict) else {}


def _refuse_another_s(place: Path) -> None:
    if not place.exists():
        return
    if not place.is_dir():
        raise WorkError(f"{place} is no folder; choose another with --out")
    if not (place / CASE).is_file() and any(place.iterdir()):
        raise WorkError(
            f"{place} is not a run folder of wirediff (no {CASE} in it), and not empty; choose another --out"
        )


def _put(beside: Path, place: Path) -> None:
    """Rename into place; what was there goes in one step, so that there is a whole run folder at every moment."""
    _refuse_another_s(place)
    try:
        beside.rename(place)
        return
    except OSError:
        if not place.exists():
            raise
    if not _exchange(beside, place):
        # No such system call here: for a moment there is none, never half of one.
        aside = beside.with_name(beside.name.replace(".part", ".old.part"))
        place.rename(aside)
        try:
            beside.rename(place)
        except OSError:
            with suppress(OSError):
                aside.rename(place)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders at once, where the system (Linux) and the file system can."""
    if sys.platform != "linux":
        return False
    try:
        rename = ctypes.CDLL(None).renameat2
    except AttributeError:
        return False
    return bool(rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0)
