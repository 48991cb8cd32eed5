"""Whole graphs against runs of the real ASTRA-sim: every rank's cycles and exposed cycles, and what never ends there.

`astra_sim_graphs.csv` holds the runs: by hand, and random ones of up to 8 ranks.  Where `cycles` is empty the real
program ended with status 0, and not all ranks finished.
"""

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from compare.chakra.settings import read_settings
from compare.network.astra_sim.program import GraphCycles, replay_graph
from compare.timeline.errors import TimingError
from tests.compare.chakra import files
from tests.compare.chakra.files import read_trace, write_trace

with Path(__file__).with_name("astra_sim_graphs.csv").open(newline="") as lines:
    RUNS = list(csv.DictReader(lines))


def encode(words: list) -> bytes:
    kind, *rest, deps = words
    if kind == "collective":
        number, comm_type, size, group = rest
        return files.collective(number, comm_type, size, group=group, deps=deps)
    return getattr(files, kind)(*rest, deps=deps)


def write(folder: Path, run: dict[str, str]) -> None:
    nodes = [[encode(words) for words in of_rank] for of_rank in json.loads(run["nodes"])]
    write_trace(folder, nodes, groups=json.loads(run["groups"]))
    system = {
        f"{key}-implementation" if isinstance(value, list) else key: value
        for key, value in json.loads(run["system"]).items()
    }
    (folder / "network.yml").write_text(run["network"].replace("; ", "\n"))
    (folder / "system.json").write_text(json.dumps(system))
    (folder / "run.txt").write_text(f"--num-queues-per-dim={run['queues']} {run['options']}\n")
    if run["memory"]:
        (folder / "memory.json").write_text(run["memory"])


def simulate(folder: Path, run: dict[str, str]) -> GraphCycles:
    write(folder, run)
    settings = read_settings(folder, num_ranks=len(json.loads(run["nodes"])))
    trace = read_trace(folder, replays=settings.options.replays, sizes=tuple(dim.size for dim in settings.machine.dims))
    options = replace(settings.options, aware=run["backend"] == "aware")
    return replay_graph(trace.graph, settings.machine, tick_ps=trace.tick_ps, unnamed=trace.unnamed, options=options)


@pytest.mark.parametrize("run", [run for run in RUNS if run["cycles"]], ids=lambda run: run["name"])
def test_every_rank_ends_at_the_cycle_of_the_real_program(tmp_path, run):
    simulated = simulate(tmp_path, run)
    assert " ".join(map(str, simulated.cycles)) == run["cycles"]
    assert " ".join(str(ticks % 2**64) for ticks in simulated.exposed) == run["exposed"]  # unsigned there


@pytest.mark.parametrize("run", [run for run in RUNS if not run["cycles"]], ids=lambda run: run["name"])
def test_what_ends_in_silence_there_names_a_rank_and_its_node_here(tmp_path, run):
    stuck = r"ranks never end: rank \d+ waits in node \d+ 'n\d+'"
    with pytest.raises(
        TimingError, match=f"{stuck}|halving-doubling over 5 ranks: the number of ranks is a power of two"
    ):
        simulate(tmp_path, run)


def test_the_runs_are_of_both_backends_and_both_ends():
    kinds = Counter((run["backend"], bool(run["cycles"])) for run in RUNS)
    assert kinds["unaware", True] >= 60
    assert kinds["aware", True] >= 14
    assert sum(many for (_, ended), many in kinds.items() if not ended) >= 10


def test_a_collective_that_names_no_group_is_missed_after_one_of_a_group(tmp_path):
    """Its number among all that a rank has issued is its only name: 1 on two ranks, 0 on the others."""
    (run,) = (run for run in RUNS if run["name"].startswith("after a collective of a group"))
    missed = r"all-reduce 1 names no group: rank 2 has issued 0 chunks of collectives before it and rank \d 1"
    with pytest.raises(TimingError, match=missed):
        simulate(tmp_path, run)


def test_what_takes_no_tick_stands_nowhere_first(tmp_path):
    run = dict(next(run for run in RUNS if run["name"] == "incast on a switch"))
    run["network"] = run["network"].replace("latency: [ 1000 ]", "latency: [ 0 ]")
    run["nodes"] = json.dumps(
        [[["send", 1, 3, 0, 1, []]], [["compute", 1, 1, []]], [["compute", 1, 1, []]], [["receive", 1, 0, 0, 1, []]]]
    )
    with pytest.raises(TimingError, match="takes no tick stands first, at which ASTRA-sim aborts"):
        simulate(tmp_path, run)


def test_a_machine_of_another_size(tmp_path):
    write(tmp_path, RUNS[0])
    graph = read_trace(tmp_path).graph
    smaller = dict(RUNS[0], network="topology: [ Ring ]; npus_count: [ 4 ]; bandwidth: [ 1 ]; latency: [ 1 ]")
    (tmp_path / "network.yml").write_text(smaller["network"].replace("; ", "\n"))
    with pytest.raises(TimingError, match="npus_count: 4 ranks, and the trace has 8"):
        read_settings(tmp_path, num_ranks=8)
    system = json.loads((tmp_path / "system.json").read_text())
    system |= {key: value[:1] for key, value in system.items() if isinstance(value, list)}
    (tmp_path / "system.json").write_text(json.dumps(system))
    machine = read_settings(tmp_path, num_ranks=4).machine
    with pytest.raises(TimingError, match="has 8 ranks, and the machine 4"):
        replay_graph(graph, machine, tick_ps=1000)
