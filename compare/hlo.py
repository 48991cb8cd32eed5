"""`python -m compare.hlo FILE --axes data=2,tensor=4`: the collectives of anybody's compiled HLO text."""

import sys
from collections.abc import Sequence

from compare.program.axes import read_axes
from compare.program.collectives import collectives
from compare.program.files import read_file
from compare.program.unpartitioned import check_partitioned
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
        from compare.views.rows import print_rows

        print_rows(rows)
    if rows and not axes:
        told = sys.stderr if asked.json else sys.stdout
        print("The axes read ?; --axes data=2,tensor=4 (any names and sizes) or --mesh tp4dp2 names them.", file=told)
    return 0


if __name__ == "__main__":
    guarded(main)
