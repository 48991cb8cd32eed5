"""A second process that draws a report's figures: drawing takes half of a warm run, and its import a tenth.

`python -m compare.render.report.figure_process` reads pickled requests from stdin and writes pickled pictures to
stdout.  Both ends are in this file.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import zip_longest
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from compare.render.errors import ViewError
from compare.render.picture import Drawing, Picture, draw_all
from compare.render.time.timeline_strip import Strip
from compare.render.time.timing_section import ProgramTiming
from compare.report.model.report import Report
from meshes.process.log import log
from meshes.process.one_line import one_line

Pictures = Future[list[Picture]]
"""`result()` raises `ViewError` where they could not be drawn."""

Keep = Callable[[object, Callable[[], list[Picture]]], list[Picture]]
"""(request, what draws it) -> its pictures, which may have been drawn before."""

COMMAND = (sys.executable, "-m", "compare.render.report.figure_process")
_FORK = get_context("fork")
_BYTES, _TIMES = "bytes", "times"


class FigureProcess:
    """Draws figures in parallel with its caller, one request after another.

    keep: may know the pictures of a request; else the process starts now, since it imports its libraries for a second.
    """

    def __init__(self, keep: Keep | None = None) -> None:
        self._keep = keep
        self._process = None if keep else _start()
        self._thread = ThreadPoolExecutor(1)
        self._is_open = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process; unfinished drawings are discarded."""
        self._is_open = False
        if self._process:
            self._process.kill()
        self._thread.shutdown()
        if self._process:
            self._process.kill()
            self._process.communicate()

    def draw_bytes(self, report: Report) -> Pictures:
        """Start drawing the figures of bytes: the verdicts, and the traffic between devices."""
        return self._thread.submit(self._draw, (_BYTES, report.to_json()), "the figures of bytes")

    def draw_times(
        self, phases: Mapping[str, Sequence[ProgramTiming]], *, num_devices: int, strips: Sequence[Strip]
    ) -> Pictures:
        """Start drawing the figures of time and of energy."""
        return self._thread.submit(self._draw, (_TIMES, phases, num_devices, list(strips)), "the figures of time")

    def _draw(self, request: tuple[object, ...], what: str) -> list[Picture]:
        draw = partial(self._draw_anew, request, what)
        return self._keep(request, draw) if self._keep else draw()

    def _draw_anew(self, request: tuple[object, ...], what: str) -> list[Picture]:
        """The pictures; a process that dies, not by an error of the drawing, is started once more."""
        try:
            return self._ask(request)
        except _Ended as end:
            if not end.died or not self._is_open:
                raise ViewError(f"{what} could not be drawn: {end.why}") from None
            log().info("the process that draws died, and is started again: %s", end.why)
        self._process = _start()
        try:
            return self._ask(request)
        except _Ended as end:
            raise ViewError(f"{what} could not be drawn: {end.why}") from None

    def _ask(self, request: tuple[object, ...]) -> list[Picture]:
        if not self._is_open:
            raise _Ended((), 0)
        process = self._process = self._process or _start()
        assert process.stdin
        assert process.stdout
        try:
            pickle.dump(request, process.stdin)
            process.stdin.flush()
            pictures: list[Picture] = pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            _, said = process.communicate()
            raise _Ended(said.decode(errors="replace").strip().splitlines(), process.returncode) from None
        return pictures


class _Ended(Exception):  # noqa: N818  (it never leaves this file)
    """The process has ended; its last words."""

    def __init__(self, lines: Sequence[str], status: int):
        fatal = [line for line in lines if line.startswith("Fatal Python error")]
        self.died = bool(fatal) or status < 0
        self.why = one_line((fatal or [*lines[-1:], "no reason was given"])[0])


def _start() -> "subprocess.Popen[bytes]":
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=paths)


def main() -> None:
    """Serve requests until the end of stdin."""
    import matplotlib as mpl

    from compare.render import figures
    from compare.render.energy import figures as energy_figures
    from compare.render.time import figures as time_figures

    mpl.rcdefaults()  # the same bytes whatever a user's matplotlibrc says
    while True:
        try:
            what, *request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        if what == _BYTES:
            (report,) = request
            drawings = figures.list_drawings(Report.from_json(report))
        else:
            phases, num_devices, strips = request
            drawings = time_figures.list_drawings(phases, num_devices=num_devices, strips=strips)
            drawings += energy_figures.list_drawings(phases)
        pickle.dump(draw_in_two(drawings), sys.stdout.buffer)
        sys.stdout.buffer.flush()


def draw_in_two(drawings: Sequence[Drawing]) -> list[Picture]:
    """The pictures, in order; every other one is drawn by a fork of this process, which has its libraries at once."""
    if sys.platform != "linux":  # the system's libraries of macOS do not bear a fork
        return draw_all(drawings)
    receiver, sender = _FORK.Pipe(duplex=False)
    fork = _FORK.Process(target=_send_pictures, args=(drawings[1::2], sender), daemon=True)
    fork.start()
    sender.close()
    even = draw_all(drawings[::2])
    try:
        odd = receiver.recv()
    except EOFError:
        fork.join()
        raise RuntimeError(f"the second process that drew them ended with exit status {fork.exitcode}") from None
    fork.join()
    if isinstance(odd, Exception):
        raise odd
    return [picture for pair in zip_longest(even, odd) for picture in pair if picture]


def _send_pictures(drawings: Sequence[Drawing], sender: "Connection[list[Picture] | Exception, object]") -> None:
    try:
        sender.send(draw_all(drawings))
    except Exception as error:
        sender.send(error)


if __name__ == "__main__":
    main()
