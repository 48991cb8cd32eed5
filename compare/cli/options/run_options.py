"""The options of `compare.run` besides the case."""

import argparse

from compare.cli.options.case_options import case_parser
from compare.cli.options.chip_option import add_chip
from compare.cli.options.work_options import add_controls, add_frameworks, add_limits, add_witnesses
from compare.report.witnesses import WITNESSES
from compare.run.choices import CONTROLS, EARLIER_LIBTPU, PLATFORMS
from meshes.process.command_line import Parser, path


def run_parser() -> Parser:
    """The options of `compare.run`."""
    parser = case_parser(
        "compare.run",
        "Compile a model in JAX and PyTorch/XLA, and split its collective traffic into required bytes and overhead.",
        example="--mesh tp4pp2",
    )
    _add_programs(parser.add_argument_group("the programs"))
    add = parser.add_argument
    add("--out", metavar="DIR", type=path, default="runs", help="the folder for run folders")
    add_limits(parser, "neither read nor write the cache")
    add_chip(parser, "; the report keeps a copy")
    add("--details", action="store_true", help="print all tables (default: a summary)")
    add("--json", action="store_true", help="print the report as JSON; the page's path goes to stderr")
    gate = "exit 1 if this holds for any program, e.g. framework_induced>0 or 'torchxla.decode.induced > 1 MB'"
    add("--fail-if", metavar="EXPR", action="append", default=[], help=f"{gate}; repeatable")
    return parser


def _add_programs(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add_frameworks(group, "frameworks to compare, comma-separated")
    add_controls(
        group,
        "ablations: recompile with one thing changed, to attribute the overhead: "
        f"{', '.join(CONTROLS)}, comma-separated; or all, or none",
    )
    earlier = f"also compile with this libtpu version, installed by pip (default {EARLIER_LIBTPU})"
    add("--libtpu", metavar="VERSION", default=argparse.SUPPRESS, help=earlier)
    add_witnesses(
        group,
        "also compile third-party models (Hugging Face, tunix) with the same shapes and mesh: "
        f"{', '.join(WITNESSES)}, comma-separated",
    )
    profiles = "a reduced model on JAX's CPU runtime, or the full one on TPUs"
    add("--execute", choices=PLATFORMS, help=f"also run both programs and read their profiles: {profiles}")
    add("--same-runtime", action="store_true", help=argparse.SUPPRESS)
    add(
        "--no-pages", action="store_true", help="numbers only: report.json and tables; compare.report FOLDER draws them"
    )
    add("--no-passes", action="store_true", help="do not record which libtpu pass created each collective")
