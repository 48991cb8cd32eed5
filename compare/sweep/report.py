"""What came of a sweep as one plain value, which `sweep.json`, the table, the figure and the page all read."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache as once
from pathlib import Path
from typing import Any

from compare.run.arms import find_arm
from compare.sweep.request import Combination
from meshes.process.documents import read_json
from meshes.process.one_line import one_line

SCHEMA = 1
"""Raised when a script that reads sweep.json would have to change; new fields do not raise it."""

_OPTIONS = ("batch", "seq", "microbatches", "capacity", "dtype", "loop", "attention")
"""Words of a case that the result repeats."""

_ASKED = ("meshes", "models", "checkpoint", "phases", "arm", *_OPTIONS)
"""Options that say which programs were asked for; how they were made is another matter."""

_TIMES = ("step_ns", "compute_ns", "exposed_ns")

FILE = "sweep.json"

Value = Mapping[str, Any]

NOTHING: Value = {"arms": {}, "results": []}


def result_row(
    combination: Combination,
    *,
    status: str,
    error: str = "",
    folder: str | None = None,
    report: Value | None = None,
) -> dict[str, Any]:
    """What came of one combination.  folder: the name of its run folder; report: the one in it."""
    case = combination.case.to_dict() if combination.case else {}
    return {
        "model": combination.model,
        "mesh": combination.mesh,
        "status": status,
        "error": error,
        "case": case.get("name"),
        "topology": case.get("topology"),
        "num_devices": combination.case.mesh.num_devices if combination.case else None,
        **{word: case.get(word) for word in _OPTIONS},
        "experts": combination.case.model.experts if combination.case else None,
        "folder": folder,
        "phases": {name: _phase(found) for name, found in report["phases"].items()} if report is not None else {},
    }


def earlier_rows(out: Path, results: Sequence[Value]) -> Value:
    """Of a sweep that was drawn into this folder before: the rows whose run folders are there and not in `results`.

    None of a file that is damaged, or of another schema: its run folders are left as they are.
    """
    try:
        found = read_json(out / FILE)
        check_sweep(found)
        own = {result["folder"] for result in results}
        rows = [one for one in found["results"] if _plain(one["folder"]) and one["folder"] not in own]
        rows = [{**row, "earlier": True} for row in rows if (out / row["folder"] / "report.json").is_file()]
        return {"arms": dict(found["arms"]), "results": rows} if rows else NOTHING
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return NOTHING


def check_sweep(found: Any) -> None:
    """Raise `ValueError` where this is not what `sweep.schema.json` describes."""
    schema = _schema()
    _check(found, schema, schema["$defs"], "sweep.json")
    for row in found["results"]:
        _check_case(row)


def check_row(row: Any) -> None:
    """The same of one of its results."""
    definitions = _schema()["$defs"]
    _check(row, definitions["result"], definitions, "the row")
    _check_case(row)


def _check_case(row: Value) -> None:
    """A row of a case has that case's numbers."""
    for word in ("num_devices", "batch", "seq", "microbatches"):
        if row["case"] is not None and row[word] is None:
            raise ValueError(f"the row has a case, and no {word}")


@once
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(Path(__file__).with_name("sweep.schema.json").read_text(encoding="utf-8"))
    return schema


_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,), "number": (int, float),
    "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


