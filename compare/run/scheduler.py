"""Lower and compile all programs of a case, some at a time; a failure affects only its own cell."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compare.report.programs import NOT_OFFERED, REFUSED
from compare.report.witnesses import WITNESSES
from compare.run import tasks
from compare.run.arms import Arm, Cell
from compare.run.cache import VARIABLE, Cache
from compare.run.choices import DEFAULT_CONTROLS, TIMEOUT_S
from compare.run.errors import WorkError
from compare.run.processes import Command, Pool, ProcessEnd, read_tail
from compare.run.results import NOT_INSTALLED, Event, Outcome
from compare.run.tasks import Task
from meshes.assignment import assign_chips
from meshes.case import Case

FULL_BYTES = 1_000_000
"""With less free space than this the disk counts as full."""
REQUEST, STDERR, PROCESS = "request.json", "stderr", "process.json"
"""Files in a step's folder; the last, with seconds and peak memory of the process, is kept."""


@dataclass(slots=True, eq=False)
class _Job:
    """One cell in progress: the folders of its finished steps."""

    arm: Arm
    cell: Cell
    case: Case
    passes: bool
    folders: dict[str, Path] = field(default_factory=dict)
    cached: list[str] = field(default_factory=list)

    def step(self) -> Task | None:
        """The next step, or `None`."""
        return tasks.next_task(self.cell, case=self.case, arm=self.arm, folders=self.folders, passes=self.passes)


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """A step of a job that must be run."""

    job: _Job
    step: Task

    def urgency(self) -> tuple[bool, bool, int, bool]:
        """Sort key, smallest first: measurements last, first steps before compiles, slow arms first."""
        begins = self.step.name != "compile"
        return (bool(self.step.platform), not begins, -self.job.arm.start_s, self.job.case.phase != "prefill")


def run_case(
    case: Case,
    *,
    arms: Sequence[Arm],
    cache: Cache,
    notify: Callable[[Event], None],
    timeout_s: float = TIMEOUT_S,
    at_once: int | None = None,
    controls: Sequence[str] = DEFAULT_CONTROLS,
    libtpu: str = "",
    passes: bool = True,
    execute: str = "",
    witnesses: Sequence[str] = (),
) -> list[Outcome]:
    """Run every cell of these arms, `at_once` processes at a time (default: the cores, at least two).

    Returns one outcome for each, in order of arm, phase and cell.  Raises `MeshError` before anything starts when
    the mesh does not fit the chips; an interrupt ends every worker and leaves no files.
    `controls`: words of `arms.CONTROLS`; `libtpu`: the version of the control of this name; `passes`: whether the
    compiles record the program between libtpu's passes.
    `witnesses`: names in `arms.WITNESSES`.
    `execute`: also run each arm's program on `cpu` or `tpu`, and measure it.
    """
    cells = [
        (arm, phase, cell)
        for arm in arms
        for phase in case.phases
        for cell in arm.cells(
            case.at(phases=(phase,)), controls=controls, libtpu=libtpu, execute=execute, witnesses=witnesses
        )
    ]
    return run_cells(case, cells, cache=cache, notify=notify, timeout_s=timeout_s, at_once=at_once, passes=passes)


def run_cells(
    case: Case,
    cells: Sequence[tuple[Arm, str, Cell]],
    *,
    cache: Cache,
    notify: Callable[[Event], None],
    timeout_s: float = TIMEOUT_S,
    at_once: int | None = None,
    passes: bool = True,
) -> list[Outcome]:
    """The same for given cells (arm, phase, cell); one outcome for each, in this order."""
    assign_chips(case.plan)
    jobs = [_Job(arm, cell, cell.case_of(case.at(phases=(phase,))), passes) for arm, phase, cell in cells]
    return _Run(jobs, cache=cache, notify=notify, timeout_s=timeout_s, at_once=at_once or max(2, cores())).outcomes()


