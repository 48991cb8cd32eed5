"""How many messages of which shape one step sends, in prefill and in decode.

After the tables of Xu et al., "Characterizing Communication Patterns in Distributed LLM Inference", arXiv:2507.14392.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from compare.timing.tracks.numbers import number
from compare.timing.tracks.times import volumes
from compare.timing.tracks.tracks import Lanes


def messages(lanes: Lanes, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """kind, axes, scope, dtype, shapes, payload_bytes (of one), count (of one device and step); the largest first.

    `rows` are a report's collectives; dtype and shapes are null where they do not tell.
    """
    told = {row["name"]: row for row in rows}
    counts: dict[tuple[Any, ...], float] = {}
    for entry in volumes(lanes, by=["collective", "kind", "axes", "scope"]).to_dict("records"):
        row = told.get(str(entry["collective"]), {})
        runs = float(entry["executions"])
        if not runs:
            continue
        shapes = tuple(row.get("shapes") or ())
        key = (entry["kind"], entry["axes"], entry["scope"], row.get("dtype"), shapes,
               number(float(entry["payload_bytes"]) / runs))  # fmt: skip
        counts[key] = counts.get(key, 0.0) + runs
    names = ("kind", "axes", "scope", "dtype", "shapes", "payload_bytes")
    found: list[dict[str, Any]] = [
        {**dict(zip(names, key, strict=True)), "shapes": list(key[4]) or None, "count": number(runs)}
        for key, runs in counts.items()
    ]
    return sorted(found, key=lambda row: (-(row["payload_bytes"] or 0), row["kind"], row["axes"], row["scope"]))
