"""`python -m compare.diff A.hlo B.hlo --axes data=2,tensor=4`: how the collectives of two programs or runs differ."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compare.cli.options.axes_options import add_axes, axes_of, hint_axes
from compare.diff.profiles.parts import HELP
from meshes.process.command_line import command_parser, new_file, print_json

if TYPE_CHECKING:
    from compare.diff.result import ProgramsDiff, RunsDiff


def main(argv: Sequence[str] | None = None) -> int:
    """0: both move the same; 1: they differ; 2: the request was wrong."""
    parser = command_parser(
        "compare.diff",
        "Compare the collectives of two programs, or of two run folders (exit 0: they move the same bytes; "
        "1: they differ), or the times of two profiles, what became slower first (1: a --fail-if holds). "
        "2: invalid request.",
        example="before.hlo.gz after.hlo.gz --axes data=2,tensor=4",
    )
    forms = (
        "compiled HLO text (.gz too), StableHLO or HLO before partitioning, a folder of table.save(…), a run folder, "
    )
    forms += "or one program of it (RUN/jax/prefill/tpu); or a profile (xplane.pb, *.trace.json, .gz, or a folder)"
    parser.add_argument("a", metavar="A", help=forms)
    parser.add_argument("b", metavar="B", help="the second program or run, in the same form")
    add_axes(parser)
    parser.add_argument(
        "--topology",
        default="",
        metavar="NAME",
        help="TPU to compile uncompiled programs for, like v5e:2x4 (default: the smallest v5e slice that fits)",
    )
    parser.add_argument("--no-cache", action="store_true", help="recompile, and write nothing to the cache")
    parser.add_argument("--json", action="store_true", help="print the diff as JSON")
    parser.add_argument("--fail-if", metavar="EXPR", action="append", default=[], help=HELP)
    parser.add_argument("--html", metavar="FILE", type=new_file, help="also write an HTML page")
    options = parser.parse_args(argv)

    from pathlib import Path

    from compare.diff import kinds

    a, b = Path(options.a), Path(options.b)
    kind = kinds.kind_of(a, b)
    if kind == kinds.PROFILES:
        if options.topology or options.html:
            parser.error("--topology and --html apply to programs and runs, not to profiles")
        return _diff_profiles(options)
    if options.fail_if:
        parser.error("--fail-if applies to profiles; compare.run has one of its own")
    diff: ProgramsDiff | RunsDiff
    if kind == kinds.PROGRAMS:
        from compare.diff.diff_programs import diff_programs

        diff = diff_programs(
            options.a, options.b, axes=axes_of(options), topology=options.topology, no_cache=options.no_cache
        )
    elif options.mesh or options.axes or options.topology:
        parser.error("run folders record their mesh; --axes, --mesh and --topology apply to programs only")
    else:
        from compare.diff.diff_runs import diff_cells, diff_runs

        diff = diff_runs(a, b) if kind == kinds.RUNS else diff_cells(a, b)
    if options.html:
        from compare.diff.print_diff import page
        from meshes.process import atomic_files

        atomic_files.write_text(options.html, page(diff))
    if options.json:
        print_json(diff)
    else:
        from compare.diff.print_diff import print_diff

        print_diff(diff)
    if kind == kinds.PROGRAMS and "axes" in diff:
        hint_axes(options, [row["axes"] for side in (diff["a"], diff["b"]) for row in side["by_kind"]])
    return 0 if diff["same"] else 1


def _diff_profiles(options: argparse.Namespace) -> int:
    from compare.diff.profiles.conditions import list_slower, read_condition
    from compare.diff.profiles.difference import diff_profiles
    from compare.report.model.codec import encode

    conditions = [read_condition(text) for text in options.fail_if]
    diff = diff_profiles(options.a, options.b, axes=axes_of(options))
    slower = list_slower(diff, conditions)
    if options.json:
        print_json({**encode(diff), "failed": slower})
    else:
        from compare.diff.profiles.print_profiles import print_profiles

        print_profiles(diff)
    print(*slower, sep="\n", end="\n" if slower else "", file=sys.stderr)
    return 1 if slower else 0
