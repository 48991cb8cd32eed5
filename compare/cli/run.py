"""`python -m compare.run --mesh tp4pp2`: compile both arms for one mesh, and report the bytes beyond the plan."""

import sys
from collections.abc import Sequence

from rich.console import Console

from compare.cli.options.case_options import listing, read_case
from compare.cli.options.run_options import read_programs, run_parser
from compare.report import fail_if
from compare.run import cache, progress, scheduler
from compare.run.folder import replace_folder, run_folder
from compare.run.folder.load_run import is_complete, is_judged, read_run
from compare.run.folder.timelines import copy_power, read_power_file
from meshes.memory import check_fits
from meshes.process.command_line import print_json
from meshes.process.one_line import complain


def main(argv: Sequence[str] | None = None) -> int:
    """Lower, compile, read, judge, render.  0: everything succeeded; 1: something failed, the rest is reported."""
    options = run_parser().parse_args(argv)
    if "list" in options:
        print(listing(options.list))
        return 0
    programs = read_programs(options)
    case = read_case(options)
    check_fits(case)
    if options.power:
        read_power_file(options.power, case.topology.generation)
    conditions = [fail_if.read_condition(text, arms=programs.arms, phases=case.phases) for text in options.fail_if]
    target = run_folder.folder_of(case, parent=options.out, arms=programs.arms)
    with replace_folder.open_replacement(target) as scratch, cache.open_cache(bypass=options.no_cache) as user_cache:
        with progress.show_events(Console(stderr=True)) as notify:
            outcomes = scheduler.run_case(
                case, arms=list(programs.arms.values()), cache=user_cache, notify=notify, timeout_s=options.timeout,
                controls=programs.controls, libtpu=programs.libtpu, passes=not options.no_passes,
                execute=options.execute or "", same_runtime=options.same_runtime, witnesses=programs.witnesses,
            )  # fmt: skip
        run_folder.write_cells(scratch, case=case, outcomes=outcomes)
        if options.power:
            copy_power(options.power, scratch, case.topology.generation)
        run_folder.carry_measured(target, scratch)
        from compare.remedy.page import sections
        from compare.render.report.draw import judge_and_draw
        from compare.render.report.show import show_report

        report = judge_and_draw(read_run(scratch), scratch, sections=sections(scratch))
        target, note = run_folder.put_in_place(scratch, target, judged=is_judged(report))
    if options.json:
        print_json(report.to_json())
        print(*note, target / "report.html", sep="\n", file=sys.stderr)
    else:
        show_report(report, target, details=options.details, note=note)
    failed = fail_if.list_violations(report, conditions)
    for line in failed:
        complain(line)
    return 0 if is_complete(report) and not failed else 1
