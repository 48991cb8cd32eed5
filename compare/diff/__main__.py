"""`python -m compare.diff A.hlo B.hlo --axes data=2,tensor=4`: what two programs, or runs, communicate differently."""

from collections.abc import Sequence
from pathlib import Path

from compare.diff import request
from compare.run.cli.axes_options import add_axes, axes_of, hint_axes
from meshes.process import atomic_files
from meshes.process.command_line import Parser, guarded, print_json


def main(argv: Sequence[str] | None = None) -> int:
    """0: both move the same; 1: they differ; 2: the request was wrong."""
    parser = Parser(
        prog="python -m compare.diff",
        description="What two programs, or two run folders, communicate differently. Exit 0: nothing; 1: something; "
        "2: the request was wrong.",
        epilog="example: python -m compare.diff before.hlo.gz after.hlo.gz --axes data=2,tensor=4",
    )
    told = (
        "compiled HLO text (.gz too), StableHLO or HLO from before the partitioner, a folder of table.save(…), a run "
    )
    told += "folder, or a cell of one"
    parser.add_argument("a", metavar="A", help=told)
    parser.add_argument("b", metavar="B", help="the same of what it is held against")
    add_axes(parser)
    parser.add_argument(
        "--topology", default="", metavar="NAME",
        help="what programs that are not compiled yet are compiled for, like v5e:2x4; else the smallest v5e slice",
    )  # fmt: skip
    parser.add_argument("--no-cache", action="store_true", help="compile them anew, and keep nothing")
    parser.add_argument("--json", action="store_true", help="print the diff as JSON")
    parser.add_argument("--html", metavar="FILE", type=Path, help="also write it as a page")
    asked = parser.parse_args(argv)
    a, b = Path(asked.a), Path(asked.b)
    kind = request.kind_of(a, b)
    if kind == request.PROGRAMS:
        found = request.of_programs(
            asked.a, asked.b, axes=axes_of(asked), topology=asked.topology, no_cache=asked.no_cache
        )
    elif asked.mesh or asked.axes or asked.topology:
        parser.error("run folders know their mesh; --axes, --mesh and --topology go with programs")
    else:
        found = request.of_runs(a, b) if kind == request.RUNS else request.of_cells(a, b)
    if asked.html:
        from compare.diff.page import page

        atomic_files.write_text(asked.html, page(found))
    if asked.json:
        print_json(found)
    else:
        from compare.diff.text import print_diff

        print_diff(found)
    if kind == request.PROGRAMS:
        hint_axes(asked, [row["axes"] for side in ("a", "b") for row in found[side]["by_kind"]])
    return 0 if found["same"] else 1


if __name__ == "__main__":
    guarded(main)
