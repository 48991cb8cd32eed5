"""Who put a program's collectives there: a sentence for each default program, and the page's table of passes."""

from collections.abc import Iterator, Mapping
from typing import Any

from compare.render.programs import Program, programs
from compare.render.report.findings import PARTITIONERS
from compare.render.units import bytes_text, counted, listing

Entry = Mapping[str, Any]
Cell = tuple[int, int]
"""Collectives, and their bytes a step."""

UNKNOWN = "unknown"
NOT_RECORDED = "not recorded"


def origin_lines(report: Mapping[str, Any], phase: str) -> list[str]:
    """One sentence for each default program: by whom, how many bytes, and what later passes did.

    None of a run from before passes were recorded.
    """
    return [_line(one) for one in programs(report) if one.phase == phase and one.default and _tells(one)]


def origin_table(report: Mapping[str, Any], phase: str) -> dict[str, Any] | None:
    """A row for each origin and each pass that changed any, a column for each program; nothing where none tells.

    A cell has a number of collectives and their bytes a step: of one that several passes changed in each of their rows.
    """
    shown = [one for one in programs(report) if one.phase == phase and one.judged and _tells(one)]
    shown = [one for one in shown if not one.entry["origins_why_not"]]
    put, changed = ([dict(kind(one)) for one in shown] for kind in (_put, _changed))
    rows = [(_first_words(key), key, sums) for sums in (put, changed) for key in _keys(sums)]
    cells = [{"words": words, "cells": [one.get(key) for one in sums]} for words, key, sums in rows]
    return {"programs": shown, "rows": cells} if shown else None


def _put(program: Program) -> Iterator[tuple[str, Cell]]:
    for entry in program.entry["origins"]:
        yield entry["origin"], (entry["collectives"], entry["step_wire_bytes"])


def _changed(program: Program) -> Iterator[tuple[tuple[str, str], Cell]]:
    found: dict[tuple[str, str], list[int]] = {}
    for row in program.rows:
        for key in dict.fromkeys((one["pass"], one["what"]) for one in row["changes"]):
            found.setdefault(key, []).append(row["step_wire_bytes"] or 0)
    for key, amounts in found.items():
        yield key, (len(amounts), sum(amounts))


def _keys(sums: list[dict[Any, Cell]]) -> list[Any]:
    """All that any program has, the most bytes first."""
    found = dict.fromkeys(key for one in sums for key in one)
    return sorted(found, key=lambda key: -max(one[key][1] for one in sums if key in one))


def _first_words(key: str | tuple[str, str]) -> str:
    if isinstance(key, tuple):
        return f"{key[1]} by {by_text(key[0])}"
    return f"put there by {_who(key)}"


def _tells(program: Program) -> bool:
    """Whether there is anything to tell: it was recorded, or it is known why not."""
    return bool(program.entry.get("origins")) and program.entry.get("origins_why_not") != NOT_RECORDED


def _line(program: Program) -> str:
    entries = program.entry["origins"]
    begin = f"{program.title} {program.cell}"
    if why := program.entry["origins_why_not"]:
        return f"{begin}: who put its collectives there is not recorded ({why})"
    if len(entries) == 1:
        only = entries[0]
        number = counted(only["collectives"], "collective")
        told = f"{'all ' if only['collectives'] > 1 else ''}{number} put there by {_who(only['origin'], program)}"
    else:
        told = "put there by " + listing([_part(entry, program) for entry in entries])
    changes = _changes(entries)
    return f"{begin}: {told}" + (f"; then {listing(changes)}" if changes else "; no later pass changed any")


def _part(entry: Entry, program: Program) -> str:
    return (
        f"{_who(entry['origin'], program)}: {counted(entry['collectives'], 'collective')} "
        f"with {bytes_text(entry['step_wire_bytes'])} a step"
    )


def _who(origin: str, program: Program | None = None) -> str:
    """An origin in words; of one program, with the name of its partitioner."""
    if origin.startswith(UNKNOWN):
        _, _, span = origin.partition(": ")
        return f"an unknown pass ({span or 'not in the recorded texts'})"
    words = {"program": "the program itself", "partitioner": f"the partitioner{_which(program) if program else ''}"}
    return " and ".join(words.get(one, f"the pass {one}") for one in origin.split("+"))


def _which(program: Program) -> str:
    name = program.entry["partitioner"]
    return f" ({PARTITIONERS.get(name, name)})" if name else ""


def _changes(entries: list[Entry]) -> list[str]:
    """`2 made async by tpu_async_collective_creator`, over all origins."""
    sums: dict[str, int] = {}
    for entry in entries:
        for change, number in entry["changes"].items():
            sums[change] = sums.get(change, 0) + number
    return [f"{number} {what} by {by_text(span)}" for change, number in sums.items()
            for span, _, what in [change.rpartition(": ")]]  # fmt: skip


def by_text(span: str) -> str:
    """Who did it: a pass, or one of several of which it is not known which."""
    return f"a pass {span}" if span.startswith("from ") else span
