"""Workers: each is a process in its own session, so that a crash affects no other.

The pool kills its processes when it is left, in any way; if the parent is killed, the kernel kills the children
(Linux).
"""

import os
import re
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Generic, Self, TypeVar

from meshes.process.documents import parse_json
from meshes.process.last_word import DOES_NOT_FIT, NOT_OFFERED
from meshes.process.log import log
from meshes.process.one_line import one_line

K = TypeVar("K")

TAIL_BYTES = 64 * 1024
LINE_LENGTH = 400

_LOG = re.compile(r"[IWEF]\d{4} [\d:.]+\s+\d+ \S+?\] ?")
"""The head of an XLA log line: severity, date, time, thread, file and line."""
_NOISE = re.compile(
    r"[IWE]\d{4} \d\d:|\s*@ +0x|\s*\*\*\*|https://symbolize|WARNING: |=== Source Location|learning/\S+:\d+$"
    r"|Fatal Python error: Aborted|Current thread 0x|Thread 0x|\s+File \"|Extension modules: |\s+\^+\s*$"
)
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
TICK_S = 0.1
LONGEST_LINE = 64 * 1024
STATUSES = {0: "ok", 2: "refused"}
_GUARD = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; it outlives exec
if os.getppid() == int(sys.argv[1]):  # else the parent died before the call
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Run by the child before it execs its program: prctl must be called in the child.

A separate process, not code after a fork: the parent may have threads, whose locks a forked copy would never release.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run, and where its stderr goes."""

    argv: Sequence[str]
    stderr: Path
    environment: Mapping[str, str]
    timeout_s: float
    requests: bool = False
    """Whether it serves requests, lines on its stdin, until these end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A machine-readable reason of a worker without result: `not offered` or `does not fit`."""

    kind: str
    needed_bytes: int = 0
    """Memory that a program that does not fit needs on one device."""
    available_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    """How a worker ended."""

    status: str
    """`ok`; `failed` (exit 1); `refused` (exit 2); `crashed`: ended by a signal that we did not send (out of memory,
    an abort); `timeout`: killed by us at the time limit."""
    error: str
    """One line; empty on success."""
    seconds: float
    peak_bytes: int
    """Peak resident memory; on Linux it includes the parent's at the start."""
    reason: Reason | None = None


