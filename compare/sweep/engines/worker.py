"""Run one case of a sweep: `python -m compare.sweep.engines.worker REQUEST.json OUT`.

It does the work of `compare.run`, writes the run folder to `OUT/run`, and reports its progress on stdout.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import NotRequired, TypedDict

from compare.run import cache, scheduler
from compare.run.arms import ARMS, find_arm
from compare.run.folder import run_folder
from compare.run.folder.load_run import is_complete, is_judged, read_run
from compare.run.results import Event
from meshes.case import Case
from meshes.process.command_line import run_command
from meshes.process.documents import read_json

RUN, MADE = "run", "made.json"
"""In the folder that it is given: the run folder, and what came of it."""


class CaseRequest(TypedDict):
    """One case to run, and how."""

    case: Mapping[str, object]
    """As `Case.to_dict` writes it."""
    arms: list[str]
    controls: list[str]
    """Words of `arms.CONTROLS`."""
    timeout_s: float
    no_cache: bool
    before: str
    """The folder where an earlier run of the same case may be."""
    at_once: NotRequired[int]
    """Programs compiled at a time; the engine sets it."""


class CaseResult(TypedDict):
    """The outcome of a case."""

    judged: bool
    """Whether any program was."""
    complete: bool
    """Whether every program was."""


def make_request(
    case: Case, *, arms: Sequence[str], controls: Sequence[str], timeout_s: float, no_cache: bool, before: Path
) -> CaseRequest:
    """The request of a worker.  before: where an earlier run of the case may be, whose measurements are kept."""
    return {
        "case": case.to_dict(), "arms": list(arms), "controls": list(controls), "timeout_s": timeout_s,
        "no_cache": no_cache, "before": str(before),
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Lower, compile, read, judge, draw."""
    request, out = (Path(word) for word in (sys.argv[1:] if argv is None else argv))
    words = read_json(request)
    case = Case.from_dict(words["case"])
    run = out / RUN
    run.mkdir()
    with cache.open_cache(bypass=words["no_cache"]) as kept:
        outcomes = scheduler.run_case(
            case, arms=[find_arm(name) for name in words["arms"]], cache=kept,
            notify=_Notifier(case, words["arms"], words["controls"]).update, controls=words["controls"],
            timeout_s=words["timeout_s"], at_once=words["at_once"],
        )  # fmt: skip
        run_folder.write_cells(run, case=case, outcomes=outcomes)
    run_folder.carry_measured(Path(words["before"]), run)
    _say("judge and draw")
    from compare.render.report.draw import judge_and_draw

    report = judge_and_draw(read_run(run), run)
    result = CaseResult(judged=is_judged(report), complete=is_complete(report))
    (out / MADE).write_text(json.dumps(result))
    return 0


class _Notifier:
    """Reports on stdout how many programs are finished, and the current step."""

    def __init__(self, case: Case, arms: Sequence[str], controls: Sequence[str]):
        self._total = len(case.phases) * sum(len(ARMS[name].cells(case, controls=controls)) for name in arms)
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


_BEGUN = monotonic()


def _say(stage: str) -> None:
    print(json.dumps({"stage": stage, "seconds": round(monotonic() - _BEGUN, 3)}), flush=True)


if __name__ == "__main__":
    run_command(main)
