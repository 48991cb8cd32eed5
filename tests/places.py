"""Where this checkout keeps what several tests read."""

import json
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


@cache
def example_report() -> Any:
    """The report of the example run."""
    return json.loads((EXAMPLE / "report.json").read_text(encoding="utf-8"))
