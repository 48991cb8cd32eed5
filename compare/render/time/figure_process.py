"""The figures of time, drawn by a second process: drawing is half of a warm run, and half of that is theirs.

`python -m compare.render.time.figure_process` reads the timings of a report and its strips, pickled, from its input
and writes the pictures, pickled, to its output.  Both ends are this file's.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from compare.render.errors import ViewError
from compare.render.picture import Picture
from compare.render.time.timeline_strip import Strip
from compare.render.time.timing_section import ProgramTiming
from meshes.process.one_line import one_line


class FigureProcess:
    """Draws the figures of time beside its caller, from when it is made."""

    def __init__(
        self, phases: Mapping[str, Sequence[ProgramTiming]], *, num_devices: int, strips: Sequence[Strip]
    ) -> None:
        command = [sys.executable, "-m", "compare.render.time.figure_process"]
        paths = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=paths
        )
        # Writing would wait until the other side has imported what it needs.
        thread = ThreadPoolExecutor(1)
        self._output: Future[tuple[bytes, bytes]] = thread.submit(
            process.communicate, pickle.dumps((phases, num_devices, list(strips)))
        )
        thread.shutdown(wait=False)
        self._process = process

    def pictures(self) -> list[Picture]:
        """Wait for the figures.  Raises `ViewError` where they could not be drawn."""
        output, errors = self._output.result()
        if self._process.returncode:
            why = errors.decode(errors="replace").strip().rpartition("\n")[2]
            raise ViewError(f"the figures of time could not be drawn: {one_line(why or 'no reason was given')}")
        drawn: list[Picture] = pickle.loads(output)
        return drawn


def main() -> None:
    """Draw what stands in the input."""
    from compare.render.time.figures import draw_pictures

    phases, num_devices, strips = pickle.load(sys.stdin.buffer)
    pickle.dump(draw_pictures(phases, num_devices=num_devices, strips=strips), sys.stdout.buffer)


if __name__ == "__main__":
    main()
