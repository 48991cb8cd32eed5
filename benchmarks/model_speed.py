"""`python -m benchmarks.model_speed`: how long it takes to model one step of large programs, and how much memory.

The programs are compiled first (some minutes).  Seconds: from the collectives' rows to the timeline, the best of three;
reading the text and making the rows is told apart.  Memory: the most that Python and numpy had allocated meanwhile.
"""

import gzip
import tempfile
import time
import tracemalloc
from pathlib import Path

from benchmarks.measuring import measure, python
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.schedule.schedule import model_step
from meshes.mesh_argument import read_mesh

RUNS = {
    "tp8pp4@v5p:2x4x4": ("--model", "llama-3.1-70b"),
    "dp16pp2tp8@v5e:16x16": ("--model", "llama-3.1-8b", "--batch", "64"),
    "dp32tp8@v5e:16x16": ("--model", "llama-3.1-8b", "--batch", "32", "--loop", "unrolled", "--phase", "decode"),
}
ROUNDS = 3


def main() -> None:
    for mesh, words in RUNS.items():
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "runs"
            measure(python("compare.run", "--mesh", mesh, *words, "--out", str(out)))
            for path in sorted(out.glob("*/*/*/tpu/optimized.hlo.gz")):
                arm, phase = path.parts[-4:-2]
                print(f"{' '.join(words[1:2])} on {mesh}, {arm} {phase}: {_model(path, mesh)}")


def _model(path: Path, mesh: str) -> str:
    plan = read_mesh(mesh)
    begun = time.perf_counter()
    module = read(gzip.decompress(path.read_bytes()).decode())
    rows = collectives(module, plan.mesh.split_axes)
    reading, seconds = time.perf_counter() - begun, []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        timeline = model_step(module, rows, plan)
        seconds.append(time.perf_counter() - begun)
    tracemalloc.start()
    model_step(module, rows, plan)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (
        f"{min(seconds):.2f} s (and {reading:.2f} s to read), {peak / 2**20:.0f} MiB; {len(timeline.stands_for)} of "
        f"{timeline.num_devices} devices differ, {len(timeline.events)} events, "
        f"step {timeline.steps['duration_ns'].max() / 1e6:.1f} ms"
    )


if __name__ == "__main__":
    main()
