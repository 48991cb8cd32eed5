"""Compiled programs in a terminal and as JSON: their collectives and, where it was asked for, a modelled step."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compare.hlo.collective import sort_rows
from compare.render.collectives_table import compiled_text, print_rows
from compare.user_program.readings import Reading

if TYPE_CHECKING:
    from compare.user_program.step_time import StepTime  # with pandas and the schedule model, for those who ask


def print_readings(
    readings: Sequence[Reading], *, order: str, times: "Mapping[str, StepTime]", unfolded: bool = False
) -> None:
    """Print each program's rows in this order (`collective.ORDERS`), and its step where `times` has one, by name.

    unfolded: rows that are alike each by itself.
    """
    for reading in readings:
        if reading.name:
            print(f"{reading.name}:")
        rows = sort_rows(reading.rows, by=order)
        print_rows(rows, how=compiled_text(reading.compiled), notes=reading.notes, unfolded=unfolded)
        if reading.name in times:
            from compare.render.time.speed.program_step import print_step

            print()
            print_step(times[reading.name])


def readings_to_json(readings: Sequence[Reading], *, order: str, times: "Mapping[str, StepTime]") -> object:
    """The rows of a program; of the programs of a run, by name.  With a modelled step an object of three."""
    listed = {reading.name: _to_json(reading, order, times.get(reading.name)) for reading in readings}
    return listed if readings[0].name else listed[""]


def _to_json(reading: Reading, order: str, time: "StepTime | None") -> object:
    rows = [row.public() for row in sort_rows(reading.rows, by=order)]
    if time is None:
        return rows

    from compare.report.model.codec import encode

    return {"collectives": rows, "time": encode(time.summary), "operations": [encode(row) for row in time.operations]}
