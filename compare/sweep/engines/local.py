"""The engine for one machine: some processes, each of which runs one case after another."""

import json
import os
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from time import monotonic
from uuid import uuid4

from compare.run.processes import Command, Pool, ProcessEnd
from compare.run.scheduler import cores
from compare.run.tasks import ROOT
from compare.sweep.engines.worker import DONE, MADE, REQUEST, RUN, CaseRequest, CaseResult
from meshes.process.documents import read_json

WORKER = "compare.sweep.engines.worker"
MOST_CASES = 16
"""Cases that a process runs before another takes its place, so that its memory stays bounded."""


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
"""Receives the name of a case's run folder, its stage, and the seconds since it began."""


@dataclass(slots=True, eq=False)
class _Worker:
    """A process that runs cases, one after another."""

    command: Command
    cases: int = 0
    """How many it has been given."""
    task: CaseTask | None = None
    """The one at work; None between two."""
    out: Path = Path()
    """The folder of its request, its run folder and its result."""
    begun: float = 0.0
    is_done: bool = False
    """Whether it has said so; its result is written before."""


def run_cases(
    tasks: Sequence[CaseTask], *, at_once: int | None, scratch: Path, notify: Notify, programs: int | None = None
) -> Generator[tuple[CaseTask, CaseOutcome], None, None]:
    """Run these tasks, `at_once` at a time (default: the number of cores), and yield each as it ends.

    The cases share `at_once` processes, since starting one takes longer than judging a case; a case that fails ends
    its process, and the next case has a new one.  Closing the generator early kills them.
    scratch: a folder for unfinished run folders.
    programs: how many programs of a case are compiled at a time; by default the cores divided by the cases.
    """
    at_once = at_once or cores()
    programs = programs or max(1, cores() // max(1, min(at_once, len(tasks))))
    waiting, workers = list(tasks), list[_Worker]()
    with Pool[_Worker](lambda worker, stage, _: _notify(worker, stage, notify)) as pool:
        while waiting or any(worker.task for worker in workers):
            while waiting and sum(worker.task is not None for worker in workers) < at_once:
                worker = next((worker for worker in workers if worker.task is None), None)
                if worker is None:
                    worker = _Worker(_command(scratch))
                    pool.start(worker, worker.command)
                    workers.append(worker)
                _begin(worker, waiting.pop(0), scratch, programs=programs)
                pool.send(worker, json.dumps(str(worker.out)))
            ended = pool.wait()
            for worker in list(workers):
                if worker.task and (worker in ended or worker.is_done):
                    task, worker.task = worker.task, None
                    yield task, _read_outcome(worker, ended.get(worker))
                if worker in ended:
                    workers.remove(worker)
                elif worker.task is None and worker.cases >= MOST_CASES:
                    pool.end_requests(worker)
                    workers.remove(worker)


def _notify(worker: _Worker, stage: str, notify: Notify) -> None:
    worker.is_done = stage == DONE
    if worker.task and not worker.is_done:
        notify(worker.task.name, stage or "start", monotonic() - worker.begun)


def _command(scratch: Path) -> Command:
    scratch.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return Command(
        argv=[sys.executable, "-P", "-m", WORKER],
        stderr=scratch / f"{uuid4().hex}.stderr",
        environment=os.environ | {"PYTHONPATH": path},
        timeout_s=inf,  # the workers that it starts have deadlines
        requests=True,
    )


def _begin(worker: _Worker, task: CaseTask, scratch: Path, *, programs: int) -> None:
    """Write the request of its next case."""
    worker.task, worker.begun, worker.out, worker.is_done = task, monotonic(), scratch / uuid4().hex, False
    worker.cases += 1
    worker.out.mkdir(parents=True)
    (worker.out / REQUEST).write_text(json.dumps({**task.request, "at_once": programs}))


def _read_outcome(worker: _Worker, ended: ProcessEnd | None) -> CaseOutcome:
    """ended: of its process, if it has."""
    seconds, result = monotonic() - worker.begun, _read(worker.out)
    if result is None:
        # Impossible cases were refused before: a worker that refuses its request has failed.
        status = "failed" if ended is None or ended.status in ("ok", "refused") else ended.status
        error = (ended.error if ended else "") or "the process wrote no run folder"
        return CaseOutcome(status=status, error=error.removeprefix("error: "), seconds=seconds)
    return CaseOutcome(
        status="ok", seconds=seconds, run=worker.out / RUN, judged=result["judged"], complete=result["complete"]
    )


def _read(out: Path) -> CaseResult | None:
    try:
        result: CaseResult = read_json(out / MADE)
    except (OSError, ValueError):
        return None
    return result if isinstance(result, dict) else None
