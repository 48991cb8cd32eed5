"""Run cases of a sweep, one after another: `python -m compare.sweep.engines.worker`.

Each line on stdin is a folder, as JSON, with the request of a case.  It does the work of `compare.run`, writes the run
folder into that folder, then its result, and reports its progress on stdout.  A case that fails ends it.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache as once
from pathlib import Path
from typing import TYPE_CHECKING, NotRequired, TypedDict

from compare.run import cache, scheduler
from compare.run.arms import ARMS, find_arm
from compare.run.folder import run_folder
from compare.run.folder.chip import CHIP
from compare.run.folder.load_run import is_complete, is_judged, read_run
from compare.run.results import Event
from meshes.case import Case
from meshes.process import atomic_files
from meshes.process.command_line import run_command
from meshes.process.documents import read_json

if TYPE_CHECKING:  # it draws: imported when a page is asked for
    from compare.render.report.figure_process import FigureProcess

REQUEST, RUN, MADE = "request.json", "run", "made.json"
"""In the folder that it is given: what to do; the run folder; and what came of it, which is written last."""
DONE = "done"
"""The stage after that."""


class CaseRequest(TypedDict):
    """One case to run, and how."""

    case: Mapping[str, object]
    """As `Case.to_dict` writes it."""
    arms: list[str]
    controls: list[str]
    """Words of `arms.CONTROLS`."""
    witnesses: list[str]
    """Names in `WITNESSES`."""
    timeout_s: float
    no_cache: bool
    before: str
    """The folder where an earlier run of the same case may be, whose measurements are kept."""
    pages: bool
    """Whether its page and figures are drawn."""
    chip: str | None
    """The text of a user's chip file."""
    at_once: NotRequired[int]
    """Programs compiled at a time; the engine sets it."""


class CaseResult(TypedDict):
    """The outcome of a case."""

    judged: bool
    """Whether any program was."""
    complete: bool
    """Whether every program was, but for witnesses that refused the case."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a case for each line on stdin, until its end."""
    with ExitStack() as stack:

        @once
        def start(no_cache: bool) -> "FigureProcess":
            from compare.render.report.draw import start_drawing

            return stack.enter_context(start_drawing(no_cache=no_cache))

        for line in sys.stdin:
            _run(Path(json.loads(line)), start)
    return 0


def _run(out: Path, start_drawing: "Callable[[bool], FigureProcess]") -> None:
    """Lower, compile, read, judge, draw: one process, started when it is first needed, draws the figures of all."""
    from compare.render.report.draw import judge_and_draw, judge_and_save

    words: CaseRequest = read_json(out / REQUEST)
    case = Case.from_dict(words["case"])
    run = out / RUN
    run.mkdir()
    with cache.open_cache(bypass=words["no_cache"]) as kept:
        outcomes = scheduler.run_case(
            case,
            arms=[find_arm(name) for name in words["arms"]],
            cache=kept,
            notify=_Notifier(case, words).update,
            controls=words["controls"],
            witnesses=words["witnesses"],
            timeout_s=words["timeout_s"],
            at_once=words["at_once"],
        )
        run_folder.write_cells(run, case=case, outcomes=outcomes)
    if words["chip"] is not None:
        atomic_files.write_text(run / CHIP, words["chip"])
    run_folder.carry_measured(Path(words["before"]), run)
    _say("judge and draw")
    taken = read_run(run)
    if words["pages"]:
        report = judge_and_draw(taken, run, process=start_drawing(words["no_cache"]))
    else:
        report = judge_and_save(taken, run)
    result = CaseResult(judged=is_judged(report), complete=is_complete(report, may_refuse=words["witnesses"]))
    atomic_files.write_text(out / MADE, json.dumps(result))
    _say(DONE)


class _Notifier:
    """Reports on stdout how many programs are finished, and the current step."""

    def __init__(self, case: Case, words: CaseRequest):
        cells = (
            ARMS[name].cells(case, controls=words["controls"], witnesses=words["witnesses"]) for name in words["arms"]
        )
        self._total = len(case.phases) * sum(map(len, cells))
        self._ended: set[tuple[str, str, str]] = set()
        self._last = ""

    def update(self, event: Event) -> None:
        over = event.stage in ("done", "cached") and event.step == "compile"
        if over or event.error:
            self._ended.add((event.arm, event.phase, event.cell))
        said = f"{len(self._ended)} of {self._total}, {event.step} {event.arm}"
        if said != self._last:
            self._last = said
            _say(said)


def _say(stage: str) -> None:
    print(json.dumps({"stage": stage}), flush=True)


if __name__ == "__main__":
    run_command(main)