def _check(value: Any, schema: Value, definitions: Value, name: str) -> None:
    """The words of JSON Schema that `sweep.schema.json` uses; of anything else this would not know."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    names = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    allowed = tuple(kind for word in names for kind in _TYPES[word])
    if names and (not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed)):
        raise ValueError(f"{name} is no {' or '.join(names)}")
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        raise ValueError(f"{name} is none of the values that it may have")
    if isinstance(value, int | float) and value < schema.get("minimum", value):
        raise ValueError(f"{name} is less than {schema['minimum']}")
    if isinstance(value, list) and "items" in schema:
        for number, each in enumerate(value):
            _check(each, schema["items"], definitions, f"{name}[{number}]")
    if isinstance(value, dict):
        for word in schema.get("required", ()):
            if word not in value:
                raise ValueError(f"{name} has no {word}")
        for word, each in value.items():
            inner = schema.get("properties", {}).get(word, schema.get("additionalProperties", {}))
            _check(each, inner, definitions, f"{name}.{one_line(word, most=40)}")


def _plain(name: Any) -> bool:
    """Whether this is the name of a folder of the same folder."""
    return isinstance(name, str) and Path(name).name == name and name not in ("", "..") and "\0" not in name


def build_summary(
    results: Sequence[dict[str, Any]], *, asked: argparse.Namespace, arms: Sequence[str], before: Value = NOTHING
) -> dict[str, Any]:
    """All of a sweep, the sentence first; the rows of `before` stay behind its own."""
    words = {name: value for name, value in sorted(vars(asked).items()) if name in _ASKED}
    return {
        "schema": SCHEMA,
        "sentence": sentence(results) + _stay(len(before["results"])),
        "asked": {name: str(value) if isinstance(value, Path) else value for name, value in words.items()},
        "arms": {name: find_arm(name).title for name in arms}
        | {name: title for name, title in before["arms"].items() if name not in arms},
        "results": [*results, *before["results"]],
    }


def _stay(rows: int) -> str:
    return (
        f" {rows} row{'s' * (rows > 1)} of an earlier sweep in this folder {'is' if rows == 1 else 'are'} kept."
        if rows
        else ""
    )


def sentence(results: Sequence[Value]) -> str:
    """How many there are, and which program is furthest from its plan."""
    counts = {status: sum(result["status"] == status for result in results) for status in ("done", "refused")}
    failed = len(results) - sum(counts.values())
    told = f"{counts['done']} of {len(results)} combinations compiled and judged"
    others = [f"{number} {word}" for number, word in ((counts["refused"], "refused"), (failed, "failed")) if number]
    told += f" ({', '.join(others)})" if others else ""
    furthest = max(_ratios(results), default=None, key=lambda found: found[0])
    if furthest is None or furthest[0] <= 1:
        return f"{told}."
    ratio, one, phase, title = furthest
    number = f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.1f}" if ratio < 99.95 else f"{ratio:,.0f}"
    where = f"{title}, {one['model']} on {one['mesh']}, {phase}"
    return f"{told}. Largest ratio of emitted to inherent bytes: {number} × ({where})."


def is_complete(summary: Value) -> bool:
    """Whether every program of every case that was asked for and can be was compiled and judged."""
    return all(one["status"] in ("done", "refused") for one in summary["results"] if not one.get("earlier"))


def _ratios(results: Sequence[Value]) -> Iterator[tuple[float, Value, str, str]]:
    for result in results:
        for phase, found in result["phases"].items():
            for program in found["programs"]:
                if program["is_default"] and program["ratio"] is not None:
                    yield program["ratio"], result, phase, program["title"]


def _phase(found: Value) -> dict[str, Any]:
    entries = {
        (name, entry["cell"]): entry
        for name, default in found["arms"].items()
        for entry in (default, *default["controls"].values())
    }
    programs = [_program(line, found, entries[line["arm"], line["cell"]]) for line in found["headline"]]
    return {"inherent_total": found["inherent_total"], "programs": programs}


def _program(line: Value, found: Value, entry: Value) -> dict[str, Any]:
    """A line of a report's headline, with where it is from, its bytes between slices, and its modelled times."""
    timing = entry.get("timing") or {}
    steps = timing["per_step"] if timing.get("source") == "modelled" else {}
    default = found["arms"][line["arm"]]["cell"]
    return {
        **line,
        "is_default": line["cell"] == default,
        "is_compared": found["compared_cells"].get(line["arm"]) == line["cell"],
        "unserved": (entry["totals"] or {}).get("unserved"),
        "dcn_wire_bytes": (entry["totals"] or {}).get("dcn_wire_bytes"),
        **{f"modelled_{name}": steps.get(name) for name in _TIMES},
    }
