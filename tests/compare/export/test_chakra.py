"""A run goes to ASTRA-sim: what its traces hold is what its report says, and what stands beside them."""

import gzip
import hashlib
import json
from collections import Counter

import numpy as np
import pytest
import yaml

from compare.cli.export import main
from compare.export.chakra import chakra_folder
from compare.export.folder.exported_programs import select_programs
from compare.run.folder.load_run import read_run
from compare.schedule.schedule import model_step
from compare.timeline.errors import TimingError
from tests.commands import check_refusal, run_here
from tests.compare.chakra.wire import BOOL, STRING, read_file
from tests.places import EXAMPLE, example_report

RUN = "llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4"
PROGRAMS = [(arm, phase) for arm in ("jax", "torchxla") for phase in ("prefill", "decode")]
RANKS = [0, 2, 4, 6, 1, 3, 5, 7]
"""Of logical devices: stages on the side of 2, tp on the side of 4."""
COMM_TYPES = {0: "all-reduce", 2: "all-gather", 6: "all-to-all", 7: "reduce-scatter"}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    place = tmp_path_factory.mktemp("export") / "traces"
    assert main([str(EXAMPLE), "--to", "chakra", "--cell", "tpu", "--out", str(place)]) == 0
    return place


def files(out, arm, phase):
    name = f"{RUN}-{arm}-{phase}-tpu"
    return [read_file((out / name / f"{name}.{rank}.et").read_bytes()) for rank in range(8)]


def rows_of(arm, phase):
    return example_report()["phases"][phase]["arms"][arm]["collectives"]


@pytest.mark.parametrize(("arm", "phase"), PROGRAMS)
def test_every_rank_has_the_collectives_of_the_report(out, arm, phase):
    """Name, kind, bytes and executions of each, by the report and by the files; groups by the numbers of ranks."""
    groups = json.loads((out / f"{RUN}-{arm}-{phase}-tpu/groups.json").read_text())
    expected: list[Counter] = [Counter() for _ in range(8)]
    for row in rows_of(arm, phase):
        size = row["payload_bytes"]
        for group in row["groups"]:
            ranks = [RANKS[device] for device in group]
            if row["kind"] == "collective-permute":
                expected[ranks[0]]["send", row["name"], size, ranks[1]] += row["executions"]
                expected[ranks[1]]["receive", row["name"], size, ranks[0]] += row["executions"]
                continue
            shard = size // len(group) if row["kind"] == "all-gather" else size
            for rank in ranks:
                expected[rank][row["kind"], row["name"], shard, tuple(ranks)] += row["executions"]
    for rank, (_, nodes) in enumerate(files(out, arm, phase)):
        found: Counter = Counter()
        for node in nodes:
            row, _, k = node.name.rpartition(".")
            if node.type == 7:
                found[COMM_TYPES[node["comm_type"]], row, node["comm_size"], tuple(groups[node["pg_name"]])] += 1
            elif node.type in (5, 6):
                found[
                    ("send", row, node["comm_size"], node["comm_dst"])
                    if node.type == 5
                    else ("receive", row, node["comm_size"], node["comm_src"])
                ] += 1
                assert node["comm_tag"] == int(k)
        assert found == expected[rank]


@pytest.mark.parametrize(("arm", "phase"), PROGRAMS)
def test_a_file_is_a_graph_in_the_order_of_the_timeline(out, arm, phase):
    """Ids, order and lengths, against the events of the modelled timeline: another way to the same nodes."""
    (program,) = find_programs(arm, phase)
    timeline = model_step(program.module, program.rows, program.case.plan)
    shown_by = {device: shown for shown, alike in timeline.stands_for.items() for device in alike}
    read = files(out, arm, phase)
    for device, rank in enumerate(RANKS):
        nodes = read[rank][1]
        assert [node.id for node in nodes] == list(range(1, len(nodes) + 1))
        assert all(dep < node.id for node in nodes for dep in node.deps)
        events = timeline.events[timeline.events["device"].eq(shown_by[device])]
        core = events[events["line"].eq("XLA Ops") & ~events["role"].eq("container")]
        total = core.loc[core["role"].eq("compute"), "duration_ns"].sum()
        assert sum(node.duration for node in nodes) == round(total)
        begun = core[core["collective"].ne("") & ~core["name"].astype(str).str.contains("-done")]
        in_order = begun.assign(long=begun["duration_ns"] > 0).sort_values(["start_ns", "long"], kind="stable")
        named = [node.name.rpartition(".")[0] for node in nodes if node.type != 4]
        assert named == in_order["collective"].astype(str).tolist()


def find_programs(arm, phase):
    return [each.program for each in select_programs(read_run(EXAMPLE), arm=arm, phase=phase, cell="tpu")]


