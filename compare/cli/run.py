"""`python -m compare.run --mesh tp4pp2`: compile both arms for one mesh, and report the bytes beyond the plan."""

from collections.abc import Sequence

from compare.cli.options.run_options import run_parser
from meshes.process.log import complain


def main(argv: Sequence[str] | None = None) -> int:
    """Lower, compile, read, judge, render.  0: everything succeeded; 1: something failed, the rest is reported."""
    options = run_parser().parse_args(argv)
    from compare.cli.options.case_request import print_list, read_case

    if "list" in options:
        print_list(options)
        return 0
    from compare.cli.options.run_request import read_programs
    from compare.report import fail_if

    programs = read_programs(options)
    case = read_case(options)
    conditions = [fail_if.read_condition(text, arms=programs.arms, phases=case.phases) for text in options.fail_if]
    from compare.render.report.show import NUMBERS, PAGE, print_outcome
    from compare.run.folder.load_run import is_complete
    from compare.whole_run import make_run

    report, target, note = make_run(
        case,
        arms=list(programs.arms.values()),
        controls=programs.controls,
        witnesses=programs.witnesses,
        libtpu=programs.libtpu,
        execute=options.execute or "",
        passes=not options.no_passes,
        chip=options.chip,
        out=options.out,
        timeout_s=options.timeout,
        no_cache=options.no_cache,
        pages=not options.no_pages,
    )
    last = NUMBERS if options.no_pages else PAGE
    print_outcome(report, target, note=note, details=options.details, as_json=options.json, last=last)
    failed = fail_if.list_violations(report, conditions)
    for line in failed:
        complain(line)
    return 0 if is_complete(report) and not failed else 1
