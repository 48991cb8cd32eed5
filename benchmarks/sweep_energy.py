"""`python -m benchmarks.sweep_energy`: how long a sweep of the energy of 50 cases takes where nothing is compiled.

First from run folders, which are copies of the example run, as ten layouts of five numbers of microbatches.  Then from
the user's cache: 50 cases of two models, with their pages and without; the first time, those are compiled (half an
hour), which is not counted.
"""

import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import measure, python
from compare.cli.options.sweep_options import sweep_parser
from compare.cli.options.sweep_request import combinations
from compare.sweep.energy.measure import add_energy
from compare.sweep.render.draw import draw
from compare.sweep.summary import ResultRow, Sweep
from compare.sweep.sweep import CaseEnd, read_result

CASES = 50
AIM_S = 60.0
MICROBATCHES = (1, 2, 4, 8, 16)
EXAMPLE = Path(__file__).parents[1] / "docs/example-run"

LAYOUTS = "tp8,tp8+sp,dp2tp4,dp4tp2,tp4,tp4pp2,tp2pp4,pp8,tp2pp2,pp4"
SWEEP = (
    "--models",
    "llama-3.1-8b,llama-3.2-1b",
    "--meshes",
    LAYOUTS,
    "--microbatches",
    "1,2,4,8",
    "--controls",
    "none",
    "--energy",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        _measure_folders(Path(scratch) / "folders")
        _measure_cache(Path(scratch) / "cache")


def _measure_folders(folder: Path) -> None:
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
    print(f"{CASES} cases from run folders: {seconds:.1f} s, {cpu_s:.1f} s of CPU, aim {AIM_S:g} s", flush=True)


def _measure_cache(folder: Path) -> None:
    cases = combinations(sweep_parser().parse_args(SWEEP))
    assert [case.refused for case in cases] == [""] * CASES
    for words, what in ((["--no-pages"], ""), (["--no-pages"], "without pages"), ([], "with pages")):
        measured = measure(python("compare.sweep", *SWEEP, *words, "--out", str(folder)))
        shutil.rmtree(folder)
        if what:
            print(
                f"{CASES} cases from the cache, {what}: {measured.seconds:.1f} s, {measured.cpu_seconds:.1f} s of CPU, "
                f"{measured.peak_bytes / 2**30:.1f} GiB, aim {AIM_S:g} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
