"""`python -m benchmarks.sweep_energy`: the energy of a sweep of 50 cases from its run folders.

The folders are copies of the example run, as ten layouts of five numbers of microbatches; nothing is compiled.
"""

import shutil
import tempfile
import time
from pathlib import Path

from compare.sweep.energy.measure import add_energy
from compare.sweep.render.draw import draw
from compare.sweep.request import combinations, sweep_parser
from compare.sweep.summary import ResultRow, Sweep
from compare.sweep.sweep import CaseEnd, read_result

CASES = 50
AIM_S = 60.0
MICROBATCHES = (1, 2, 4, 8, 16)
EXAMPLE = Path(__file__).parents[1] / "docs/example-run"


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for number in range(CASES):
            ignored = shutil.ignore_patterns("jax", "torchxla", "figures")
            shutil.copytree(EXAMPLE, folder / f"run-{number}", ignore=ignored)
        begun, cpu = time.perf_counter(), time.process_time()
        (case,) = combinations(sweep_parser().parse_args(["--meshes", "tp4pp2"]))
        rows: list[ResultRow] = [
            {
                **read_result(case, CaseEnd("done", at=folder / f"run-{number}")),
                "mesh": f"layout {number // len(MICROBATCHES)}",
                "microbatches": MICROBATCHES[number % len(MICROBATCHES)],
            }
            for number in range(CASES)
        ]
        arms = {"jax": "JAX", "torchxla": "TorchXLA"}
        sweep: Sweep = {"schema": 1, "sentence": f"{CASES} cases.", "asked": {}, "arms": arms, "results": rows}
        draw(add_energy(sweep, folder), folder)
        seconds, cpu_s = time.perf_counter() - begun, time.process_time() - cpu
        print(f"{CASES} cases: {seconds:.1f} s, {cpu_s:.1f} s of CPU, aim {AIM_S:g} s")


if __name__ == "__main__":
    main()
