"""`python -m benchmarks.cold_run`: the whole of `compare.run --mesh tp4pp2` against its bare programs.

Bare: for each of the same programs, two at a time, the worker that imports a framework, traces and lowers, then the one
that compiles; no cache, no reading, no verdicts, no drawing.  Prints the ratio, cold, and the seconds of a warm run.
"""

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import measure, python, two_at_a_time
from compare.run import tasks
from compare.run.arms import ARMS, Arm, Cell
from compare.run.tasks import Task
from meshes.case import Case

MESH = "tp4pp2"
ROUNDS = 2


def main() -> None:
    case = Case.read(MESH)
    cells = [(arm, cell, phase) for arm in ARMS.values() for phase in case.phases for cell in arm.cells(case)]
    # The slowest start first, as the tool does it: an order that helps both alike.
    cells.sort(key=lambda entry: -entry[0].start_s)
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(ROUNDS):
            folder = Path(scratch) / str(number)
            works = [_bare(case, arm, cell, phase, folder / f"{at}") for at, (arm, cell, phase) in enumerate(cells)]
            bare = two_at_a_time(works)
            cache = {"WIREDIFF_CACHE": str(folder / "cache")}
            command = python("compare.run", "--mesh", MESH, "--out", str(folder / "runs"))
            cold = measure(command, environment=cache).seconds
            warm = measure(command, environment=cache).seconds
            ratios.append(cold / bare)
            print(
                f"{len(cells)} programs: bare {bare:.1f} s, cold {cold:.1f} s = {cold / bare:.2f} ×, warm {warm:.1f} s"
            )
    print(f"cold / bare: {min(ratios):.2f} to {max(ratios):.2f} in {ROUNDS} rounds")


def _bare(case: Case, arm: Arm, cell: Cell, phase: str, folder: Path) -> Callable[[], None]:
    """One program, from the start of its first process to its compiled text."""
    narrowed = case.at(phases=(phase,), **cell.changes)

    def work() -> None:
        lowered, compiled = folder / "lowered", folder / "compiled"
        for place in (lowered, compiled):
            place.mkdir(parents=True)
        _run(tasks.lower_task(narrowed, arm), folder / "case.json", lowered)
        _run(tasks.compile_task(narrowed, arm, program=lowered), folder / "request.json", compiled)
        assert json.loads((compiled / "compiled.json").read_bytes())

    return work


def _run(step: Task, request: Path, out: Path) -> None:
    request.write_text(step.request)
    subprocess.run(step.argv(request, out), env=step.environment(), check=True, capture_output=True)


if __name__ == "__main__":
    main()
