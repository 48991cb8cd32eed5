"""`python -m compare.run --mesh tp4pp2`: compile both arms for one mesh, and say which bytes nobody needed."""

import sys
from collections.abc import Sequence

from rich.console import Console

from compare.judge import gate
from compare.work import cache, folder, jobs, placing, progress
from compare.work.options import listing, print_json, read_case
from compare.work.reading import judged, read_run, whole
from compare.work.run_options import read_programs, run_parser
from meshes.doors import guarded
from meshes.lines import complain
from meshes.memory import check_fits


def main(argv: Sequence[str] | None = None) -> int:
    """Lower, compile, read, judge, draw.  0: all of it; 1: something failed, the rest is reported."""
    asked = run_parser().parse_args(argv)
    if "list" in asked:
        print(listing(asked.list))
        return 0
    programs = read_programs(asked)
    case = read_case(asked)
    check_fits(case)
    conditions = [gate.read_condition(text, arms=programs.arms, phases=case.phases) for text in asked.fail_if]
    place = folder.place_of(case, parent=asked.out, arms=programs.arms)
    with placing.writing(place) as beside, cache.opened(bypass=asked.no_cache) as kept:
        with progress.shown(Console(stderr=True)) as tell:
            outcomes = jobs.run(
                case, arms=list(programs.arms.values()), cache=kept, tell=tell, timeout_s=asked.timeout,
                controls=programs.controls, libtpu=programs.libtpu, passes=not asked.no_passes,
                execute=asked.execute or "", same_runtime=asked.same_runtime,
            )  # fmt: skip
        folder.fill(beside, case=case, outcomes=outcomes)
        folder.keep_measured(place, beside)
        from compare.views.draw import draw, show  # the drawing libraries take a second, which the workers had

        run = read_run(beside)
        times = run.timelines()
        report = draw(run.report(times), beside, timelines=times.found)
        place, note = folder.settled(beside, place, judged=judged(report))
    if asked.json:
        print_json(report)
        print(*note, place / "report.html", sep="\n", file=sys.stderr)
    else:
        show(report, place, note=note)
    failed = gate.tripped(report, conditions)
    for line in failed:
        complain(line)
    return 0 if whole(report) and not failed else 1


if __name__ == "__main__":
    guarded(main)