class _Run:
    """The jobs of one run, and their state."""

    def __init__(
        self, jobs: list[_Job], *, cache: Cache, notify: Callable[[Event], None], timeout_s: float, at_once: int
    ):
        self.jobs, self.cache, self.notify = jobs, cache, notify
        self.timeout_s, self.at_once = timeout_s, at_once
        self.waiting: list[_Task] = []
        self.begun: dict[_Task, Path] = {}
        self.after: dict[tuple[str, str], list[_Job]] = {}
        """(kind, key) of a running step -> other jobs that need the same results."""
        self.ended: dict[_Job, Outcome] = {}

    def outcomes(self) -> list[Outcome]:
        missing = {job.arm.name: job.arm.missing() for job in self.jobs}
        for job in self.jobs:
            lowering = job.cell.lowering
            if line := missing[job.arm.name] or (lowering.missing() if lowering else ""):
                self._end(job, NOT_INSTALLED, line)
            else:
                self._next(job)
        try:
            with Pool[_Task](lambda task, stage, seconds: self._notify(task, stage or "start", seconds)) as pool:
                while self.waiting or len(pool):
                    self._fill(pool)
                    for task, ended in pool.wait().items():
                        self._finish(task, ended)
        except BaseException:
            for job in self.jobs:
                _remove_measurements(job)
            raise
        finally:
            for folder in self.begun.values():
                shutil.rmtree(folder, ignore_errors=True)
        return [self.ended[job] for job in self.jobs]

    def _next(self, job: _Job) -> None:
        """Take cached results of a job's next steps; queue the first step that must be run."""
        try:
            while step := job.step():
                entry = self.cache.find(step.kind, step.key, results=step.results) if step.key else None
                if not entry:
                    self._wait(_Task(job, step))
                    return
                job.folders[step.name] = entry
                job.cached.append(step.name)
                self._notify(_Task(job, step), "cached", 0)
        except WorkError as error:
            self._end(job, "failed", str(error))
        else:
            self._end(job, "ok", "")

    def _wait(self, task: _Task) -> None:
        """Queue a task, or let its job wait for another job's step with the same key."""
        same = (task.step.kind, task.step.key)
        if task.step.key and any(same == (other.step.kind, other.step.key) for other in (*self.waiting, *self.begun)):
            self.after.setdefault(same, []).append(task.job)
        else:
            self.waiting.append(task)

    def _fill(self, pool: Pool[_Task]) -> None:
        self.waiting.sort(key=_Task.urgency)
        while self.waiting and len(pool) < self.at_once:
            measures = self.waiting[0].step.platform or any(task.step.platform for task in self.begun)
            if measures and len(pool):
                return
            task = self.waiting.pop(0)
            try:
                out = self.begun[task] = self.cache.begin()
                (out / REQUEST).write_text(task.step.request)
                command = Command(
                    argv=task.step.argv(out / REQUEST, out),
                    stderr=out / STDERR,
                    environment=task.step.environment(),
                    timeout_s=self.timeout_s,
                )
                pool.start(task, command)
            except OSError as error:
                self._fail(task, "failed", f"cannot start it in {self.cache.root}: {error.strerror}")
            else:
                self._notify(task, "start", 0)

    def _finish(self, task: _Task, ended: ProcessEnd) -> None:
        out, step = self.begun[task], task.step
        if ended.status != "ok":
            error = tasks.explain(ended, case=task.job.case)
            offered = not ended.reason or ended.reason.kind != NOT_OFFERED
            # A witness is one program more: where it has a reason, its case is none for it.
            status = REFUSED if task.job.cell.name in WITNESSES and ended.reason else ended.status
            self._fail(task, status, error, seconds=ended.seconds, offered=offered)
        elif absent := [name for name in step.results if not any(out.glob(name))]:
            error = f"{step.module} ended well, but wrote no {' and no '.join(absent)}"
            self._fail(task, "failed", error, seconds=ended.seconds)
        else:
            self._keep(task, out, ended)

    def _keep(self, task: _Task, out: Path, ended: ProcessEnd) -> None:
        step = task.step
        try:
            for name in (REQUEST, STDERR):
                (out / name).unlink()
            process = {"process_s": round(ended.seconds, 3), "peak_bytes": ended.peak_bytes}
            (out / PROCESS).write_text(json.dumps(process))
            folder = self.cache.keep(out, kind=step.kind, key=step.key) if step.key else out
        except OSError as error:
            self._fail(task, "failed", f"cannot keep its results: {error.strerror}", seconds=ended.seconds)
            return
        task.job.folders[step.name] = folder
        del self.begun[task]
        self._notify(task, "done", ended.seconds)
        for job in (task.job, *self._dependents(task)):
            self._next(job)

    def _fail(self, task: _Task, status: str, error: str, *, seconds: float = 0, offered: bool = True) -> None:
        out = self.begun.pop(task, None)
        lines = [tasks.strip_prefixes(line, task.job.arm) for line in (read_tail(out / STDERR) if out else [])]
        line = tasks.strip_prefixes(error, task.job.arm) + self._full_disk()
        for job in (task.job, *self._dependents(task)):
            impossible = bool(job.cell.control) and not offered
            ended = NOT_OFFERED if impossible else status
            self._end(job, ended, line, step=task.step.name, stderr=[] if impossible else lines, seconds=seconds)
        if out:
            shutil.rmtree(out, ignore_errors=True)

    def _dependents(self, task: _Task) -> list[_Job]:
        """The jobs that wait for the results of this task."""
        return self.after.pop((task.step.kind, task.step.key), [])

    def _full_disk(self) -> str:
        """A hint at a full disk, which a worker often cannot report: its stderr is a file there too."""
        try:
            full = shutil.disk_usage(self.cache.root).free < FULL_BYTES
        except OSError:
            return ""
        return f" (the disk of {self.cache.root} is full; {VARIABLE} names another)" if full else ""

    def _end(
        self, job: _Job, status: str, error: str, *, step: str = "", stderr: Sequence[str] = (), seconds: float = 0
    ) -> None:
        outcome = self.ended[job] = Outcome(
            **_identity(job),
            status=status,
            error=error,
            step=step,
            stderr=tuple(stderr),
            cached=tuple(job.cached),
            program=job.folders.get("lower"),
            rewritten=job.folders.get("rewrite"),
            compiled=job.folders.get("compile"),
            profile=job.folders.get("profile", job.folders.get("execute")),
            executed=job.case if job.cell.platform else None,
        )
        if status != "ok":
            self.notify(Event(**_identity(job), step=outcome.step, stage=status, seconds=seconds, error=error))

    def _notify(self, task: _Task, stage: str, seconds: float) -> None:
        self.notify(Event(**_identity(task.job), step=task.step.name, stage=stage, seconds=round(seconds, 3)))


def _remove_measurements(job: _Job) -> None:
    """Remove a job's measurements, which are not cached."""
    for name in ("profile", "execute"):
        if name in job.folders:
            shutil.rmtree(job.folders[name], ignore_errors=True)


def _identity(job: _Job) -> dict[str, str]:
    return {"arm": job.arm.name, "phase": job.case.phase, "cell": job.cell.name}


def cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