@pytest.mark.parametrize(
    ("arm", "phase", "nodes"),
    [("jax", "decode", 344), ("jax", "prefill", 344), ("torchxla", "decode", 823), ("torchxla", "prefill", 984)],
)
def test_a_rank_has_as_many_nodes_as_another_exporter_gave_it(out, arm, phase, nodes):
    """Counted from the events table by a program that shares nothing with this one.

    TorchXLA's decode was compiled again since, with one asynchronous gather a layer and tick in place of two: 80 fewer
    waits, which part the compute around them.
    """
    assert {len(found) for _, found in files(out, arm, phase)} == {nodes}


def test_the_metadata_says_which_program_it_is(out):
    text = gzip.decompress((EXAMPLE / "jax/decode/tpu/optimized.hlo.gz").read_bytes())
    for metadata, nodes in files(out, "jax", "decode"):
        assert metadata == [
            (1, "0.0.4"),
            (2, ("wirediff.units", STRING, "tick=ps")),
            (2, ("wirediff.program", STRING, hashlib.sha256(text).hexdigest())),
            (2, ("wirediff.arm", STRING, "jax")),
            (2, ("wirediff.phase", STRING, "decode")),
            (2, ("wirediff.cell", STRING, "tpu")),
        ]
        assert all(node.attributes[0] == ("is_cpu_op", BOOL, 0) for node in nodes)
        assert not [name for node in nodes for name, _, _ in node.attributes if name.startswith("wirediff")]


def test_what_astra_sim_reads_beside_the_traces(out):
    folder = out / f"{RUN}-jax-decode-tpu"
    assert json.loads((folder / "groups.json").read_text()) == {
        "1": [0, 2, 4, 6],
        "2": [1, 3, 5, 7],
        "3": [0, 1],
        "4": [2, 3],
        "5": [4, 5],
        "6": [6, 7],
    }
    network = yaml.safe_load((folder / "network.yml").read_text())
    assert (network["topology"], network["npus_count"]) == (["Ring", "Ring"], [2, 4])
    # 37.303e9 bytes a second in GB of 2^30, of a tick that is 1 ps; a hop of 465.67 ns.
    np.testing.assert_allclose(network["bandwidth"], [37.303e9 / 2**30 / 1000] * 2, rtol=1e-14)
    assert network["latency"] == [465_670, 465_670]
    system = json.loads((folder / "system.json").read_text())
    ring = {
        f"{kind}-implementation": ["ring", "ring"]
        for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    }
    assert system == ring | {
        "scheduling-policy": "FIFO",
        "endpoint-delay": 10,
        "active-chunks-per-dimension": 1,
        "preferred-dataset-splits": 1,
        "collective-optimization": "localBWAware",
        "local-mem-bw": 0.819,
    }
    assert json.loads((folder / "memory.json").read_text()) == {"memory-type": "NO_MEMORY_EXPANSION"}
    words = (folder / "run.txt").read_text().split()
    assert words[0] == "AstraSim_Analytical_Congestion_Unaware"
    options = dict(word.removeprefix("--").split("=") for word in words[1:])
    assert options.pop("workload-configuration") == folder.name
    assert options.pop("num-queues-per-dim") == "1"
    assert sorted(options.values()) == sorted({"groups.json", "network.yml", "system.json", "memory.json"})
    assert {file.stat().st_mode & 0o777 for file in folder.glob("*.et")} == {0o644}


@pytest.mark.slow
def test_facts_say_the_verdict_of_every_collective(tmp_path):
    words = ["--arm", "torchxla", "--phase", "prefill", "--cell", "tpu", "--facts"]
    assert main([str(EXAMPLE), "--to", "chakra", "--out", str(tmp_path / "traces"), *words]) == 0
    by_name = {row["name"]: row for row in rows_of("torchxla", "prefill")}
    verdicts = set()
    for _, nodes in files(tmp_path / "traces", "torchxla", "prefill"):
        for node in nodes:
            if node.type == 4:
                assert len(node.attributes) == 1
                continue
            row = by_name[node.name.rpartition(".")[0]]
            assert (node["wirediff.scope"], node["wirediff.axes"]) == (row["scope"], row["axes"])
            assert node["wirediff.executions"] == row["executions"]
            parts = {word: row[f"{word}_bytes"] for word in ("inherent", "inflated", "induced")}
            assert {word: node[f"wirediff.{word}_bytes"] for word in parts} == parts
            assert node["wirediff.verdict"] == ("+".join(word for word, many in parts.items() if many) or "none")
            verdicts.add(node["wirediff.verdict"])
    assert {"inherent+inflated", "induced"} <= verdicts


def test_a_program_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise TimingError("it gathers no whole number of bytes")

    monkeypatch.setattr(chakra_folder, "expand_program", fail)
    done = run_here("export", EXAMPLE, "--to", "chakra", "--out", tmp_path / "new")
    check_refusal(done, "jax/decode/tpu")
    assert "no whole number" in done.stderr
    assert list(tmp_path.iterdir()) == []
