"""`python -m compare.report RUN`: read, judge and draw a run folder again, with no framework installed."""

from collections.abc import Sequence

from compare.cli.options.chip_option import add_chip
from meshes.process.command_line import command_parser, path


def main(argv: Sequence[str] | None = None) -> int:
    """0: every program of the run was judged; 1: some program failed, in the run or now."""
    parser = command_parser(
        "compare.report",
        "Recompute the verdicts of a run folder and regenerate its report; needs no framework installed.",
        example="runs/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4",
    )
    parser.add_argument("run", metavar="RUN", type=path, help="a run folder: case.json, and <arm>/<phase>/<cell>/")
    parser.add_argument("--out", metavar="DIR", type=path, help="write here instead of into the run folder")
    add_chip(parser, "; the report keeps a copy")
    parser.add_argument("--details", action="store_true", help="print all tables (default: a summary)")
    parser.add_argument("--json", action="store_true", help="print the report as JSON; the page's path goes to stderr")
    options = parser.parse_args(argv)

    from dataclasses import replace

    from compare.run.errors import WorkError
    from compare.run.folder import replace_folder, run_folder
    from compare.run.folder.chip import copy_chip
    from compare.run.folder.load_run import is_complete, is_judged, read_case, read_run
    from compare.run.folder.replace_folder import CASE

    target = options.out or options.run
    run = read_run(options.run)
    if (target / CASE).exists() and (other := read_case(target)) != run.case:
        raise WorkError(f"{target} is a run of {other.name}, not of {run.case.name}; choose another --out")
    with replace_folder.open_replacement(target) as scratch:
        run_folder.copy_run(options.run, scratch)
        if options.chip:
            copy_chip(options.chip, scratch, run.case.topology.generation)
        from compare.remedy.page import sections as remedy_sections
        from compare.render.report.draw import judge_and_draw
        from compare.render.report.show import print_outcome
        from compare.simulate.what_if.what_if_page import sections as what_if_sections

        report = judge_and_draw(
            replace(run, folder=scratch), scratch, sections=[*remedy_sections(scratch), *what_if_sections(scratch)]
        )
        target, note = run_folder.put_in_place(scratch, target, judged=is_judged(report))
    print_outcome(report, target, note=note, details=options.details, as_json=options.json)
    return 0 if is_complete(report) else 1