class _Worker:
    """One running process: reads its progress, and waits for its end with a deadline."""

    def __init__(self, command: Command):
        self.command, self.begun, self.stage = command, monotonic(), ""
        self.reason: Reason | None = None
        self._unread = b""
        self.stdout, writing = os.pipe()
        os.set_blocking(self.stdout, False)
        stdin = subprocess.PIPE if command.requests else subprocess.DEVNULL
        emptied = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND  # appended to, so that `send` can empty it
        stderr_file = os.open(command.stderr, emptied, 0o666)
        with os.fdopen(stderr_file, "wb") as stderr, os.fdopen(writing, "wb") as stdout:
            self.process = subprocess.Popen(
                _guarded(command.argv),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=command.environment,
                start_new_session=True,
            )
        log().debug("process %d starts: %s", self.process.pid, " ".join(command.argv[1:4]))
        self.end = os.pidfd_open(self.process.pid) if hasattr(os, "pidfd_open") else -1
        """A pidfd, readable once the process has ended (Linux); elsewhere the end is polled."""

    @property
    def seconds(self) -> float:
        return monotonic() - self.begun

    def read(self) -> int:
        """Read a chunk of its output: the number of bytes, 0 at the end, -1 if none is available.

        Lines that are not of the protocol are dropped.
        """
        try:
            chunk = os.read(self.stdout, LONGEST_LINE)
        except BlockingIOError:
            return -1
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        self._unread = self._unread[-LONGEST_LINE:]
        for line in lines:
            message = _message(line)
            self.stage = _stage(message) or self.stage
            self.reason = _reason(message) or self.reason
        return len(chunk)

    def ended(self) -> ProcessEnd | None:
        """Its end, if it exited or timed out; its process group is killed with it."""
        timed_out = self.seconds > self.command.timeout_s
        if not timed_out and not os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return None
        seconds, (status, peak_bytes) = self.seconds, self.kill()
        while self.read() > 0:
            pass
        log().debug("process %d ends: status %d, %.1f s, %d MB", self.process.pid, status, seconds, peak_bytes >> 20)
        return ProcessEnd(
            seconds=seconds, peak_bytes=peak_bytes, reason=self.reason, **self._status(status, timed_out=timed_out)
        )

    def kill(self) -> tuple[int, int]:
        """Kill its process group, then reap it (so that the pid is not reused before): (exit status, peak bytes)."""
        with suppress(ProcessLookupError, PermissionError):  # macOS raises the latter for a group that has ended
            os.killpg(self.process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        return self.process.returncode, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def send(self, line: str) -> None:
        """Write a line to its stdin, and forget what it said before; one that has died cannot read it."""
        assert self.process.stdin
        self.stage = ""
        os.truncate(self.command.stderr, 0)
        with suppress(BrokenPipeError):
            self.process.stdin.write(f"{line}\n".encode())
            self.process.stdin.flush()

    def end_requests(self) -> None:
        """Close its stdin."""
        if self.process.stdin:
            with suppress(BrokenPipeError):
                self.process.stdin.close()

    def close(self) -> None:
        self.end_requests()
        for descriptor in (self.stdout, self.end):
            if descriptor >= 0:
                os.close(descriptor)

    def _status(self, status: int, *, timed_out: bool) -> dict[str, str]:
        if status == 0:
            return {"status": "ok", "error": ""}
        reason = find_last_word(read_tail(self.command.stderr))
        if timed_out and status == -signal.SIGKILL:
            stage = f" in {self.stage}" if self.stage else ""
            return {"status": "timeout", "error": f"killed after {self.command.timeout_s:g} s{stage}"}
        if status < 0:
            memory = " (out of memory?)" if status == -signal.SIGKILL else ""
            death = f"died of {_signal(-status)}{memory}"
            return {"status": "crashed", "error": f"{death}: {reason}" if reason else death}
        return {"status": STATUSES.get(status, "failed"), "error": reason or f"exit status {status}, nothing on stderr"}


class Pool(Generic[K]):
    """The running workers, by keys of the caller."""

    def __init__(self, notify: Callable[[K, str, float], None]):
        """`notify` is called with key, stage and seconds since the start, for every worker at each wait."""
        self._notify = notify
        self._workers: dict[K, _Worker] = {}
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()
        for worker in self._workers.values():
            worker.kill()
            worker.close()

    def start(self, key: K, command: Command) -> None:
        worker = self._workers[key] = _Worker(command)
        self._selector.register(worker.stdout, selectors.EVENT_READ, worker)
        if worker.end >= 0:
            self._selector.register(worker.end, selectors.EVENT_READ)

    def send(self, key: K, line: str) -> None:
        """Give a worker its next request; its stage and its stderr begin anew."""
        self._workers[key].send(line)

    def end_requests(self, key: K) -> None:
        """Give it no more: it ends when it has served the last."""
        self._workers[key].end_requests()

    def wait(self) -> dict[K, ProcessEnd]:
        """Wait for a tick or an event; returns the workers that ended, which leave the pool."""
        for ready, _ in self._selector.select(TICK_S):
            if ready.data and ready.data.read() == 0:
                self._selector.unregister(ready.fd)
        ended_workers: dict[K, ProcessEnd] = {}
        for key, worker in list(self._workers.items()):
            self._notify(key, worker.stage, worker.seconds)
            if ended := worker.ended():
                ended_workers[key] = ended
                self._forget(key)
        return ended_workers

    def _forget(self, key: K) -> None:
        worker = self._workers.pop(key)
        for descriptor in (worker.stdout, worker.end):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        worker.close()


def _guarded(argv: Sequence[str]) -> Sequence[str]:
    """The command, killed together with this process where the system supports it."""
    if sys.platform != "linux":
        return argv
    return [sys.executable, "-I", "-S", "-c", _GUARD, str(os.getpid()), *argv]


def _message(line: bytes) -> Mapping[str, object]:
    """A JSON object of the protocol; empty for any other line."""
    try:
        message = parse_json(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _stage(message: Mapping[str, object]) -> str:
    stage = message.get("stage")
    return stage[:40] if isinstance(stage, str) else ""


def _reason(message: Mapping[str, object]) -> Reason | None:
    kind, needed, available = (message.get(name) for name in ("reason", "needed_bytes", "available_bytes"))
    if kind == DOES_NOT_FIT and isinstance(needed, int) and isinstance(available, int):
        return Reason(kind=DOES_NOT_FIT, needed_bytes=needed, available_bytes=available)
    return Reason(kind=NOT_OFFERED) if kind == NOT_OFFERED else None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def read_tail(path: Path) -> list[str]:
    """The last lines, at most 64 KiB, without control characters."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return [_CONTROL.sub("", line).rstrip() for line in text.splitlines()]


def find_last_word(lines: list[str]) -> str:
    """The line with the reason of a failure: XLA's failed check if there is one, else the last that is not noise."""
    fatal = [line for line in lines if line.startswith("F") and _LOG.match(line)]
    candidates = fatal[:1] or [line for line in lines if line.strip() and not _NOISE.match(line)][-1:]
    return one_line(_LOG.sub("", candidates[0]), most=LINE_LENGTH) if candidates else ""
