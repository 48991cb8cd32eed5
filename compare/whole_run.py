"""The whole job for one case: lower, compile, read, judge, draw, and put the run folder in its place."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from compare.report.model.report import Report
from compare.run import cache, progress, scheduler
from compare.run.arms import Arm
from compare.run.choices import TIMEOUT_S
from compare.run.folder import replace_folder, run_folder
from compare.run.folder.chip import copy_chip, read_chip_of
from compare.run.folder.load_run import is_judged, read_run
from meshes.case import Case
from meshes.memory import check_fits
from meshes.process.log import is_quiet


def make_run(
    case: Case,
    *,
    arms: Sequence[Arm],
    controls: Sequence[str] = (),
    witnesses: Sequence[str] = (),
    libtpu: str = "",
    execute: str = "",
    passes: bool = True,
    chip: Path | None = None,
    out: Path,
    timeout_s: float = TIMEOUT_S,
    no_cache: bool = False,
    pages: bool = True,
) -> tuple[Report, Path, list[str]]:
    """(the report, the run folder, notes).  The options are those of `compare.run`; progress goes to stderr.

    Raises `ValueError`, one line, for a case that cannot be.
    """
    check_fits(case)
    if chip:
        read_chip_of(chip, case.topology.generation)
    target = run_folder.folder_of(case, parent=out, arms=[arm.name for arm in arms])
    with replace_folder.open_replacement(target) as scratch, cache.open_cache(bypass=no_cache) as user_cache:
        with progress.show_events(Console(stderr=True, quiet=is_quiet())) as notify:
            outcomes = scheduler.run_case(
                case,
                arms=list(arms),
                cache=user_cache,
                notify=notify,
                timeout_s=timeout_s,
                controls=controls,
                libtpu=libtpu,
                passes=passes,
                execute=execute,
                witnesses=witnesses,
            )
        run_folder.write_cells(scratch, case=case, outcomes=outcomes)
        if chip:
            copy_chip(chip, scratch, case.topology.generation)
        run_folder.carry_measured(target, scratch)
        from compare.remedy.page import sections
        from compare.render.report.draw import judge_and_draw, judge_and_save

        run = read_run(scratch)
        if pages:
            report = judge_and_draw(run, scratch, sections=sections(scratch), no_cache=no_cache)
        else:
            report = judge_and_save(run, scratch)
        target, note = run_folder.put_in_place(scratch, target, judged=is_judged(report))
    return report, target, list(note)
