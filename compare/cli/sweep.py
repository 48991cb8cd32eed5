"""`python -m compare.sweep --meshes tp8,tp4pp2 --models …`: many cases at once, one table and one figure."""

from collections.abc import Sequence

from compare.cli.options.sweep_options import sweep_parser
from meshes.process.command_line import print_json
from meshes.process.log import log


def main(argv: Sequence[str] | None = None) -> int:
    """Each combination as `compare.run` does it.  0: all that can be; 1: something failed, the rest is there."""
    options = sweep_parser().parse_args(argv)
    if "list" in options:
        from compare.cli.options.case_request import print_list

        print_list(options)
        return 0

    from pathlib import Path

    from compare.cli.options.sweep_request import combinations
    from compare.run.arms import parse_arms, parse_controls, parse_options, parse_witnesses
    from compare.sweep import progress, sweep
    from compare.sweep.engines.engines import load_engine
    from compare.sweep.sweep_report import build_summary, earlier_rows, is_complete

    arms = [item.name for item in parse_arms(options.arm)]
    cases = combinations(options)
    out = options.out if "out" in options else Path("sweeps") / sweep.name_sweep(cases, arms=arms)
    controls = (*parse_controls(options.controls), *parse_options(options.options))
    work = sweep.Work(
        out=out,
        arms=arms,
        controls=controls,
        witnesses=parse_witnesses(options.witness, arms=arms),
        engine=load_engine(options.engine),
        at_once=getattr(options, "jobs", None),
        timeout_s=options.timeout,
        no_cache=options.no_cache,
        pages=not options.no_pages,
        chip=options.chip,
    )
    with progress.show_progress([item for item in cases if item.refused]) as notify:
        results = sweep.run(cases, work, notify=notify)
    from compare.sweep.render import draw

    summary = build_summary(results, asked=vars(options), arms=arms, before=earlier_rows(out, results))
    if options.energy:
        from compare.sweep.energy.measure import add_energy

        summary = add_energy(summary, out)
    draw.draw(summary, out)
    if options.json:
        print_json(summary)
        log().info("%s", out / draw.PAGE)
    else:
        draw.show(summary, out)
    return 0 if is_complete(summary) else 1
