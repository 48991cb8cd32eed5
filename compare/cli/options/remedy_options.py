"""The options of `compare.remedy`."""

from compare.cli.options.case_options import case_parser
from compare.cli.options.work_options import add_frameworks, add_limits
from meshes.process.command_line import Parser, new_file, path, whole_number

MOST_COMPILES = 40


def remedy_parser() -> Parser:
    """The options of `compare.remedy`."""
    parser = case_parser(
        "compare.remedy",
        "Find the smallest set of code changes that removes avoidable communication. Every candidate is compiled and "
        "its collectives are counted.",
        example="--mesh tp4pp2 --framework torchxla",
    )
    add = parser.add_argument
    add_frameworks(parser)
    most = "maximum number of candidate programs, cached ones included; rerun with a larger N to continue"
    add("--max-compiles", metavar="N", type=whole_number, default=MOST_COMPILES, help=most)
    add_limits(parser)
    add("--html", metavar="FILE", type=new_file, help="also write an HTML page")
    into = "also write the result into this run folder; compare.report RUN then shows it"
    add("--into", metavar="RUN", type=path, help=into)
    add("--json", action="store_true", help="print the result as JSON")
    return parser
