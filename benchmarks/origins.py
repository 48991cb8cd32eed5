"""`python -m benchmarks.origins`: what recording libtpu's passes adds to a compile, and what it leaves on the disk.

Each program is lowered once, then compiled by turns without and with its passes; what counts is the time of all
processors, which other work on the machine does not change much.
"""

import tempfile
from pathlib import Path

from benchmarks.measuring import Measured, measure_task
from compare.passes import archive
from compare.run import tasks
from compare.run.arms import ARMS, Arm
from meshes.case import Case

CASES = (
    ("tp4pp2", "scan", "prefill"),
    ("tp4pp2", "scan", "decode"),
    ("tp8", "scan", "decode"),
    ("tp8", "unrolled", "decode"),
)
ROUNDS = 2
MOST = 1.35


def main() -> None:
    worst = 0.0
    for mesh, loop, phase in CASES:
        case = Case.read(mesh, loop=loop, phases=(phase,))
        for arm in ARMS.values():
            with tempfile.TemporaryDirectory() as scratch:
                worst = max(worst, _compare(case, arm, Path(scratch)))
    print(f"the most: {worst:.2f} ×; {'held' if worst <= MOST else 'NOT HELD'}: {MOST} × are allowed")


def _compare(case: Case, arm: Arm, folder: Path) -> float:
    """With ÷ without, of the least of all rounds."""
    lowered = folder / "lowered"
    measure_task(tasks.lower_task(case, arm), lowered)
    by_recording: dict[bool, list[Measured]] = {False: [], True: []}
    size = 0
    for number in range(ROUNDS):
        for recorded, rounds in by_recording.items():
            out = folder / f"{number}-{recorded}"
            rounds.append(measure_task(tasks.compile_task(case, arm, program=lowered, passes=recorded), out))
            size = max([size, *(path.stat().st_size for path in out.glob(archive.FILE))])
    without, with_them = (min(measured.cpu_seconds for measured in rounds) for rounds in by_recording.values())
    wall = [min(measured.seconds for measured in rounds) for rounds in by_recording.values()]
    print(
        f"{arm.title} {case.phase} on {case.plan.name}, {case.loop}: {without:.1f} → {with_them:.1f} s of CPU "
        f"({with_them / without:.2f} ×), {wall[0]:.1f} → {wall[1]:.1f} s, {size / 1e3:.0f} kB kept",
        flush=True,
    )
    return with_them / without


if __name__ == "__main__":
    main()
