"""`python -m compare.run --mesh tp4pp2`: compile both arms for one mesh, and say which bytes nobody needed."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from compare.judge import gate
from compare.work import cache, folder, jobs, progress
from compare.work.arms import ARMS, PLATFORMS, arms_of
from compare.work.options import case_parser, guarded, listing, print_json, read_case, seconds
from compare.work.reading import judged, read_run, whole
from meshes.memory import check_fits


def main(argv: Sequence[str] | None = None) -> int:
    """Lower, compile, read, judge, draw.  0: all of it; 1: something failed, the rest is reported."""
    parser = case_parser(
        "compare.run", "Which bytes does the plan need, and which did each framework add?", example="--mesh tp4pp2"
    )
    parser.add_argument("--arm", metavar="LIST", default=",".join(ARMS), help="which frameworks, with commas")
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("runs"), help="where run folders are kept")
    parser.add_argument("--timeout", metavar="S", type=seconds, default=jobs.TIMEOUT_S, help="seconds a process has")
    parser.add_argument(
        "--execute",
        choices=PLATFORMS,
        help="also run both arms and read their profiles: on CPU devices, small, or on TPUs, whole",
    )
    parser.add_argument(
        "--same-runtime", action="store_true", help="with --execute cpu: the PyTorch program on JAX's runtime, too"
    )
    parser.add_argument("--no-cache", action="store_true", help="make everything anew, and keep nothing")
    parser.add_argument("--json", action="store_true", help="print the report as JSON; the page's path goes to stderr")
    parser.add_argument("--fail-if", metavar="EXPR", action="append", default=[], help=gate.HELP)
    asked = parser.parse_args(argv)
    if "list" in asked:
        print(listing(asked.list))
        return 0
    if asked.same_runtime and asked.execute != "cpu":
        parser.error("--same-runtime goes with --execute cpu")
    case = read_case(asked)
    check_fits(case)
    arms = {one.name: one for one in arms_of(asked.arm)}
    conditions = [gate.read_condition(text, arms=arms, phases=case.phases) for text in asked.fail_if]
    place = folder.place_of(case, parent=asked.out, arms=arms)
    with folder.writing(place) as beside, cache.opened(bypass=asked.no_cache) as kept:
        with progress.shown(Console(stderr=True)) as tell:
            outcomes = jobs.run(
                case, arms=list(arms.values()), cache=kept, tell=tell, timeout_s=asked.timeout,
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
        print(line, file=sys.stderr)
    return 0 if whole(report) and not failed else 1


if __name__ == "__main__":
    guarded(main)
