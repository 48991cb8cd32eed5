"""A run folder read again: the case, and what came of each program.  No framework is needed."""

import gzip
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.judge.summary import CellResult, summarize
from compare.work.arms import ARMS
from compare.work.error import WorkError
from compare.work.folder import CASE
from meshes.case import Case
from meshes.errors import MeshError


@dataclass(frozen=True, slots=True)
class Run:
    """What a run folder holds."""

    case: Case
    results: tuple[CellResult, ...]

    @property
    def titles(self) -> dict[str, str]:
        """The arms that were asked for, in the order of the table of arms, and their names."""
        there = {result.arm for result in self.results}
        known = {name: arm.title for name, arm in ARMS.items() if name in there}
        return known | {name: name for name in sorted(there - set(known))}

    def report(self) -> dict[str, Any]:
        """Every program read and judged."""
        return summarize(self.case, self.results, titles=self.titles)

    @property
    def whole(self) -> bool:
        """Whether every program was compiled."""
        return all(result.status == "ok" for result in self.results)


def read_run(folder: Path) -> Run:
    """Read a run folder.  A damaged cell is a failed one; raises `WorkError` where there is no run at all."""
    try:
        case = Case.from_json((folder / CASE).read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkError(f"{folder} is not a run folder: {CASE}: {error.strerror}") from None
    except (MeshError, UnicodeDecodeError) as error:
        raise WorkError(f"{folder / CASE} cannot be read: {error}") from None
    cells = sorted(folder.glob("*/*/*/about.json"))
    if not cells:
        raise WorkError(f"{folder} holds no program; a run folder has <arm>/<phase>/<cell>/about.json")
    return Run(case, tuple(_cell(path.parent) for path in cells))


def _cell(folder: Path) -> CellResult:
    arm, phase, cell = folder.parts[-3:]
    try:
        about: dict[str, Any] = json.loads((folder / "about.json").read_bytes())
        status, error = str(about["status"]), about.get("error") or None
        hlo = _text(folder / "optimized.hlo.gz") if status == "ok" else None
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as problem:
        return CellResult(arm=arm, phase=phase, cell=cell, status="damaged", error=f"cannot be read again: {problem}")
    return CellResult(arm=arm, phase=phase, cell=cell, status=status, error=error, about=about, hlo=hlo)


def _text(path: Path) -> str:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read()
