"""The page's part about time: headline, strip, waits, numbers, figures."""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from markupsafe import Markup

from compare.render.figures import Picture
from compare.render.html import read_static
from compare.render.time.diff import differences
from compare.render.time.timeline_strip import Strip
from compare.render.time.timing_section import (
    ABSENT,
    GROUPS,
    VERDICTS,
    Timing,
    Wait,
    by_group,
    failures,
    labels,
    sentence,
    timings,
    waits,
)

Report = Mapping[str, Any]


SCRIPT = read_static("strip_draw.js", "strip_move.js")
"""The page's only script: our own, with nothing of a program in it."""

SCRIPT_HASH = "sha256-" + b64encode(sha256(SCRIPT.encode()).digest()).decode("ascii")
"""By which the page's content security policy knows it."""

STILL = "-strip"
"""How the names of figures end that stand in for the strip where scripts do not run."""

_MOST_PLACES = 8
"""Where programs wait: those that are told one by one."""

_COLUMNS = {"step_ns": "step", "compute_ns": "compute", "communication_ns": "communication", "hidden_ns": "hidden",
            "exposed_ns": "exposed", "inherent": "of it inherent", "inflated": "inflated", "induced": "induced",
            "unknown": "unknown", "idle": "neither", "wait_ns": "waiting for others"}  # fmt: skip


def time_part(report: Report, *, strips: Sequence[Strip], pictures: Sequence[Picture]) -> dict[str, Any]:
    """What the template needs; without phases where no program has times."""
    phases = [found for name in report["phases"] if (found := _phase(report, name))["groups"] or found["failures"]]
    lines = [line for phase in phases for group in phase["groups"] for line in group["lines"]]
    return {
        "phases": phases,
        "absent": ABSENT,
        "unknown": any(line.numbers["unknown"] for line in lines),
        "folded": GROUPS[2],
        "columns": _COLUMNS,
        "strips": _embedded(strips) if strips else None,
        "still": [inlined(one) for one in pictures if one.name.endswith(STILL)],
        "pictures": [inlined(one) for one in pictures if not one.name.endswith(STILL)],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One program's bar and numbers."""

    title: str
    cell: str
    step: float | None
    exposed: float | None
    parts: Sequence[tuple[str, float]]
    """The bar: style and ns, from the left."""
    numbers: Mapping[str, float | None]


def _phase(report: Report, phase: str) -> dict[str, Any]:
    found = timings(report, phase)
    groups = by_group(found)
    shown = [one for one in found if one.default] or next(iter(groups.values()), [])
    places = _places(shown)
    more = places[_MOST_PLACES:]
    return {
        "name": phase,
        "groups": [_group(name, own) for name, own in groups.items()],
        "failures": list(failures(report, phase)),
        "differences": differences(report, phase),
        "shown": shown,
        "places": places[:_MOST_PLACES],
        "more": len(more),
        "more_ns": max((place["total_ns"] for place in more), default=0),
    }


def _places(shown: Sequence[Timing]) -> list[dict[str, Any]]:
    """Where these programs wait, side by side, the longest first."""
    found: dict[tuple[str, str, str], list[Wait | None]] = {}
    for column, one in enumerate(shown):
        for wait in waits(one):
            found.setdefault(wait.key, [None] * len(shown))[column] = wait
    told = [_place(row) for row in found.values()]
    return sorted(told, key=lambda place: -place["total_ns"])


def _group(name: str, own: Sequence[Timing]) -> dict[str, Any]:
    told = [one for one in own if one.default] or own
    notes = dict.fromkeys(f"{one.title} {one.cell}: {note}" for one in own for note in one.section["notes"])
    return {
        "name": name,
        "labels": labels(own),
        "sentences": [f"{one.title} {one.cell}: {sentence(one)}." for one in told],
        "lines": [_line(one) for one in own],
        "widest": max([one.time("step_ns") or 0 for one in own] + [1]),
        "notes": list(notes),
    }


def _line(one: Timing) -> Line:
    exposed = {verdict: one.exposed(verdict) for verdict in VERDICTS}
    idle = one.idle_ns if one.time("compute_ns") is not None else None
    parts = [("computes", one.time("compute_ns")), *exposed.items(), ("idle", idle)]
    return Line(
        title=one.title, cell=one.cell, step=one.time("step_ns"), exposed=one.time("exposed_ns"),
        parts=[(name, amount) for name, amount in parts if amount],
        numbers={name: exposed[name] if name in exposed else idle if name == "idle" else one.time(name)
                 for name in _COLUMNS},
    )  # fmt: skip


def _place(row: Sequence[Wait | None]) -> dict[str, Any]:
    """One line of the list: a part for each program, and why any of them waits for more than was needed."""
    there = [wait for wait in row if wait]
    needless = [wait for wait in there if wait.needless_ns]
    return {
        "wait": there[0],
        "total_ns": max(wait.total_ns for wait in there),
        "row": [(wait, _shown(wait)) if wait else None for wait in row],
        "causes": list(dict.fromkeys(cause for wait in needless for cause in wait.causes)),
        "source_lines": list(dict.fromkeys(line for wait in needless for line in wait.source_lines)),
    }


def _shown(wait: Wait) -> str:
    """What the strip's script is to look for."""
    one = wait.timing
    return json.dumps({"phase": one.phase, "arm": one.arm, "cell": one.cell, "names": wait.names})


def _embedded(strips: Sequence[Strip]) -> Markup:
    """Phase -> its strips, as JSON that stands in a script element: no `<` of a program's can end that."""
    phases: dict[str, list[Strip]] = {}
    for one in strips:
        phases.setdefault(one["phase"], []).append(one)
    text = json.dumps(phases, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def inlined(picture: Picture) -> tuple[str, str, str]:
    source = "data:image/svg+xml;base64," + b64encode(picture.svg).decode("ascii")
    return picture.name, picture.caption, source
