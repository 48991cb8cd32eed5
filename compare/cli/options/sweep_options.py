"""The options of a sweep."""

import argparse

from compare.cli.options.case_options import add_checkpoint, add_list, add_step
from compare.cli.options.chip_option import add_chip
from compare.cli.options.work_options import add_controls, add_frameworks, add_limits, add_witnesses
from compare.report.compiler_options import OPTIONS
from compare.report.witnesses import WITNESSES
from compare.sweep.engines.engines import ENGINES
from meshes.choices import CHOICES
from meshes.process.command_line import Parser, command_parser, path, whole_number


def sweep_parser() -> Parser:
    """A parser with the options of a sweep."""
    parser = command_parser(
        "compare.sweep",
        "Compare the frameworks for every model on every mesh: a run folder for each, one table, one figure.",
        example="--meshes tp8,tp4pp2,dp2tp4 --models llama-3.1-8b,qwen3-4b",
    )
    group = parser.add_argument_group("the cases")
    meshes = "comma-separated meshes, each as in compare.run: tp8,tp4pp2,tp8+sp,tp8@v6e:2x4,my.toml"
    group.add_argument("--meshes", metavar="LIST", default=argparse.SUPPRESS, help=meshes)
    models = group.add_mutually_exclusive_group()
    models.add_argument("--models", metavar="LIST", default="llama-3.1-8b", help="comma-separated model presets")
    add_checkpoint(models)
    phases = "prefill, decode, or prefill,decode"
    group.add_argument("--phases", metavar="LIST", default=",".join(CHOICES["phases"]), help=phases)
    add_step(group, read_microbatches=_numbers)
    add_list(parser)
    _add_work(parser)
    return parser


def _add_work(parser: Parser) -> None:
    group = parser.add_argument_group("the work")
    add = group.add_argument
    options = f"also compile with these compiler options of libtpu: {', '.join(OPTIONS)}; or all"
    add("--options", metavar="LIST", default="", help=options)
    add_frameworks(group)
    add_controls(group, "ablations of each case, as in compare.run; or all, or none")
    add_witnesses(group, f"also compile third-party models for the cases that they take: {', '.join(WITNESSES)}")
    out = "output folder for run folders, sweep.html, tables and figure (default: a folder under sweeps/)"
    add("--out", metavar="DIR", type=path, default=argparse.SUPPRESS, help=out)
    jobs = "cases compiled at the same time (default: number of cores)"
    add("--jobs", metavar="N", type=whole_number, default=argparse.SUPPRESS, help=jobs)
    engine = "processes on this machine, or tasks of a Ray cluster"
    add("--engine", choices=ENGINES, default="local", help=engine)
    add_limits(group, "recompile everything, finished cases too, and write nothing to the cache")
    add(
        "--no-pages",
        action="store_true",
        help="numbers only: no report.html and figures of each case, which take most of the time where programs are in "
        "the cache; compare.report FOLDER draws them",
    )
    energy = "also modelled energy and power of every program, kernel times, heat maps of chips (docs/energy.md)"
    add("--energy", action="store_true", help=energy)
    add_chip(parser, "; of every case, whose report keeps a copy")
    add("--json", action="store_true", help="print sweep.json; the path of the page goes to stderr")


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers in `1,2,4`, each once."""
    return tuple(dict.fromkeys(whole_number(word.strip()) for word in text.split(",")))
