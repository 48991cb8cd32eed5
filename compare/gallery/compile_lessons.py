"""Compile the gallery's programs in few processes: one lowers for each arm; a failure affects only its program."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from compare.gallery.lesson_types.lesson import TORCH_SHARDY, Lesson
from compare.gallery.lesson_types.lesson_result import LessonResult
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.files import read_file
from compare.run import arms, tasks
from compare.run.cache import Cache, file_digest, make_key, sources_digest
from compare.run.processes import Command, Pool, ProcessEnd
from compare.run.scheduler import cores
from meshes.process.documents import read_json

BATCH = 36
"""Programs per compile process: its start costs two seconds."""

MAX_DEATHS = 3
"""Deaths of processes of one arm, or of the compiler, after which the remaining programs fail too."""

TIMEOUT_S = 900.0
FAILED, ABOUT, PROGRAM, HLO = "failed.txt", "about.json", "program.mlirbc", "optimized.hlo.gz"


@dataclass(slots=True, eq=False)
class _Job:
    """One program and its state."""

    lesson: Lesson
    program: str
    lowered: Path | None = None
    compiled: Path | None = None
    status: str = ""
    error: str = ""

    @property
    def arm(self) -> arms.Arm:
        return arms.find_arm(self.program.partition("/")[0])

    @property
    def partitioner(self) -> str:
        return self.program.partition("/")[2]

    @property
    def is_rewritten(self) -> bool:
        """PyTorch/XLA knows GSPMD only; its GSPMD annotations are rewritten for Shardy before compilation."""
        return self.program == TORCH_SHARDY

    def asked(self) -> dict[str, object]:
        """The request to the arm."""
        lesson = self.lesson
        return {
            "pattern": lesson.pattern,
            "partitioner": "gspmd" if self.is_rewritten else self.partitioner,
            "axes": dict(lesson.mesh),
            "arrays": {name: {"shape": lesson.shape(name), "dtype": lesson.dtype(name)} for name in lesson.takes},
        }

    def compiling(self) -> dict[str, object]:
        """The compile request, without the program."""
        assert self.lowered is not None
        options: dict[str, object] = read_json(self.lowered / ABOUT)["compile_options"]
        if not self.is_rewritten:
            return {"compile_options": options}
        return {"compile_options": options | {"use_shardy_partitioner": True}, "axes": dict(self.lesson.mesh)}

    def end(self, status: str, error: str) -> None:
        self.status, self.error = status, error


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Jobs of one process, all for one topology: lowering for one arm, or compiling for any."""

    kind: str
    """The arm's name, or `compile`."""
    jobs: tuple[_Job, ...]


def build_each(
    programs: Sequence[tuple[Lesson, str]], *, cache: Cache, notify: Callable[[str], None]
) -> list[LessonResult]:
    """The named program of each lesson, in their order; a program that failed has its error.

    `notify` receives one line at each change.
    """
    jobs = [_Job(lesson, program) for lesson, program in programs]
    _Build(jobs, cache=cache, notify=notify).run()
    return [_made(job) for job in jobs]


