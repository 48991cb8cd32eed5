"""Who put a program's bytes there, summed up: the program itself, the partitioner, or a later pass."""

from collections.abc import Mapping, Sequence
from typing import Any

_BYTES = ("step_wire_bytes", "inherent_bytes", "inflated_bytes", "induced_bytes")


def origins(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each origin, the most bytes first: its collectives, their bytes a step, and what became of them.

    `changes` counts the collectives that each pass changed, by `pass: what`.  Rows of unknown executions are counted,
    and are in no sum.
    """
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        entry = found.setdefault(
            row["origin"], {"origin": row["origin"], "collectives": 0, **dict.fromkeys(_BYTES, 0), "changes": {}}
        )
        entry["collectives"] += 1
        for name in _BYTES:
            entry[name] += row[name] or 0
        for change in dict.fromkeys(f"{one['pass']}: {one['what']}" for one in row["changes"]):
            entry["changes"][change] = entry["changes"].get(change, 0) + 1
    return sorted(found.values(), key=lambda entry: (-entry["step_wire_bytes"], entry["origin"]))
