"""Controls: the same program made in one other way, so that what goes away with it was that way's doing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from compare.report.rows import extras

Entry = Mapping[str, Any]
"""One cell of a report."""
Place = tuple[str, str]
"""Scope and axes."""

CHANGES = ("partitioner", "attention", "loop", "libtpu", "style")
"""What a control can change, the least first: where several remove the same, this one says whose it was."""

BY_HAND = "explicit"
"""The style in which every collective is written by hand: what only this removes is the form's, not a choice of it."""


@dataclass(frozen=True, slots=True)
class _Words:
    """A cell in words: what it is, and how a sentence says that something is made so."""

    what: str
    how: str


_CELLS: Mapping[str, _Words] = MappingProxyType({
    "tpu": _Words("the program as it is by default", "under its own partitioner"),
    "tpu+gspmd": _Words("the same program under the GSPMD partitioner", "under the GSPMD partitioner"),
    "tpu+shardy": _Words("the same program under the Shardy partitioner", "under the Shardy partitioner"),
    "tpu+einsum": _Words("the same model with attention written as einsum", "written as einsum"),
    "tpu+pinned": _Words("the same model with its activations pinned", "with its activations pinned"),
    "tpu+weights": _Words("the same model with only weights, cache and inputs pinned", "with only its weights pinned"),
    "tpu+explicit": _Words("the same model with every collective written by hand", "with its collectives by hand"),
    "tpu+unrolled": _Words("the same model with layers and ticks written out", "with its loops written out"),
    "tpu+scan": _Words("the same model with layers and ticks in loops", "with its layers in a loop"),
})  # fmt: skip
_LIBTPU = "tpu+libtpu-"


def what(cell: str) -> str:
    """What a cell is, as it stands in a sentence."""
    if cell.startswith(_LIBTPU):
        return f"the same program compiled by libtpu {cell.removeprefix(_LIBTPU)}"
    return _CELLS[cell].what if cell in _CELLS else "another cell"


def how(cell: str) -> str:
    """The same before a verb: `written as einsum`."""
    if cell.startswith(_LIBTPU):
        return f"compiled by libtpu {cell.removeprefix(_LIBTPU)}"
    return _CELLS[cell].how if cell in _CELLS else cell


def changed(default: Entry, control: Entry) -> tuple[str, ...]:
    """In what a control differs from the default program of its arm, as both were found; words of `CHANGES`."""
    found = {name: (default.get(name), control.get(name)) for name in CHANGES if name != "libtpu"}
    before, after = ((one.get("versions") or {}).get("libtpu") for one in (default, control))
    found["libtpu"] = (before, after)
    return tuple(name for name in CHANGES if None not in found[name] and found[name][0] != found[name][1])


def showed(default: Entry, control: Entry) -> dict[str, Any]:
    """What one control did to the bytes that nobody needed: removed, added, left, in bytes a step.

    None where one of the two can't be counted.
    """
    told: dict[str, Any] = {"status": control["status"], "error": control["error"]}
    if not counted(default) or not counted(control):
        return {**told, "default_bytes": None, "control_bytes": None, "removed_bytes": None, "added_bytes": None}
    before, after = extras(default["collectives"]), extras(control["collectives"])
    places: Sequence[Place] = sorted({*before, *after})
    less = [before.get(place, 0) - after.get(place, 0) for place in places]
    return {
        **told,
        "default_bytes": sum(before.values()),
        "control_bytes": sum(after.values()),
        "removed_bytes": sum(amount for amount in less if amount > 0),
        "added_bytes": -sum(amount for amount in less if amount < 0),
    }


def counted(entry: Entry) -> bool:
    """Whether all of a program's bytes are known."""
    totals = entry["totals"]
    return bool(totals) and not totals["unknown_rows"]
