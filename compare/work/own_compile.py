"""Programs that are not compiled yet, compiled by libtpu: each in a process of its own, side by side."""

import gzip
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compare.program.aot_own import request_text
from compare.work.error import WorkError
from compare.work.processes import Command, Pool
from compare.work.steps import Step

TIMEOUT_S = 1800.0
MODULE = "compare.program.aot_own"


class CompileFailed(WorkError):  # noqa: N818
    """One program could not be compiled; the message says why."""

    def __init__(self, number: int, why: str):
        super().__init__(why)
        self.number = number


@dataclass(frozen=True, slots=True)
class Made:
    """A compiled program's text, and for what and by what it was compiled."""

    text: str
    how: str


def compile_all(programs: Mapping[int, bytes], *, num_devices: int, topology: str) -> dict[int, Made]:
    """Compile each for `topology`, or for the smallest v5e slice that it fills.  Raises `CompileFailed`.

    num_devices: as the axes say; 0: as each program does.
    """
    if not programs:
        return {}
    with tempfile.TemporaryDirectory(prefix="wirediff-", ignore_cleanup_errors=True) as folder:
        with Pool[int](lambda number, stage, seconds: None) as pool:
            for number, data in programs.items():
                out = Path(folder) / str(number)
                out.mkdir()
                (out / "program").write_bytes(data)
                request = request_text(out / "program", topology=topology, num_devices=num_devices)
                (out / "request.json").write_text(request)
                pool.start(number, _command(out))
            while len(pool):
                for number, ended in pool.wait().items():
                    if ended.status != "ok":
                        raise CompileFailed(number, ended.error)
        return {number: _made(Path(folder) / str(number)) for number in programs}


def _command(out: Path) -> Command:
    step = Step(name="compile", kind="", key="", module=MODULE, request="", results=("optimized.hlo.gz",))
    return Command(
        argv=step.argv(out / "request.json", out),
        stderr=out / "stderr",
        environment=step.environment(),
        timeout_s=TIMEOUT_S,
    )


def _made(out: Path) -> Made:
    found = json.loads((out / "compiled.json").read_bytes())
    slices = f"{found['num_slices']}x" if found["num_slices"] > 1 else ""
    how = f"compiled for {slices}{found['topology']} by libtpu {found['versions']['libtpu']}"
    return Made(gzip.decompress((out / "optimized.hlo.gz").read_bytes()).decode(), how)
