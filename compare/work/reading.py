"""A run folder read again: the case, and what came of each program.  No framework is needed."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from compare.judge.cells import GOOD, CellResult, Judged
from compare.judge.summary import summarize
from compare.program import passes
from compare.program.errors import HloError
from compare.work.arms import ARMS
from compare.work.error import WorkError
from compare.work.placing import CASE
from compare.work.timelines import Timelines, add_times, timelines
from meshes.case import Case
from meshes.errors import MeshError

_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("versions", "compile_options", "seconds", "memory", "cost"), dict),
    **dict.fromkeys(
        ("error", "partitioner", "loop", "attention", "style", "program_digest", "hlo_digest", "passes_digest"), str
    ),
    **dict.fromkeys(("parameters", "device_ids"), list),
}
_VALUES: dict[str, type | tuple[type, ...]] = {"versions": str, "memory": (int, float)}
"""Of `about.json`: what its fields are where they are there, and what is in them."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run folder holds."""

    folder: Path
    case: Case
    cells: tuple[Judged, ...]

    @property
    def titles(self) -> dict[str, str]:
        """The arms that were asked for, in the order of the table of arms, and their names."""
        there = {cell.result.arm for cell in self.cells}
        known = {name: arm.title for name, arm in ARMS.items() if name in there}
        return known | {name: name for name in sorted(there - set(known))}

    def report(self, times: Timelines) -> dict[str, Any]:
        """Every program read, judged and timed."""
        report = summarize(self.case, self.cells, titles=self.titles)
        add_times(report, self.cells, times)
        return report

    def timelines(self) -> Timelines:
        """Of every program that was compiled, the modelled one; of every one that was run, the measured one."""
        return timelines(self.cells, folder=self.folder)


def judged(report: Mapping[str, Any]) -> bool:
    """Whether any program was."""
    return any(line["wire_bytes"] is not None for found in report["phases"].values() for line in found["headline"])


def whole(report: Mapping[str, Any]) -> bool:
    """Whether every program that can be was compiled and judged, and each that was to be run was run and timed."""
    lines = [line for found in report["phases"].values() for line in found["headline"]]
    arms = [arm for found in report["phases"].values() for arm in found["arms"].values()]
    ran = [one for arm in arms for one in arm["profiles"].values()]
    return all(line["status"] in GOOD for line in lines) and all(one.get("timing") for one in ran)


def read_run(folder: Path) -> Run:
    """Read a run folder.  A damaged cell is a failed one; raises `WorkError` where there is no run at all."""
    try:
        case = Case.from_json((folder / CASE).read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkError(f"{folder} is not a run folder: {CASE}: {error.strerror}") from None
    except (MeshError, UnicodeDecodeError) as error:
        raise WorkError(f"{folder / CASE} cannot be read: {error}") from None
    cells = [path for path in sorted(folder.glob("*/*/*/about.json")) if path.parts[-3] in case.phases]
    if not cells:
        raise WorkError(f"{folder} holds no program; a run folder has <arm>/<phase>/<cell>/about.json")
    return Run(folder, case, tuple(_sound(Judged.of(case, _cell(path.parent))) for path in cells))


def _cell(folder: Path) -> CellResult:
    arm, phase, cell = folder.parts[-3:]
    hlo = executed = recorded = None
    at = folder / "about.json"
    try:
        about = _checked(json.loads(at.read_bytes()))
        executed = Case.from_json(json.dumps(about["case"])) if about.get("case") else None
        status, error = about["status"], about.get("error") or None
        if status == "ok":
            at = folder / "optimized.hlo.gz"
            hlo = _text(at, about.get("hlo_digest"))
            recorded = _passes(folder / passes.FILE, about.get("passes_digest"))
    except (OSError, EOFError, ValueError, zlib.error) as problem:
        why = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
        error = f"{'/'.join(at.parts[-4:])} cannot be read again: {why}"
        return CellResult(arm=arm, phase=phase, cell=cell, status="damaged", error=error, executed=executed)
    return CellResult(
        arm=arm, phase=phase, cell=cell, status=status, error=error, about=about, hlo=hlo, executed=executed,
        passes=recorded,
    )  # fmt: skip


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


def _sound(cell: Judged) -> Judged:
    """The same, judged; or damaged where its HLO can't be understood: the others stand."""
    try:
        _ = cell.judgement
    except HloError as problem:
        at = f"{'/'.join(cell.result.key)}/optimized.hlo.gz"
        error = f"{at} cannot be understood: {problem}"
        return replace(cell, result=replace(cell.result, status="damaged", error=error, hlo=None))
    return cell


def _passes(path: Path, digest: str | None) -> bytes | None:
    """The archive of recorded passes, empty where it is not the one that was made; None where there is none."""
    if not path.is_file():
        return b"" if digest else None
    packed = path.read_bytes()
    return packed if not digest or hashlib.sha256(packed).hexdigest() == digest else b""


def _text(path: Path, digest: str | None) -> str:
    packed = path.read_bytes()
    if digest and hashlib.sha256(packed).hexdigest() != digest:
        raise ValueError("it is not the file whose digest about.json has")
    return gzip.decompress(packed).decode()