class _Build:
    """Where each job is."""

    def __init__(self, jobs: list[_Job], *, cache: Cache, notify: Callable[[str], None]):
        self.jobs, self.cache, self.notify, self.at_once = jobs, cache, notify, max(2, cores())
        self.waiting: list[_Batch] = []
        self.running: dict[_Batch, Path] = {}
        self.deaths: dict[str, int] = {}
        self.keys: dict[_Job, str] = {}
        """Job -> cache key of its lowered program."""

    def run(self) -> None:
        for name in dict.fromkeys(job.arm.name for job in self.jobs):
            arm_jobs = [job for job in self.jobs if job.arm.name == name]
            if line := arms.find_arm(name).missing():
                for job in arm_jobs:
                    job.end("not-installed", line)
                self.notify(line)
                continue
            self.keys |= {job: _lower_key(job) for job in arm_jobs}
            first = {self.keys[job]: job for job in reversed(arm_jobs)}
            for job in arm_jobs:
                job.lowered = self.cache.find("pattern", self.keys[job])
            self._wait(name, [job for job in reversed(first.values()) if not job.lowered])
        self._compile([job for job in self.jobs if job.lowered])
        # The slowest start begins first.
        self.waiting.sort(key=lambda batch: -arms.find_arm(batch.kind).start_s if batch.kind != "compile" else 0)
        try:
            with Pool[_Batch](lambda batch, stage, seconds: None) as pool:
                while self.waiting or len(pool):
                    while self.waiting and len(pool) < self.at_once:
                        self._start(pool, self.waiting.pop(0))
                    for batch, ended in pool.wait().items():
                        self._finish(batch, ended)
        finally:
            for folder in self.running.values():
                shutil.rmtree(folder, ignore_errors=True)

    def _wait(self, kind: str, jobs: Sequence[_Job]) -> None:
        size = BATCH if kind == "compile" else max(1, len(jobs))
        for topology in dict.fromkeys(job.lesson.topology for job in jobs):
            same_topology = [job for job in jobs if job.lesson.topology == topology]
            for begin in range(0, len(same_topology), size):
                self.waiting.append(_Batch(kind, tuple(same_topology[begin : begin + size])))

    def _compile(self, jobs: Sequence[_Job]) -> None:
        """Take programs from the cache; queue the others."""
        for job in jobs:
            job.compiled = self.cache.find("compiled-pattern", _compile_key(job))
        self._wait("compile", [job for job in jobs if not job.compiled])

    def _start(self, pool: Pool[_Batch], batch: _Batch) -> None:
        folder = self.running[batch] = self.cache.begin()
        if batch.kind == "compile":
            programs = []
            for number, job in enumerate(batch.jobs):
                assert job.lowered is not None
                out = folder / str(number)
                out.mkdir()
                programs.append({"program": str(job.lowered / PROGRAM), "out": str(out), **job.compiling()})
            module, request = (
                "compare.compile.workers.compile_batch",
                {"topology": batch.jobs[0].lesson.topology, "programs": programs},
            )
            words: tuple[str, ...] = ()
        else:
            module, words = f"{arms.find_arm(batch.kind).module}.patterns", (str(folder),)
            request = {"programs": [job.asked() for job in batch.jobs]}
        what = f"{len(batch.jobs)} program{'s' if len(batch.jobs) > 1 else ''}"
        self.notify(f"compile: {what}" if batch.kind == "compile" else f"{_title(batch.kind)}: tracing {what}")
        (folder / "request.json").write_text(json.dumps(request))
        path = os.pathsep.join([str(tasks.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        command = Command(
            argv=[sys.executable, "-P", "-m", module, str(folder / "request.json"), *words],
            stderr=folder / "stderr",
            environment=os.environ | tasks.QUIET | {"PYTHONPATH": path},
            timeout_s=TIMEOUT_S,
        )
        pool.start(batch, command)

    def _finish(self, batch: _Batch, ended: ProcessEnd) -> None:
        """Keep the results; retry the programs that the process did not reach, without the one that killed it."""
        folder, left = self.running.pop(batch), []
        result = HLO if batch.kind == "compile" else ABOUT
        for number, job in enumerate(batch.jobs):
            out = folder / str(number)
            if (out / FAILED).exists():
                job.end("failed", (out / FAILED).read_text(encoding="utf-8").strip())
            elif (out / result).exists():
                self._keep(job, out, kind=batch.kind)
            else:
                left.append(job)
        shutil.rmtree(folder, ignore_errors=True)
        self.notify(f"{_title(batch.kind)}: {len(batch.jobs) - len(left)} done in {ended.seconds:.1f} s")
        if left:
            self._again(batch.kind, left, ended)
        if batch.kind != "compile":
            self._compile(self._lowered(batch))

    def _lowered(self, batch: _Batch) -> list[_Job]:
        """Its successful jobs, each with those that need the same program for another partitioner."""
        lowered = []
        for job in batch.jobs:
            alike = [twin for twin in self.jobs if self.keys.get(twin) == self.keys[job]]
            for twin in alike:
                twin.lowered, twin.status, twin.error = job.lowered, job.status, job.error
            lowered += alike if job.lowered else []
        return lowered

    def _keep(self, job: _Job, out: Path, *, kind: str) -> None:
        if kind == "compile":
            job.compiled = self.cache.keep(out, kind="compiled-pattern", key=_compile_key(job))
        else:
            job.lowered = self.cache.keep(out, kind="pattern", key=self.keys[job])

    def _again(self, kind: str, left: list[_Job], ended: ProcessEnd) -> None:
        self.deaths[kind] = self.deaths.get(kind, 0) + 1
        given_up = left if ended.status in ("refused", "ok") or self.deaths[kind] >= MAX_DEATHS else left[:1]
        status = "failed" if ended.status == "ok" else ended.status
        for job in given_up:
            job.end(status, ended.error or "its process ended well, and wrote nothing")
            self.notify(f"{job.lesson.name}, {job.program}: {status}: {job.error}")
        self._wait(kind, left[len(given_up) :])


def _lower_key(job: _Job) -> str:
    request = job.asked() | {
        "arm": job.arm.name,
        "versions": _versions(job.arm.packages),
        "sources": tasks.arm_sources(job.arm.module),
    }
    return make_key({**request, **tasks.describe_environment()})


def _compile_key(job: _Job) -> str:
    assert job.lowered is not None
    made_by = {
        "versions": _versions(arms.COMPILER),
        "sources": _compiler_sources(),
    }
    request = {"program": file_digest(job.lowered / PROGRAM), "topology": job.lesson.topology, **job.compiling()}
    return make_key({**request, **made_by, **tasks.describe_environment()})


def _title(kind: str) -> str:
    return kind if kind == "compile" else arms.find_arm(kind).title


@once
def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    return arms.read_versions(packages)


@once
def _compiler_sources() -> str:
    return sources_digest(*(tasks.ROOT / source for source in tasks.REWRITER_SOURCES))


def _made(job: _Job) -> LessonResult:
    about = read_json(job.lowered / ABOUT) if job.lowered else {}
    hlo = job.compiled / HLO if job.compiled else None
    return LessonResult(
        lesson=job.lesson,
        program=job.program,
        status="ok" if hlo else job.status,
        error=job.error,
        source=about.get("source", ""),
        takes=tuple(tuple(each["axes"]) for each in about.get("takes", ())),
        gives=tuple(tuple(each["axes"]) for each in about.get("gives", ())),
        versions=about.get("versions", {}) | _versions(arms.COMPILER),
        rows=tuple(collectives(read_file(hlo), job.lesson.mesh)) if hlo else (),
        compiled=hlo,
    )
