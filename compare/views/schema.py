"""What a report must look like: `report.schema.json`, and the check of one that was read from a file."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from compare.views.error import ViewError

SCHEMA_FILE = Path(__file__).parent / "report.schema.json"


@cache
def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of report.json."""
    read: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    return read


def check(report: Any) -> Mapping[str, Any]:
    """The report, if it is one.  Raises `ViewError` that says the first thing that is not as it should be."""
    if isinstance(report, dict) and isinstance(report.get("schema"), int):
        known = schema()["properties"]["schema"]["const"]
        if report["schema"] != known:
            raise ViewError(f"the report has schema {report['schema']}; this wirediff reads schema {known}")
    wrong = best_match(Draft202012Validator(schema()).iter_errors(report))
    if wrong is not None:
        where = "/".join(map(str, wrong.absolute_path)) or "the top"
        raise ViewError(f"this is not a report of wirediff: at {where}: {' '.join(wrong.message.split())[:200]}")
    checked: Mapping[str, Any] = report
    return checked
