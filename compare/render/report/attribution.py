"""Whose the bytes beyond the plan are, and what each control showed: in sentences, and as rows of the page's table."""

from collections.abc import Mapping, Sequence
from typing import Any

from compare.render.programs import titles
from compare.render.report.findings import PARTITIONERS
from compare.render.units import bytes_text, listing
from compare.report.attribution import COMPILER, FORM, OPEN
from compare.report.controls import what
from compare.report.programs import NOT_OFFERED

Report = Mapping[str, Any]
Entry = Mapping[str, Any]

WHOSE: Mapping[str, str] = {
    "partitioner": "its partitioner's",
    "attention": "its attention call's",
    "loop": "its loop form's",
    "libtpu": "this libtpu's",
    "style": "its style's",
    FORM: "the SPMD form's",
    COMPILER: "the compiler's",
    OPEN: "not told apart",
}
"""An owner, as it stands behind a number of bytes."""

HEADING = "Whose the bytes beyond the plan are (of the default programs)"
MORE = "--controls style compiles it with collectives by hand"
_HAND = "explicit"


def whose_lines(report: Report, phase: str) -> list[str]:
    """One line for each arm: its bytes beyond the plan by owner, the most first."""
    found = report["phases"][phase].get("attribution") or ()
    lines = []
    for arm, title in titles(report).items():
        own = [entry for entry in found if entry["arm"] == arm]
        if own:
            told = ", ".join(_owned(entries) for entries in _by_owner(own))
            lines.append(f"{title}: {told}")
    return lines


def _by_owner(own: Sequence[Entry]) -> list[list[Entry]]:
    """The entries of one owner and one evidence together, the most bytes first."""
    parts: dict[tuple[str, str], list[Entry]] = {}
    for entry in own:
        parts.setdefault((entry["owner"], entry["evidence"]), []).append(entry)
    return sorted(parts.values(), key=lambda entries: -sum(entry["bytes"] for entry in entries))


def _owned(entries: Sequence[Entry]) -> str:
    """`2.26 GB its attention call's (gone in tpu+einsum)`."""
    first = entries[0]
    total = bytes_text(sum(entry["bytes"] for entry in entries))
    return f"{total} {WHOSE[first['owner']]} ({why(first)}{_causes(entries)})"


def _causes(entries: Sequence[Entry]) -> str:
    """Of bytes that are nobody's choice, what they are: `; bubble, replicated`."""
    if entries[0]["owner"] not in (FORM, OPEN, COMPILER):
        return ""
    return f"; {', '.join(dict.fromkeys(entry['cause'] for entry in entries))}"


def why(entry: Entry) -> str:
    """What shows whose a group is, in a few words."""
    owner, evidence, cells = entry["owner"], entry["evidence"], entry["controls"]
    if owner == FORM:
        return f"gone in {evidence} only" if evidence else "gone in the other framework's program by hand only"
    if owner == COMPILER:
        return f"made by {evidence}" if _is_pass(evidence) else f"also in {listing(list(cells))}"
    if owner != OPEN:
        return f"gone in {evidence}"
    if evidence in entry["removed_by"]:
        return f"gone in {evidence}; --controls partitioner,attention tells more"
    if evidence:
        return f"partly gone in {evidence}"
    there = f"also in {listing(list(cells))}" if cells else "no control was compiled"
    return there if any(_HAND in cell for cell in cells) else f"{there}; {MORE}"


def _is_pass(origin: str) -> bool:
    return origin.partition(":")[0] not in ("program", "partitioner", "not recorded", "unknown")


def effect(entry: Entry, cell: str) -> str:
    """What one control does to a group: `gone`, `half gone`, `same`, or the bytes that went."""
    if cell not in entry["controls"]:
        return ""
    removed, amount = entry["controls"][cell]["removed_bytes"], entry["bytes"]
    if cell in entry["removed_by"]:
        return "gone"
    if cell not in entry["reduced_by"]:
        return "same"
    return "half gone" if 0.45 * amount <= removed <= 0.55 * amount else f"− {bytes_text(removed)}"


def whose(report: Report, phase: str) -> list[dict[str, Any]]:
    """A table for each arm: its groups, the largest first, and a column for each control that was compiled."""
    tables = []
    for arm, title in titles(report).items():
        own = [entry for entry in report["phases"][phase].get("attribution") or () if entry["arm"] == arm]
        cells = list(dict.fromkeys(cell for entry in own for cell in entry["controls"]))
        if own and cells:
            rows = [{"entry": entry, "whose": WHOSE[entry["owner"]], "why": why(entry),
                     "effects": [effect(entry, cell) for cell in cells]} for entry in own]  # fmt: skip
            tables.append({"title": title, "cells": cells, "rows": rows})
    return tables


def showed_lines(report: Report) -> list[str]:
    """One sentence for each control: what it did to the bytes that nobody needed."""
    names = titles(report)
    return [f"{names.get(one['arm'], one['arm'])} {one['cell']}, {what(one['cell'])}: {_showed(one['phases'])}"
            for one in report.get("controls", ())]  # fmt: skip


def _showed(phases: Mapping[str, Entry]) -> str:
    """`removes 2.26 GB of 3.12 GB beyond the plan in prefill; nothing changes in decode`, or once where all say it."""
    told: dict[str, list[str]] = {}
    for phase, one in phases.items():
        told.setdefault(_effect(one), []).append(phase)
    if len(told) == 1:
        return next(iter(told))
    return "; ".join(f"{words} in {listing(at)}" for words, at in told.items())


def _effect(one: Entry) -> str:
    if one["status"] != "ok":
        return one["error"] if one["status"] == NOT_OFFERED else f"{one['status']}: {one['error'] or 'no reason given'}"
    if one["removed_bytes"] is None:
        return "not all of its bytes can be counted"
    removed, added, before = one["removed_bytes"], one["added_bytes"], bytes_text(one["default_bytes"])
    parts = [f"removes {'all' if removed == one['default_bytes'] else bytes_text(removed)} of {before} beyond the plan"]
    told = [*(parts if removed else ()), *([f"adds {bytes_text(added)} elsewhere"] if added else ())]
    return " and ".join(told) or "nothing changes"


def pair_lines(report: Report, phase: str) -> list[str]:
    """Where the frameworks can be compared under a second partitioner: whether it says the same."""
    first, *others = report["phases"][phase].get("pairs") or [None]
    return [_pair(report, first, other) for other in others] if first else []


def _pair(report: Report, first: Entry, other: Entry) -> str:
    names = titles(report)
    cells = " against ".join(f"{names.get(arm, arm)} {cell}" for arm, cell in other["cells"].items())
    under = PARTITIONERS.get(other["partitioner"], other["partitioner"])
    if other["common"] is None or first["common"] is None:
        return f"Under {under} ({cells}) not all rows can be counted"
    if other["framework_induced"] == first["framework_induced"]:
        return f"Under {under} ({cells}) the same is framework-induced"
    told = listing(
        [f"{names.get(arm, arm)} {bytes_text(amount)}" for arm, amount in other["framework_induced"].items()]
    )
    return f"Under {under} ({cells}) other bytes are framework-induced: {told}; so far the partitioner decides"
