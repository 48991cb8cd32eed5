"""`python -m compare.hlo FILE --axes data=2,tensor=4`: the collectives of anybody's compiled HLO text."""

from collections.abc import Sequence
from pathlib import Path

from compare.run.cli.axes_options import add_axes, axes_of, hint_axes
from compare.run.cli.names_options import add_names, names_of
from meshes.process.command_line import Parser, print_json, run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Print one row for each collective, in program order."""
    parser = Parser(
        prog="python -m compare.hlo",
        description="The collectives of compiled HLO text: compiled.as_text(), or a file of --xla_dump_hlo_as_text.",
        epilog="example: python -m compare.hlo optimized.hlo.gz --axes data=2,tensor=4 --json",
    )
    file_help = (
        "HLO text, also gzipped; - reads it from standard input; or a folder written by table.save(), which records "
        "the mesh axes"
    )
    parser.add_argument("file", metavar="FILE", help=file_help)
    add_axes(parser)
    add_names(parser)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    arguments = parser.parse_args(argv)

    from compare.hlo.collectives.collectives import collectives
    from compare.hlo.collectives.pre_partitioning import check_partitioned
    from compare.hlo.text.files import read_file
    from compare.hlo.text.module import read
    from compare.user_program.program_mesh import reading_axes
    from compare.user_program.saved_program import is_saved, read_saved

    axes, names = axes_of(arguments), names_of(arguments)
    saved = read_saved(Path(arguments.file)) if is_saved(Path(arguments.file)) else None
    module = read(saved.text) if saved else read_file(arguments.file)
    ids: tuple[int, ...] = ()
    if saved:
        axes, ids = reading_axes(axes, tuple(saved.axes.items()), name=arguments.file), saved.device_ids
        names = names.fill_from(saved.names)
    rows = collectives(module, axes, device_ids=ids, names=names)
    if not rows:
        check_partitioned(module)
    if arguments.json:
        print_json([row.public() for row in rows])
    else:
        from compare.render.collectives_table import compiled_text, print_rows

        print_rows(rows, how=compiled_text(saved.compiled) if saved else "", notes=saved.notes if saved else ())
    if not saved:
        hint_axes(arguments, [row.axes for row in rows])
    return 0


if __name__ == "__main__":
    run_command(main)
