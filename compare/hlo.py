"""`python -m compare.hlo FILE --axes data=2,tensor=4`: the collectives of anybody's compiled HLO text."""

from collections.abc import Sequence

from compare.program.collectives import collectives
from compare.program.files import read_file
from compare.program.unpartitioned import check_partitioned
from compare.work.options import add_axes, axes_of, hint_axes, print_json
from meshes.doors import Parser, guarded


def main(argv: Sequence[str] | None = None) -> int:
    """Print one row for each collective, in program order."""
    parser = Parser(
        prog="python -m compare.hlo",
        description="The collectives of compiled HLO text: compiled.as_text(), or a file of --xla_dump_hlo_as_text.",
        epilog="example: python -m compare.hlo optimized.hlo.gz --axes data=2,tensor=4 --json",
    )
    parser.add_argument("file", metavar="FILE", help="HLO text, also gzipped; - reads it from standard input")
    add_axes(parser)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    asked = parser.parse_args(argv)
    axes = axes_of(asked)
    module = read_file(asked.file)
    rows = collectives(module, axes)
    if not rows:
        check_partitioned(module)
    if asked.json:
        print_json([row.public() for row in rows])
    else:
        from compare.views.rows import print_rows

        print_rows(rows)
    hint_axes(asked, [row.axes for row in rows])
    return 0


if __name__ == "__main__":
    guarded(main)
