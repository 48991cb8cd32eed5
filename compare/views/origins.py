"""Who put a program's collectives there, in a sentence for each default program."""

from collections.abc import Mapping
from typing import Any

from compare.views.findings import PARTITIONERS
from compare.views.programs import Program, programs
from compare.views.units import bytes_text, counted, listing

Entry = Mapping[str, Any]

UNKNOWN = "unknown"
NOT_RECORDED = "not recorded"


def origin_lines(report: Mapping[str, Any], phase: str) -> list[str]:
    """One sentence for each default program: by whom, how many bytes, and what later passes did.

    None of a run from before passes were recorded.
    """
    return [_line(one) for one in programs(report) if one.phase == phase and one.default and _tells(one)]


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
        told = f"{'all ' if only['collectives'] > 1 else ''}{number} put there by {_who(only, program)}"
    else:
        told = "put there by " + listing([_part(entry, program) for entry in entries])
    changes = _changes(entries)
    return f"{begin}: {told}" + (f"; then {listing(changes)}" if changes else "; no later pass changed any")


def _part(entry: Entry, program: Program) -> str:
    return (
        f"{_who(entry, program)}: {counted(entry['collectives'], 'collective')} "
        f"with {bytes_text(entry['step_wire_bytes'])} a step"
    )


def _who(entry: Entry, program: Program) -> str:
    """The origin in words."""
    origin = str(entry["origin"])
    if origin.startswith(UNKNOWN):
        _, _, span = origin.partition(": ")
        return f"an unknown pass ({span or 'not in the recorded texts'})"
    words = {"program": "the program itself", "partitioner": f"the partitioner{_which(program)}"}
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
