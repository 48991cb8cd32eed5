"""Where this checkout keeps what several tests read."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CORPUS = ROOT / "tests/compare/hlo/corpus"
"""Compiled programs whose collectives were worked out by hand."""
PROFILES = ROOT / "tests/compare/profile/profiles"
RECORDED = ROOT / "tests/compare/passes/recorded"
"""Pass dumps of libtpu."""
EXAMPLE = ROOT / "docs/example-run"
GALLERY = ROOT / "docs/gallery"


def copy_example(place: Path, *programs: str, passes: bool = True, **changes: object) -> Path:
    """A run folder of some of the example's programs, `ARM/PHASE/CELL`; changes: of its case."""
    for name in programs:
        shutil.copytree(EXAMPLE / name, place / name, ignore=None if passes else shutil.ignore_patterns("passes.*"))
    case = json.loads((EXAMPLE / "case.json").read_text(encoding="utf-8"))
    (place / "case.json").write_text(json.dumps(case | {"programs": list(programs)} | changes), encoding="utf-8")
    return place


@cache
def example_report() -> Any:
    """The report of the example run."""
    return json.loads((EXAMPLE / "report.json").read_text(encoding="utf-8"))
