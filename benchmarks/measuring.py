"""What the benchmarks share: wall time and memory of a command and all its processes, and tables of a page."""

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from compare.run.tasks import Task

POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Measured:
    """One command: its wall time, and the largest sum of resident memory over all its processes."""

    seconds: float
    peak_bytes: int
    cpu_seconds: float
    """CPU time of all its processes: independent of other work on the machine."""


def measure(command: Sequence[str], *, environment: dict[str, str] | None = None) -> Measured:
    """Run a command to its end.  Raises `CalledProcessError` when it fails."""
    begun, used = time.monotonic(), cpu_seconds()
    process = subprocess.Popen(
        command, env=os.environ | (environment or {}), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    peak = 0
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(process.stderr or ()))
    reader.start()
    while process.poll() is None:
        peak = max(peak, _resident(process.pid))
        time.sleep(POLL_S)
    reader.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, list(command), stderr="".join(said[-20:]))
    return Measured(time.monotonic() - begun, peak, cpu_seconds() - used)


def measure_task(task: Task, out: Path) -> Measured:
    """Run a step of a case into `out`, a new folder, as `compare.run` does it."""
    out.mkdir(parents=True)
    request = out / "request.json"
    request.write_text(task.request)
    return measure(task.argv(request, out), environment=task.environment())


def two_at_a_time(works: Sequence[Callable[[], object]]) -> float:
    """Seconds that it takes to do all of these, two at a time, in this order."""
    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(work) for work in works]:
            future.result()
    return time.monotonic() - begun


def fill_tables(page: str, tables: Mapping[str, str], *, maker: str) -> str:
    """A page in Markdown with each table made again, between the two comments of its name.  maker: the script."""
    for name, table in tables.items():
        begin, end = f"<!-- {name}: made by {maker} -->", f"<!-- {name}: end -->"
        before, after = page.split(begin)[0], page.split(end)[1]
        page = f"{before}{begin}\n{table}\n{end}{after}"
    return page


def python(*words: str) -> list[str]:
    return [sys.executable, "-m", *words]


def cpu_seconds() -> float:
    """Of every process that this one has started and that has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident(root: int) -> int:
    """Bytes that a process and its descendants hold."""
    total = 0
    try:
        root_process = psutil.Process(root)
        for process in (root_process, *root_process.children(recursive=True)):
            with suppress(psutil.Error):  # it ended while we looked
                total += process.memory_info().rss
    except psutil.Error:
        pass
    return total
