"""The options of `compare.simulate RUN`: on which machine, with which changes, swept over what."""

from compare.cli.options.chip_option import add_chip
from compare.cli.options.machine_options import add_machine
from compare.cli.options.numbers import digits, number
from compare.network.machines.kinds import SCALES
from meshes.process.command_line import Parser, command_parser, path, whole_number

POINTS, MOST_POINTS = 13, 200
"""Of a sweep: without --points, and at most."""
_points = number(digits, lambda points: 2 <= points <= MOST_POINTS, f"2 to {MOST_POINTS}, not {{}}")


def what_if_parser() -> Parser:
    """Of `compare.simulate RUN`."""
    parser = command_parser(
        "compare.simulate",
        "Simulate the compiled programs of a run on any machine, real or not: step times, exposed communication by "
        "verdict.  One collective: cost; a Chakra trace: replay.",
        example="docs/example-run --machine v5e:2x4 --sweep ici=0.25:8:log --out what-if",
    )
    add = parser.add_argument
    add("run", metavar="RUN", type=path, help="a run folder: case.json, and <arm>/<phase>/<cell>/")
    add_machine(parser, " (default: what the programs were compiled for)")
    add_chip(parser, " (default: what the run keeps)")
    add(
        "--scale",
        metavar="WORD=X,…",
        action="append",
        default=[],
        help=f"times X: {'; '.join(f'{word}: {what}' for word, what in SCALES.items())}; compute: the speed of ranks",
    )
    of_set = "a key of the machine's file, like dims.1.bandwidth=180"
    add("--set", metavar="KEY=VALUE", action="append", default=[], help=of_set)
    add(
        "--algorithm",
        metavar="KIND=WORD",
        action="append",
        default=[],
        help="of one kind of collective, like all-reduce=halving-doubling; of each dim, joined by +",
    )
    add(
        "--repeat",
        metavar="N",
        type=whole_number,
        default=1,
        help="copies of the programs side by side, as over an outer data-parallel axis (default: 1)",
    )
    add(
        "--sweep",
        metavar="WORD=FROM:TO[:log]|WORD=A,B,…",
        help="over a word of --scale or a key of --set, like ici=0.25:8:log or dims.0.kind=ring,switch; over machines, "
        "machine=v5e:2x4,v6e:2x4; over algorithms, all-reduce=ring,direct",
    )
    add(
        "--points",
        metavar="N",
        type=_points,
        help=f"number of points of a sweep (default: {POINTS}; with :log two for each doubling)",
    )
    add("--best", action="store_true", help="the fastest algorithm of each collective alone, and the compiler's")
    add(
        "--out",
        metavar="DIR",
        type=path,
        help="write the run as it would be on this machine: report, tables, figures, trace; with --sweep its figure",
    )
    add(
        "--into",
        action="store_true",
        help="write numbers and figure into RUN, and a copy of --chip's file; compare.report puts them on its page",
    )
    add("--json", action="store_true", help="print one JSON object")
    return parser
