"""Whose the bytes are that nobody needed: for each group of the default program, which controls remove it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from compare.report.controls import BY_HAND, CHANGES, changed, counted
from compare.report.differences import groups

Entry = Mapping[str, Any]
Group = tuple[str, str, str, str, str]

NEARLY_ALL = 0.95
"""A control that removes this part of a group explains it."""
SOME = 0.05
"""One that removes less than this part leaves it as it is."""

FORM, COMPILER, OPEN = "form", "compiler", "open"
"""Owners beside `CHANGES`: the SPMD form (only collectives written by hand avoid it), the compiler, nobody yet."""
_NO_PASS = re.compile(r"(program|partitioner|not recorded|unknown)(:.*)?")
"""Origins that name no pass after the partitioner."""


def attribution(arms: Mapping[str, Mapping[str, Entry]], *, default: str) -> list[dict[str, Any]]:
    """One entry for each group of inflated or induced bytes of any arm's default program, the largest first.

    arms: arm -> cell -> its entry of the report.  default: the name of the default cell.
    """
    found = [
        entry
        for arm, cells in arms.items()
        if (own := cells.get(default)) and own["totals"]
        for entry in _of_arm(arm, own, cells, _by_hand(arms, default=default, but=arm))
    ]
    return sorted(found, key=lambda entry: -entry["bytes"])


def _of_arm(arm: str, own: Entry, cells: Mapping[str, Entry], elsewhere: Mapping[Group, int]) -> Iterator[Any]:
    controls = {cell: entry for cell, entry in cells.items() if entry is not own}
    tried = {cell: entry for cell, entry in controls.items() if counted(entry)}
    for key, group in groups(own["collectives"]).items():
        scope, axes, kind, verdict, cause = key
        told = {
            cell: {"changes": list(changed(own, entry)), **_left(key, group["bytes"], own, entry)}
            for cell, entry in tried.items()
        }
        part = {cell: one["removed_bytes"] / group["bytes"] for cell, one in told.items()}
        origins = _origins(group["rows"], cause)
        owner, evidence = _owner(told, part, origins, hand=elsewhere.get(key) == 0)
        yield {
            "arm": arm, "scope": scope, "axes": axes, "kind": kind, "verdict": verdict, "cause": cause,
            "bytes": group["bytes"], "origins": origins, "controls": told,
            "removed_by": [cell for cell in told if part[cell] >= NEARLY_ALL],
            "reduced_by": [cell for cell in told if SOME <= part[cell] < NEARLY_ALL],
            "owner": owner, "evidence": evidence,
            "source_line": next((row["source_line"] for row in group["rows"] if row["source_line"]), None),
        }  # fmt: skip


def _left(key: Group, amount: int, own: Entry, control: Entry) -> dict[str, int]:
    """What is left of a group in a control, and how much of it went.

    Bytes that only changed their kind or cause there, at the same place, have not gone; nor have those that come back
    in the same scope over other axes or with the other verdict: they are taken off all that went from the scope, each
    by its share.
    """
    here, there = groups(own["collectives"]), groups(control["collectives"])
    left = there.get(key, {"bytes": 0})["bytes"]
    gone = max(0, min(amount - left, _at(here, key) - _at(there, key)))
    places = {(other[1], other[3]): other for other in (*here, *there) if other[0] == key[0]}
    less = [_at(here, other) - _at(there, other) for other in places.values()]
    went, came = sum(part for part in less if part > 0), -sum(part for part in less if part < 0)
    return {"left_bytes": left, "removed_bytes": gone * max(0, went - came) // went if gone else 0}


def _at(found: Mapping[Group, Mapping[str, Any]], key: Group) -> int:
    """Bytes of the same scope, axes and verdict, whatever their kind and cause."""
    scope, axes, _, verdict, _ = key
    return sum(group["bytes"] for (a, b, _, c, _), group in found.items() if (a, b, c) == (scope, axes, verdict))


def _by_hand(arms: Mapping[str, Mapping[str, Entry]], *, default: str, but: str) -> dict[Group, int]:
    """For each group that the other arms' default programs have too: the bytes left of it with collectives by hand."""
    found: dict[Group, int] = {}
    for arm, cells in arms.items():
        hand = next((one for one in cells.values() if one["style"] == BY_HAND and counted(one)), None)
        own = cells.get(default)
        if arm == but or hand is None or hand is own or not own or not own["totals"]:
            continue
        left = groups(hand["collectives"])
        for key in groups(own["collectives"]):
            found[key] = found.get(key, 0) + _at(left, key)
    return found


def _origins(rows: Any, cause: str) -> dict[str, int]:
    """Origin -> bytes of this cause."""
    found: dict[str, int] = {}
    for row in rows:
        found[row["origin"]] = found.get(row["origin"], 0) + row["causes"].get(cause, 0)
    return found


def _owner(
    told: Mapping[str, Mapping[str, Any]], part: Mapping[str, float], origins: Mapping[str, int], *, hand: bool
) -> tuple[str, str]:
    """Whose a group is, and the cell or origin that shows it; `hand`: gone in another arm's program by hand."""
    gone = {cell: told[cell]["changes"] for cell in told if part[cell] >= NEARLY_ALL}
    chosen = {cell: names for cell, names in gone.items() if not _is_by_hand(cell)}
    for name in CHANGES:
        for cell, names in chosen.items():
            if names == [name]:
                return name, cell
    latest = max(origins, key=lambda origin: origins[origin])
    if not _NO_PASS.fullmatch(latest):
        return COMPILER, latest
    # By hand everything goes: it says whose a group is only beside a control that could have removed it.
    tried = any("partitioner" in one["changes"] for one in told.values())
    if by_hand := [cell for cell in gone if _is_by_hand(cell)]:
        return FORM if tried else OPEN, by_hand[0]
    if any(_is_by_hand(cell) for cell in told):
        return COMPILER, latest
    if hand and tried:
        return FORM, ""
    most = max(part, key=lambda cell: part[cell], default="")
    return OPEN, most if most and part[most] >= SOME else ""


def _is_by_hand(cell: str) -> bool:
    return cell == f"tpu+{BY_HAND}"
