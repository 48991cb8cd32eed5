"""`python -m compare.sweep --meshes tp8,tp4pp2 --models …`: many cases at once, one table and one figure."""

import sys
from collections.abc import Sequence
from pathlib import Path

from compare.run.arms import parse_arms, parse_controls
from compare.run.cli.case_options import listing
from compare.sweep import progress, sweep
from compare.sweep.engines.engines import ENGINES
from compare.sweep.report import build_summary, earlier_rows, is_complete
from compare.sweep.request import combinations, sweep_parser
from meshes.process.command_line import print_json, run_command


def main(argv: Sequence[str] | None = None) -> int:
    """Each combination as `compare.run` does it.  0: all that can be; 1: something failed, the rest is there."""
    asked = sweep_parser().parse_args(argv)
    if "list" in asked:
        print(listing(asked.list))
        return 0
    arms = [one.name for one in parse_arms(asked.arm)]
    found = combinations(asked)
    out = asked.out if "out" in asked else Path("sweeps") / sweep.name_sweep(found, arms=arms)
    work = sweep.Work(
        out=out, arms=arms, controls=parse_controls(asked.controls), engine=ENGINES[asked.engine],
        at_once=getattr(asked, "jobs", None), timeout_s=asked.timeout, no_cache=asked.no_cache,
    )  # fmt: skip
    with progress.show_progress([one for one in found if one.refused]) as notify:
        results = sweep.run(found, work, notify=notify)
    from compare.sweep.render import draw

    told = draw.draw(build_summary(results, asked=asked, arms=arms, before=earlier_rows(out, results)), out)
    if asked.json:
        print_json(told)
        print(out / draw.PAGE, file=sys.stderr)
    else:
        draw.show(told, out)
    return 0 if is_complete(told) else 1


if __name__ == "__main__":
    run_command(main)
