"""Which pass inserted a program's collectives: a sentence for each default program, and a table of passes."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

from compare.render.blocks import Cell, Column, Row, Table
from compare.render.programs import Program, programs
from compare.render.report.findings import PARTITIONERS
from compare.render.units import bytes_text, count_text, exact_text, list_text
from compare.report.grouping import group_by, sum_by
from compare.report.model.program import OriginTotals
from compare.report.model.report import Report

Sum = tuple[int, int]
"""(collectives, their bytes per step)."""

Key = TypeVar("Key", bound=Hashable)

UNKNOWN = "unknown"
NOT_RECORDED = "not recorded"


def origin_lines(report: Report, phase: str) -> list[str]:
    """One sentence for each default program: which passes inserted its collectives, and what later passes did.

    Empty for old runs without recorded passes.
    """
    return [
        _line(program)
        for program in programs(report)
        if program.phase == phase and program.default and _is_recorded(program)
    ]


def origin_table(report: Report, phase: str) -> Table | None:
    """A row per origin and per pass that changed collectives, a column per program; `None` without recorded passes.

    A cell has the number of collectives and their bytes per step; one that several passes changed counts in each row.
    """
    shown = [
        program for program in programs(report) if program.phase == phase and program.judged and _is_recorded(program)
    ]
    shown = [program for program in shown if not program.entry.origins_why_not]
    if not shown:
        return None
    inserted = _by_bytes([dict(_inserted(program)) for program in shown])
    changed = _by_bytes([dict(_changed(program)) for program in shown])
    rows = [(f"inserted by {_who(origin)}", sums) for origin, sums in inserted.items()]
    rows += [(f"{what} by {by_text(span)}", sums) for (span, what), sums in changed.items()]
    return Table(
        name=f"Passes, {phase}",
        columns=(
            Column(heading="collectives, and what they move per step", prose=True),
            *(Column(heading=program.title, code=program.cell) for program in shown),
        ),
        rows=tuple(Row(name=words, cells=tuple(map(_cell, sums))) for words, sums in rows),
    )


def _cell(sums: Sum | None) -> Cell:
    if sums is None:
        return Cell("–", style="zero")
    return Cell(str(sums[0]), soft=bytes_text(sums[1]), exact=exact_text(sums[1]))


def _inserted(program: Program) -> Iterator[tuple[str, Sum]]:
    for entry in program.entry.origins:
        yield entry.origin, (entry.collectives, entry.step_wire_bytes)


def _changed(program: Program) -> Iterator[tuple[tuple[str, str], Sum]]:
    changes = [
        (key, row.step_wire_bytes or 0)
        for row in program.rows
        for key in dict.fromkeys((change.by, change.what) for change in row.changes)
    ]
    for key, amounts in group_by(changes, lambda change: change[0]).items():
        yield key, (len(amounts), sum(amount for _, amount in amounts))


def _by_bytes(programs: Sequence[Mapping[Key, Sum]]) -> dict[Key, list[Sum | None]]:
    """Each key of any program, the most bytes first, with its sums in each program."""
    keys = dict.fromkeys(key for sums in programs for key in sums)
    rows = {key: [sums.get(key) for sums in programs] for key in keys}
    return dict(sorted(rows.items(), key=lambda row: -max(amount[1] for amount in row[1] if amount)))


def _is_recorded(program: Program) -> bool:
    """Whether its passes were recorded, or the reason why not is known."""
    return bool(program.entry.origins) and program.entry.origins_why_not != NOT_RECORDED


def _line(program: Program) -> str:
    entries = program.entry.origins
    begin = f"{program.title} {program.cell}"
    if why := program.entry.origins_why_not:
        return f"{begin}: which pass inserted its collectives is not recorded ({why})"
    if len(entries) == 1:
        only = entries[0]
        num_collectives = count_text(only.collectives, "collective")
        every = "all " if only.collectives > 1 else ""
        words = f"{every}{num_collectives} inserted by {_who(only.origin, program)}"
    else:
        words = "inserted by " + list_text([_part(entry, program) for entry in entries])
    changes = _changes(entries)
    return f"{begin}: {words}" + (f"; then {list_text(changes)}" if changes else "; no later pass changed any")


def _part(entry: OriginTotals, program: Program) -> str:
    return (
        f"{_who(entry.origin, program)}: {count_text(entry.collectives, 'collective')} "
        f"with {bytes_text(entry.step_wire_bytes)} per step"
    )


def _who(origin: str, program: Program | None = None) -> str:
    """An origin in words; with `program`, including its partitioner's name."""
    if origin.startswith(UNKNOWN):
        _, _, span = origin.partition(": ")
        return f"an unknown pass ({span or 'not in the recorded texts'})"
    words = {"program": "the program itself", "partitioner": f"the partitioner{_which(program) if program else ''}"}
    return " and ".join(words.get(name, f"the pass {name}") for name in origin.split("+"))


def _which(program: Program) -> str:
    name = program.entry.partitioner
    return f" ({PARTITIONERS.get(name, name)})" if name else ""


def _changes(entries: Sequence[OriginTotals]) -> list[str]:
    """`2 made async by tpu_async_collective_creator`, over all origins."""
    sums = sum_by(change for entry in entries for change in entry.changes.items())
    return [
        f"{number} {what} by {by_text(span)}"
        for change, number in sums.items()
        for span, _, what in [change.rpartition(": ")]
    ]


def by_text(span: str) -> str:
    """The pass that made a change: its name, or `a pass from … to …` where it is one of several."""
    return f"a pass {span}" if span.startswith("from ") else span
