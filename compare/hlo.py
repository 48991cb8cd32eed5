"""`python -m compare.hlo FILE --axes data=2,tensor=4`: the collectives of anybody's compiled HLO text."""

import sys
from collections.abc import Sequence

from compare.program.axes import read_axes
from compare.program.collectives import collectives
from compare.program.files import read_file
from compare.program.records import Collective
from compare.program.unpartitioned import check_partitioned
from compare.views.terminal import console, plain
from compare.views.units import bytes_text, times_text
from compare.work.options import Parser, guarded, print_json
from meshes.files import read_mesh


def main(argv: Sequence[str] | None = None) -> int:
    """Print one row for each collective, in program order."""
    parser = Parser(
        prog="python -m compare.hlo",
        description="The collectives of compiled HLO text: compiled.as_text(), or a file of --xla_dump_hlo_as_text.",
        epilog="example: python -m compare.hlo optimized.hlo.gz --axes data=2,tensor=4 --json",
    )
    parser.add_argument("file", metavar="FILE", help="HLO text, also gzipped; - reads it from standard input")
    mesh = parser.add_mutually_exclusive_group()
    mesh.add_argument("--mesh", metavar="NAME", help="a mesh of this project, like tp4pp2")
    mesh.add_argument("--axes", metavar="AXES", help="any names and sizes, outermost first; devices are row-major")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    asked = parser.parse_args(argv)
    axes = read_mesh(asked.mesh).mesh.axes if asked.mesh else read_axes(asked.axes)
    module = read_file(asked.file)
    rows = collectives(module, axes)
    if not rows:
        check_partitioned(module)
    if asked.json:
        print_json([row.public() for row in rows])
    else:
        print_rows(rows)
    if rows and not axes:
        told = sys.stderr if asked.json else sys.stdout
        print("The axes read ?; --axes data=2,tensor=4 (any names and sizes) or --mesh tp4dp2 names them.", file=told)
    return 0


def print_rows(rows: Sequence[Collective]) -> None:
    """Two lines for each row: what it is and moves in one step; then where it stands."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("scope", "collective", "runs", "payload", "wire", "step"):
        table.add_column(heading, justify="left" if heading in ("scope", "collective") else "right", overflow="fold")
    for row in rows:
        amounts = [bytes_text(amount) for amount in (row.payload_bytes, row.wire_bytes, row.step_wire_bytes)]
        table.add_row(
            plain(row.scope),
            plain(f"{row.kind} @ {row.axes}"),
            times_text(row.executions, row.executions_are),
            *amounts,
        )
        network = "" if row.network == "ici" else f", {row.network}"
        table.add_row("", plain(f"  {row.name}, {row.dtype}, {row.form}{network}"), style="dim")
        if row.source_line:
            table.add_row("", plain(f"  {row.source_line}"), style="dim")
    console().print(table)
    console().print(total_line(rows))


def total_line(rows: Sequence[Collective]) -> str:
    """What all rows move in one step, and how sure that is."""
    unknown = sum(row.step_wire_bytes is None for row in rows)
    words = "at least " if unknown else "at most " if any(row.executions_are == "upper-bound" for row in rows) else ""
    total = bytes_text(sum(row.step_wire_bytes or 0 for row in rows))
    never = sum(not row.loops and row.executions == 0 for row in rows)
    more = f"; {unknown} in loops whose count can't be read" * bool(unknown) + f"; {never} never run" * bool(never)
    count = "1 collective moves" if len(rows) == 1 else f"{len(rows)} collectives move"
    return f"{count} {words}{total} a step, mean over devices{more}."


if __name__ == "__main__":
    guarded(main)
