"""`python -m benchmarks.chakra`: the export of Llama-3.1-8B on 256 ranks as Chakra traces, and its way back.

The run is compiled first (about a minute).  The export is the whole command, of all programs and of the largest alone;
seconds and the most memory.  Then the largest trace is read and simulated in ASTRA-sim's cycles.
"""

import tempfile
import time
from pathlib import Path

from benchmarks.measuring import measure, python
from compare.chakra.reader import build_trace, read_folder
from compare.chakra.settings import read_settings
from compare.network.astra_sim.program import replay_graph

RUN = ("--mesh", "dp32pp2tp4@v5e:16x16", "--model", "llama-3.1-8b", "--batch", "128")
ALONE = ("--arm", "torchxla", "--phase", "prefill", "--cell", "tpu")
AIM_S, AIM_BYTES = 10.0, 1 << 30


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        runs, traces = Path(scratch) / "runs", Path(scratch) / "traces"
        measure(python("compare.run", *RUN, "--out", str(runs)))
        (run,) = runs.iterdir()
        for title, words in (("all programs", ()), ("PyTorch/XLA prefill", ALONE)):
            used = measure(python("compare.export", str(run), "--to", "chakra", "--out", str(traces), *words))
            folders = [path for path in traces.iterdir() if path.is_dir()]
            size = sum(file.stat().st_size for folder in folders for file in folder.glob("*.et"))
            print(
                f"{title}: {len(folders)} of 256 ranks, {size / 1e6:.1f} MB in {used.seconds:.1f} s "
                f"({used.cpu_seconds:.1f} s of CPU), {used.peak_bytes / 2**20:.0f} MiB; "
                f"aim {AIM_S:g} s, {AIM_BYTES / 2**20:.0f} MiB"
            )
        begun = time.perf_counter()
        trace = build_trace(read_folder(folders[0]))
        reading = time.perf_counter() - begun
        machine = read_settings(folders[0], num_ranks=256).machine
        begun = time.perf_counter()
        simulated = replay_graph(trace.graph, machine, tick_ps=trace.tick_ps)
        simulating = time.perf_counter() - begun
        print(
            f"read in {reading:.2f} s ({trace.graph.num_nodes:,} nodes), simulated in {simulating:.1f} s: "
            f"{max(simulated.cycles):,} cycles of 1 ps"
        )


if __name__ == "__main__":
    main()
