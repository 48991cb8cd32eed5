"""`python -m compare.run --mesh tp4pp2`: compile both arms for one mesh, and report the bytes beyond the plan."""

import sys
from collections.abc import Sequence

from rich.console import Console

from compare.report import fail_if
from compare.run import cache, progress, scheduler
from compare.run.cli.case_options import listing, read_case
from compare.run.cli.run_options import read_programs, run_parser
from compare.run.folder import replace_folder, run_folder
from compare.run.folder.load_run import is_complete, is_judged, read_run
from meshes.memory import check_fits
from meshes.process.command_line import print_json, run_command
from meshes.process.one_line import complain


def main(argv: Sequence[str] | None = None) -> int:
    """Lower, compile, read, judge, draw.  0: all of it; 1: something failed, the rest is reported."""
    asked = run_parser().parse_args(argv)
    if "list" in asked:
        print(listing(asked.list))
        return 0
    programs = read_programs(asked)
    case = read_case(asked)
    check_fits(case)
    conditions = [fail_if.read_condition(text, arms=programs.arms, phases=case.phases) for text in asked.fail_if]
    place = run_folder.folder_of(case, parent=asked.out, arms=programs.arms)
    with replace_folder.open_replacement(place) as beside, cache.open_cache(bypass=asked.no_cache) as kept:
        with progress.show_events(Console(stderr=True)) as notify:
            outcomes = scheduler.run_case(
                case, arms=list(programs.arms.values()), cache=kept, notify=notify, timeout_s=asked.timeout,
                controls=programs.controls, libtpu=programs.libtpu, passes=not asked.no_passes,
                execute=asked.execute or "", same_runtime=asked.same_runtime, witnesses=programs.witnesses,
            )  # fmt: skip
        run_folder.write_cells(beside, case=case, outcomes=outcomes)
        run_folder.carry_measured(place, beside)
        from compare.remedy.page import sections
        from compare.render.report.draw import judge_and_draw
        from compare.render.report.show import show_report

        report = judge_and_draw(read_run(beside), beside, sections=sections(beside))
        place, note = run_folder.put_in_place(beside, place, judged=is_judged(report))
    if asked.json:
        print_json(report.to_json())
        print(*note, place / "report.html", sep="\n", file=sys.stderr)
    else:
        show_report(report, place, details=asked.details, note=note)
    failed = fail_if.list_violations(report, conditions)
    for line in failed:
        complain(line)
    return 0 if is_complete(report) and not failed else 1


if __name__ == "__main__":
    run_command(main)
