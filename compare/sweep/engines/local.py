"""The engine for one machine: a process for each case, several at a time."""

import json
import os
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from uuid import uuid4

from compare.run.processes import Command, Pool, ProcessEnd
from compare.run.scheduler import cores
from compare.run.tasks import ROOT
from compare.sweep.engines.worker import MADE, RUN, CaseRequest, CaseResult
from meshes.process.documents import read_json

WORKER = "compare.sweep.engines.worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTask:
    """One case to run."""

    name: str
    request: CaseRequest = field(hash=False)
    """The request of its worker process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """How one case ended, and its run folder if there is one, which the caller must move or delete."""

    status: str
    """`ok`, or how its process ended: `failed` or `crashed`."""
    error: str = ""
    """One line."""
    seconds: float = 0.0
    run: Path | None = None
    judged: bool = False
    """Whether any of its programs was judged."""
    complete: bool = False
    """Whether all of its programs were judged."""


Notify = Callable[[str, str, float], None]
"""Receives a case's name, its stage, and the seconds since it began."""


def run_cases(
    tasks: Sequence[CaseTask], *, at_once: int | None, scratch: Path, notify: Notify, programs: int | None = None
) -> Generator[tuple[CaseTask, CaseOutcome], None, None]:
    """Run these tasks, `at_once` at a time (default: the number of cores), and yield each as it ends.

    Closing the generator early kills them.  scratch: a folder for unfinished run folders.
    programs: how many programs of a case are compiled at a time; by default the cores divided by the cases.
    """
    at_once = at_once or cores()
    programs = programs or max(1, cores() // max(1, min(at_once, len(tasks))))
    waiting, folders = list(tasks), dict[CaseTask, Path]()
    with Pool[CaseTask](lambda task, stage, seconds: notify(task.name, stage or "start", seconds)) as pool:
        while waiting or len(pool):
            while waiting and len(pool) < at_once:
                task = waiting.pop(0)
                folders[task] = scratch / uuid4().hex
                pool.start(task, _command(task, folders[task], programs=programs))
            for task, ended in pool.wait().items():
                yield task, _outcome_of(ended, folders.pop(task))


def _command(task: CaseTask, out: Path, *, programs: int) -> Command:
    out.mkdir(parents=True)
    request = out / "request.json"
    request.write_text(json.dumps({**task.request, "at_once": programs}))
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return Command(
        argv=[sys.executable, "-P", "-m", WORKER, str(request), str(out)],
        stderr=out / "stderr",
        environment=os.environ | {"PYTHONPATH": path},
        timeout_s=inf,  # the workers that it starts have deadlines
    )


def _outcome_of(ended: ProcessEnd, out: Path) -> CaseOutcome:
    result = _read(out) if ended.status == "ok" else None
    if result is None:
        # Impossible cases were refused before: a worker that refuses its request has failed.
        status = "failed" if ended.status in ("ok", "refused") else ended.status
        error = (ended.error or "the process succeeded, but wrote no run folder").removeprefix("error: ")
        return CaseOutcome(status=status, error=error, seconds=ended.seconds)
    return CaseOutcome(
        status="ok", seconds=ended.seconds, run=out / RUN, judged=result["judged"], complete=result["complete"]
    )


def _read(out: Path) -> CaseResult | None:
    try:
        result: CaseResult = read_json(out / MADE)
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) else None
