"""Print the programs of a profile in a terminal: one table of all, then each by source line, part and operation."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from compare.metrics.source_places import shorten
from compare.render.plain_table import plain_table
from compare.render.terminal import console, text_width, wrap_prose
from compare.render.units import UNKNOWN, axes_text, bytes_text, count_text, percent_text, time_text
from compare.report.model.timing import Number
from compare.report.model.trace import PlaceTimes, ProgramTimes, TraceOperation
from compare.timeline.programs import bare_names
from meshes.process.one_line import plain

_MOST_PROGRAMS = 20
_LEAST_SHARE = 0.01
"""Of the time of all programs: a smaller one has a line, and no tables of its own unless it is asked for."""
_LEAST_TIME = 1e-5
"""Of an execution: an operation that takes less has no row."""
_MOST_PLACES, _MOST_OPERATIONS = 12, 10
ROLES = {"compute": "compute", "copy": "waits for local copies", "communication": "communication"}
"""What the kinds of time are called."""

_NAME, _INNER, _SOURCE = 30, 28, 22


def print_programs(programs: Sequence[ProgramTimes], *, step: str = "", out: Console | None = None) -> None:
    """Print all programs in one table, then the tables of each that takes a share of the time.

    step: the program whose executions are the steps that were printed before.
    """
    out = out or console()
    names = bare_names([program.program for program in programs])
    if len(programs) > 1 or (programs and programs[0].program != step):
        out.print()
        out.print(_overview(programs, names))
        for line in _communications(programs, names):
            out.print(wrap_prose(line, width=text_width(out)))
    for program in programs:
        if len(programs) == 1 or (program.share or 0) >= _LEAST_SHARE:
            _print_program(program, plain(names[program.program]), out)


def _overview(programs: Sequence[ProgramTimes], names: dict[str, str]) -> Table:
    copies = any(program.per_execution.copy_wait_ns is not None for program in programs)
    table = plain_table(("program",), ("runs", "time", "share", "compute", *(["copies"] * copies), "exposed", "idle"))
    shown = [program for index, program in enumerate(programs) if index < _MOST_PROGRAMS or program.communication]
    for program in shown:
        times = program.per_execution
        waits = times.copy_wait_ns if times.compute_ns is None else times.copy_wait_ns or 0
        parts = [times.compute_ns, *([waits] * copies), times.exposed_ns]
        known = times.step_ns is not None and None not in parts
        idle = max((times.step_ns or 0) - sum(part or 0 for part in parts), 0) if known else None
        amounts = [time_text(_all_runs(part, program)) for part in (*parts, idle)]
        table.add_row(
            _fit(names[program.program]),
            f"{program.executions:,.4g} ×",
            time_text(program.total_ns),
            percent_text(program.share),
            *amounts,
        )
    if rest := [program for program in programs if program not in shown]:
        total = sum(program.total_ns or 0 for program in rest)
        table.add_row(f"{len(rest)} more", "", time_text(total), *[""] * (len(table.columns) - 3))
    return table


def _all_runs(amount: Number, program: ProgramTimes) -> Number:
    return None if amount is None or program.executions is None else amount * program.executions


def _communications(programs: Sequence[ProgramTimes], names: dict[str, str]) -> Iterator[str]:
    """`12 all-reduces, 1.46 s, in jit__psum, on 4 devices together`: whichever program the steps are of."""
    for program in programs:
        for kind, total in program.communication.items():
            whole = (total.exposed_ns or 0) > (1 - _LEAST_TIME) * (total.total_ns or 0)
            exposed = "" if whole else f", {time_text(total.exposed_ns)} exposed"
            counted = count_text(total.count, plain(kind)) if kind != "?" else f"{total.count:,} of unknown kind"
            devices = "" if program.devices == 1 else f", on {program.devices} devices together"
            yield f"{counted}, {time_text(total.total_ns)}{exposed}, in {plain(names[program.program])}{devices}"


def _print_program(program: ProgramTimes, name: str, out: Console) -> None:
    out.print()
    times = program.per_execution
    words = f"{name}: an execution takes {time_text(times.step_ns)}, {program.executions:,.4g} on each of "
    out.print(wrap_prose(f"{words}{count_text(program.devices, 'device')}", width=text_width(out), style="bold"))
    for title, places in (("source line", program.lines), ("part of the model", program.parts)):
        if places:
            out.print(_places(title, places))
    for role in dict.fromkeys(operation.role for operation in program.operations):
        operations = [operation for operation in program.operations if operation.role == role]
        least = _LEAST_TIME * (times.step_ns or 0)
        if operations := [operation for operation in operations if (operation.time_ns or 0) >= least]:
            out.print(_operations(ROLES.get(role, role), operations[:_MOST_OPERATIONS], times.step_ns))


def _places(title: str, places: Sequence[PlaceTimes]) -> Table:
    table = plain_table((f"by {title}", "kind of time"), ("count", "payload", "time", "exposed"))
    rows = [place for index, place in enumerate(places) if index < _MOST_PLACES or place.role == "communication"]
    shown = rows[: 2 * _MOST_PLACES]
    for place in shown:
        kind = (
            f"{plain(place.kind)} {axes_text(plain(place.axes))}" if place.kind else ROLES.get(place.role, place.role)
        )
        words = shorten(plain(place.place)) if title == "source line" else plain(place.place)
        words += f" (in {shorten(plain(place.inner), most=_INNER)})" if place.inner else ""
        exposed = time_text(place.exposed_ns) if place.kind else ""
        payload = bytes_text(place.payload_bytes) if place.kind else ""
        table.add_row(words, kind, f"{place.executions:,.4g} ×", payload, time_text(place.time_ns), exposed)
    return table


def _operations(title: str, operations: Sequence[TraceOperation], step_ns: Number) -> Table:
    """Of compute with what its FLOPs and bytes would take, of copies with their way, of communication with its axes."""
    role = operations[0].role
    columns = {"compute": ("roofline", "bound"), "copy": (), "communication": ("exposed",)}[role]
    way = {"compute": "category", "copy": "from → to", "communication": "over"}[role]
    sources = [operation.source if operation.source != "?" else operation.part for operation in operations]
    has_source = any(source != "?" for source in sources)
    words = (f"longest: {title}", way, *(["source line"] * has_source))
    table = plain_table(words, ("count", "time", "share", *columns))
    for operation, source in zip(operations, sources, strict=True):
        more = f" + {operation.instructions - 1} more" if operation.instructions > 1 else ""
        kind = operation.moves if role != "compute" else operation.category
        share = operation.time_ns / step_ns if operation.time_ns is not None and step_ns else None
        cells = [f"{operation.executions:,.4g} ×", time_text(operation.time_ns), percent_text(share)]
        if role == "compute":
            known = operation.roofline_ns is not None and bool(operation.time_ns)
            reached = (operation.roofline_ns or 0) / (operation.time_ns or 1)
            cells += [percent_text(reached) if known else UNKNOWN, operation.bound or UNKNOWN]
        elif role == "communication":
            cells.append(time_text(operation.exposed_ns))
        where = [shorten(plain(source), most=_SOURCE)] * has_source
        table.add_row(f"{_fit(operation.name)}{more}", plain(kind) or UNKNOWN, *where, *cells)
    return table


def _fit(name: str) -> str:
    name = plain(name)
    return name if len(name) <= _NAME else f"{name[: _NAME // 2 - 1]}…{name[-_NAME // 2 :]}"
