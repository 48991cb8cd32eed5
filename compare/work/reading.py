"""A run folder read again: the case, and what came of each program.  No framework is needed."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compare.judge.summary import CellResult, summarize
from compare.program.errors import HloError
from compare.work.arms import ARMS
from compare.work.error import WorkError
from compare.work.folder import CASE
from meshes.case import Case
from meshes.errors import MeshError

_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("versions", "compile_options", "seconds", "memory", "cost"), dict),
    **dict.fromkeys(("error", "partitioner", "loop", "attention", "style", "program_digest", "hlo_digest"), str),
    "parameters": list,
}
_VALUES: dict[str, type | tuple[type, ...]] = {"versions": str, "memory": (int, float)}
"""Of `about.json`: what its fields are where they are there, and what is in them."""


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
        """Every program read and judged; one that can't be is damaged, and the others stand."""
        try:
            return summarize(self.case, self.results, titles=self.titles)
        except HloError:
            return summarize(self.case, [_sound(self.case, one) for one in self.results], titles=self.titles)


def judged(report: Mapping[str, Any]) -> bool:
    """Whether any program was."""
    return any(line["wire_bytes"] is not None for found in report["phases"].values() for line in found["headline"])


def whole(report: Mapping[str, Any]) -> bool:
    """Whether every program was compiled and judged."""
    return all(line["status"] == "ok" for found in report["phases"].values() for line in found["headline"])


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
    hlo = None
    at = folder / "about.json"
    try:
        about = _checked(json.loads(at.read_bytes()))
        status, error = about["status"], about.get("error") or None
        if status == "ok":
            at = folder / "optimized.hlo.gz"
            hlo = _text(at, about.get("hlo_digest"))
    except (OSError, EOFError, ValueError, zlib.error) as problem:
        why = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
        error = f"{'/'.join(at.parts[-4:])} cannot be read again: {why}"
        return CellResult(arm=arm, phase=phase, cell=cell, status="damaged", error=error)
    return CellResult(arm=arm, phase=phase, cell=cell, status=status, error=error, about=about, hlo=hlo)


def _checked(about: Any) -> dict[str, Any]:
    """The fields that a report repeats or judges by are of their types.  Raises `ValueError` naming the first."""
    if not isinstance(about, dict) or not isinstance(about.get("status"), str):
        raise ValueError("it says no status")
    for name, kind in _TYPES.items():
        if about.get(name) is not None and not isinstance(about[name], kind):
            raise ValueError(f"its {name} is {json.dumps(about[name])[:40]}")
    for name, kind in _VALUES.items():
        for value in (about.get(name) or {}).values():
            if value is not None and not isinstance(value, kind):
                raise ValueError(f"its {name} holds {json.dumps(value)[:40]}")
    for entry in about.get("parameters") or []:
        if (
            not isinstance(entry, dict)
            or not isinstance(entry.get("index"), int)
            or not isinstance(entry.get("role"), str)
        ):
            raise ValueError("its parameters are not entries of index and role")
    return about


def _sound(case: Case, result: CellResult) -> CellResult:
    """The same, or damaged where its HLO can't be understood."""
    try:
        summarize(case, [result], titles={result.arm: result.arm})
    except HloError as problem:
        at = f"{result.arm}/{result.phase}/{result.cell}/optimized.hlo.gz"
        return replace(result, status="damaged", error=f"{at} cannot be understood: {problem}", hlo=None)
    return result


def _text(path: Path, digest: str | None) -> str:
    packed = path.read_bytes()
    if digest and hashlib.sha256(packed).hexdigest() != digest:
        raise ValueError("it is not the file whose digest about.json has")
    return gzip.decompress(packed).decode()
