"""The differences between arms, largest first: what bytes nobody needed, where, why, and what removes them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from compare.verdict.causes import INDUCED, words

Row = Mapping[str, Any]
Key = tuple[str, str, str, str, str]

_INDUCED_NAMES = {cause.name for cause in INDUCED} - {"other"}


def groups(rows: Sequence[Row]) -> dict[Key, dict[str, Any]]:
    """(scope, axes, kind, verdict, cause) -> bytes, executions and instructions of the rows with that cause."""
    found: dict[Key, dict[str, Any]] = {}
    for row in rows:
        for verdict, cause, amount in _parts(row):
            key = (row["scope"], row["axes"], row["kind"], verdict, cause)
            group = found.setdefault(key, {"bytes": 0, "executions": 0, "rows": []})
            group["bytes"] += amount
            group["executions"] += row["executions"] or 0
            group["rows"].append(row)
    return found


def _parts(row: Row) -> Iterator[tuple[str, str, int]]:
    """(verdict, cause, bytes) of one row; `other` is whichever verdict the named causes leave over."""
    induced = row["induced_bytes"] or 0
    for cause, amount in row["causes"].items():
        if cause in _INDUCED_NAMES:
            induced -= amount
            yield "induced", cause, amount
        elif cause == "other" and induced:
            yield "induced", cause, amount
        else:
            yield "inflated", cause, amount


def differences(
    arms: Mapping[str, Sequence[Row]],
    *,
    controls: Mapping[str, Mapping[str, Sequence[Row]]],
    axes: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """One entry for each group of any arm, the largest excess over the other arms first.

    `arms` are the rows of the compared cells; `controls` those of each arm's other cells, by cell: an entry's
    `controls` say how many bytes of the same scope, axes and verdict are left there.  `axes` are those that the mesh
    splits; where they are not known, words are of any mesh.
    """
    found = {arm: groups(rows) for arm, rows in arms.items()}
    keys = dict.fromkeys(key for table in found.values() for key in table)
    entries = [
        _entry(key, arm, found, controls.get(arm, {}), axes) for key in keys for arm in found if key in found[arm]
    ]
    return sorted(entries, key=lambda entry: (-entry["excess_bytes"], -entry["bytes"]))


def _entry(
    key: Key,
    arm: str,
    found: Mapping[str, Mapping[Key, dict[str, Any]]],
    controls: Mapping[str, Sequence[Row]],
    mesh: Collection[str] | None,
) -> dict[str, Any]:
    scope, axes, kind, verdict, cause = key
    group = found[arm][key]
    others = {name: table.get(key, {"bytes": 0})["bytes"] for name, table in found.items() if name != arm}
    rows = group["rows"]
    return {
        "arm": arm, "scope": scope, "axes": axes, "kind": kind, "verdict": verdict, "cause": cause,
        "bytes": group["bytes"],
        "excess_bytes": group["bytes"] - max(others.values(), default=0) if others else group["bytes"],
        "others": others,
        "executions": group["executions"],
        **words(cause, induced=verdict == "induced", axes=mesh)._asdict(),
        "source_line": next((row["source_line"] for row in rows if row["source_line"]), None),
        "names": [row["name"] for row in rows],
        "serves": sorted({number for row in rows for number in row["serves"]}),
        "controls": {cell: _left(table, scope, axes, verdict) for cell, table in controls.items()},
    }  # fmt: skip


def _left(rows: Sequence[Row], scope: str, axes: str, verdict: str) -> int:
    """Bytes of this scope, axes and verdict in another cell."""
    return sum(row[f"{verdict}_bytes"] or 0 for row in rows if row["scope"] == scope and row["axes"] == axes)
