"""Which cases of a sweep are done: a mark for each, written after its run folder stands in its place.

A mark says what made the run and which report it was.  A kill before the mark leaves a case that is made again, from
the cache where its programs are; changed sources, versions or another run in its place make it old.
"""

import json
from collections.abc import Sequence
from functools import cache as once
from pathlib import Path

from compare.run.arms import COMPILER, arm, versions_of
from compare.run.cache import file_digest, key, sources_digest
from compare.run.tasks import ROOT, lower
from meshes.case import Case
from meshes.process import atomic_files
from meshes.process.documents import read_json

REPORT = "report.json"


def made_by(case: Case, arms: Sequence[str]) -> str:
    """A name for all that makes a run: case, arms, sources, versions, environment."""
    programs = [
        lower(cell.case_of(case.at(phases=(phase,))), one).key
        for one in map(arm, arms)
        for phase in case.phases
        for cell in one.cells(case)
    ]
    compiler = versions_of(COMPILER)
    return key({"case": case.to_dict(), "programs": programs, "compiler": compiler, "sources": _sources()})


def is_done(mark: Path, place: Path, *, by: str) -> bool:
    """Whether this run folder was made by the same, wholly, and is still the one that the mark was written for."""
    try:
        found = read_json(mark)
        return bool(found["by"] == by and found["report"] == file_digest(place / REPORT))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def write(mark: Path, place: Path, *, by: str) -> None:
    """Mark a run folder as done."""
    mark.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.write_text(mark, json.dumps({"by": by, "report": file_digest(place / REPORT)}, indent=1))


@once
def _sources() -> str:
    return sources_digest(ROOT / "compare")
