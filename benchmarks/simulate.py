"""`python -m benchmarks.simulate`: the engine on large graphs, and a sweep of a run over 50 machines.

The figures to reach: 8 ranks of 5,152 nodes, each of its own, in 0.54 s (ASTRA-sim's own time on a graph of that size,
in C++); a training step of 80 layers on 4,096 chips in 10 s and 4 GiB; 50 what-ifs of the example run in 30 s.
"""

import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from compare.network.engine.graph_layout import Plan
from compare.network.engine.simulate import simulate_graph
from compare.network.graph.graph import COLLECTIVE, COMPUTE, Graph, NodeTableBuilder, Transfer
from compare.network.machines.kinds import ALL_GATHER, ALL_REDUCE, RING, TWO_WAY_RING
from compare.network.machines.machine import Algorithm, Algorithms, Dim, Machine
from compare.network.machines.tpu import tpu_machine
from compare.network.programs.simulation import Simulation
from compare.simulate.what_if.changed_machine import change_point
from compare.simulate.what_if.request import Sweep
from compare.simulate.what_if.subjects import load_subjects, simulate_subject

EXAMPLE = Path(__file__).parents[1] / "docs/example-run"
RANKS, NODES = 8, 5_152
REPLICAS, LAYERS, TENSOR = 512, 80, 8
WHAT_IFS = 50
AIMS_S = (0.54, 10.0, 30.0)
Result = TypeVar("Result")


def main() -> None:
    line = Machine(
        dims=(Dim(kind=RING, size=RANKS, bytes_per_ns=90.0, latency_ns=500.0),),
        algorithms=Algorithms.alike((Algorithm(RING),)),
    )
    graph = list_distinct_ranks()
    seconds, _ = _clock(lambda: simulate_graph(Plan.of(graph, line), line))
    print(f"{RANKS} ranks of {NODES:,} nodes, all different: {seconds:.2f} s, aim {AIMS_S[0]:g} s")
    cube = Machine(
        name="16×16×16",
        dims=(Dim(kind=RING, size=16, bytes_per_ns=90.0, latency_ns=500.0),) * 3,
        algorithms=Algorithms.alike((Algorithm(TWO_WAY_RING),) * 3),
    )
    training = list_training_step()
    seconds, simulated = _clock(lambda: simulate_graph(Plan.of(training, cube), cube))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{training.num_ranks:,} chips, {training.num_nodes:,} nodes in {simulated.plan.classes.count} classes: "
        f"{seconds:.2f} s, aim {AIMS_S[1]:g} s; {peak:.2f} GiB at most so far, aim 4"
    )
    seconds, steps = _clock(run_what_ifs)
    print(f"{WHAT_IFS} what-ifs of a run, {steps} steps: {seconds:.1f} s, aim {AIMS_S[2]:g} s")


def list_distinct_ranks() -> Graph:
    """Compute of another length on each rank, and after every fourth node a collective over all ranks."""
    groups = (tuple(range(RANKS)),)
    transfers: list[Transfer] = []
    tables = [NodeTableBuilder() for _ in range(RANKS)]
    for node in range(NODES):
        is_compute = node % 4 != 3
        if not is_compute:
            transfers.append(Transfer(key=len(transfers), kind=ALL_REDUCE, num_bytes=1 << 20, groups=groups))
        for rank, table in enumerate(tables):
            deps = [table.size - 1] if table.size else []
            if is_compute:
                table.add(COMPUTE, f"compute.{node}", deps, duration_ps=1000 * (1_000 + 13 * rank + node))
            else:
                table.add(COLLECTIVE, f"all-reduce.{node}", deps, transfer=len(transfers) - 1, num_bytes=1 << 20)
    return Graph(
        name="distinct",
        num_ranks=RANKS,
        tables=tuple(table.build() for table in tables),
        table_of=np.arange(RANKS),
        transfers=tuple(transfers),
    )


def list_training_step() -> Graph:
    """80 layers of Llama-3.1-70B's width on tp8 × dp512: per layer and pass four tensor-parallel collectives, and the
    gradients of a layer reduced over all replicas beside the backward pass."""
    size = TENSOR * REPLICAS
    tensor = tuple(tuple(range(first, first + TENSOR)) for first in range(0, size, TENSOR))
    replicas = tuple(tuple(range(first, size, TENSOR)) for first in range(TENSOR))
    transfers: list[Transfer] = []
    table = NodeTableBuilder()
    chain: list[int] = []

    def communicate(kind: str, num_bytes: int, groups: tuple[tuple[int, ...], ...]) -> int:
        transfers.append(Transfer(key=len(transfers), kind=kind, num_bytes=num_bytes, groups=groups))
        index = len(transfers) - 1
        return table.add(COLLECTIVE, f"{kind}.{index}", chain, transfer=index, num_bytes=num_bytes)

    activations, weights = 8192 * 4096 * 2, 855_638_016 * 2 // TENSOR
    gradients = []
    for backward in (False, True):
        for layer in range(LAYERS):
            for _ in range(4 if backward else 2):
                chain = [table.add(COMPUTE, f"compute.{layer}", chain, duration_ps=3_000_000_000)]
                chain = [communicate(ALL_REDUCE, activations, tensor)]
            chain = [communicate(ALL_GATHER, activations // TENSOR, tensor)]
            if backward:
                gradients.append(communicate(ALL_REDUCE, weights, replicas))
    table.add(COMPUTE, "update", [*chain, *gradients], duration_ps=5_000_000_000)
    return Graph(
        name="70B",
        num_ranks=size,
        tables=(table.build(),),
        table_of=np.zeros(size, np.int64),
        transfers=tuple(transfers),
    )


def run_what_ifs() -> int:
    """Read a run, and simulate its programs on 50 machines; returns the number of steps."""
    subjects, _ = load_subjects(EXAMPLE)
    sweep = Sweep("ici", tuple(np.geomspace(0.25, 8, WHAT_IFS).tolist()), is_log=True)
    for subject in subjects:
        simulation = Simulation(machine=tpu_machine(subject.topology))
        for value in sweep.values:
            simulate_subject(subject, change_point(simulation, sweep, value))
    return WHAT_IFS * len(subjects)


def _clock(work: Callable[[], Result]) -> tuple[float, Result]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


if __name__ == "__main__":
    main()
