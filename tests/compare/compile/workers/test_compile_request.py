"""The compile of a program for a TPU that isn't there, as a process: what it writes, refuses and dies of."""

import gzip
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compare.compile.executable_info import estimate_cost
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.passes.lineage import trace_archive
from tests.places import ROOT

pytestmark = pytest.mark.slow

TOY = Path(__file__).with_name("toy_jax.py")
QUIET = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
}
V5E = [(0, x, y, 0, 0) for y in range(4) for x in range(2)]
"""The chips of a v5e:2x4 in libtpu's own order, x fastest."""
ORDER = [0, 2, 4, 6, 7, 5, 3, 1]
"""The order in which `toy_jax.py` puts them into its mesh."""


def python(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | QUIET,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> Path:
    pytest.importorskip("jax", reason="needs jax: pip install -e '.[jax]'")
    folder = tmp_path_factory.mktemp("toys")
    done = python(TOY, folder)
    assert done.returncode == 0, done.stderr
    return folder


def request(toys: Path, **changes: object) -> dict:
    devices = changes.pop("devices", 8)
    options = json.loads((toys / f"options{devices}.json").read_text()) | changes.pop("options", {})
    asked = {
        "program": str(toys / f"program{devices}.mlirbc"),
        "topology": "v5e:2x4",
        "num_slices": 1,
        "places": V5E,
        "compile_options": options,
        "strip": [str(TOY.parent)],
        "passes": False,
    }
    return asked | changes


def aot(out: Path, asked: dict) -> subprocess.CompletedProcess:
    out.mkdir(exist_ok=True)
    (out / "request.json").write_text(json.dumps(asked))
    return python("-m", "compare.compile.workers.compile_request", out / "request.json", out)


def compile_request(out: Path, asked: dict) -> dict:
    done = aot(out, asked)
    assert done.returncode == 0, done.stderr
    return about(out)


@pytest.fixture(scope="module")
def plain(toys, tmp_path_factory) -> Path:
    """What the compile of the plain request wrote."""
    out = tmp_path_factory.mktemp("plain")
    done = aot(out, request(toys))
    assert done.returncode == 0, done.stderr
    (out / "stdout").write_text(done.stdout)
    return out


def about(out: Path) -> dict:
    return json.loads((out / "compiled.json").read_text())


def hlo(out: Path) -> str:
    return gzip.decompress((out / "optimized.hlo.gz").read_bytes()).decode()


def refusal(done: subprocess.CompletedProcess) -> tuple[int, str]:
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.splitlines()[-1]


def test_the_hlo_is_that_of_jax_own_compile(toys, tmp_path):
    compile_request(tmp_path, request(toys, places=[V5E[i] for i in ORDER], strip=[]))
    assert hlo(tmp_path) == (toys / "jax.hlo").read_text()


def test_source_paths_lose_the_folders_that_are_named_and_nothing_else_changes(toys, plain):
    assert '\n1 "toy_jax.py"\n' in hlo(plain)
    assert hlo(plain) == (toys / "jax.hlo").read_text().replace(f'"{TOY.parent}/', '"')


def test_the_same_program_gives_the_same_bytes(toys, plain, tmp_path):
    compile_request(tmp_path, request(toys))
    one, two = ((out / "optimized.hlo.gz").read_bytes() for out in (plain, tmp_path))
    assert one == two


def test_recording_passes_changes_nothing_else_and_tells_who_put_its_collective_there(toys, plain, tmp_path):
    """The all-reduce of a column-parallel, then row-parallel pair of matmuls is the partitioner's."""
    assert compile_request(tmp_path, request(toys, passes=True))["passes"] == {"recorded": True, "why_not": ""}
    assert about(plain)["passes"] == {"recorded": False, "why_not": "not asked for"}
    assert hlo(tmp_path) == hlo(plain)
    assert not (plain / "passes.tar.xz").exists()
    lives = trace_archive((tmp_path / "passes.tar.xz").read_bytes(), hlo(tmp_path))
    assert [life.origin for life in lives.values()] == ["partitioner"]
    assert not [path.name for path in tmp_path.iterdir() if path.is_dir()], "the texts themselves are gone"


def test_partitions_run_on_the_chips_that_were_asked_for(toys, tmp_path):
    """The HLO text does not show it; the compiled module's own device assignment does."""
    for places in (V5E, V5E[::-1], [V5E[i] for i in ORDER]):
        found = compile_request(tmp_path, request(toys, places=places))
        assert found["mesh_chips"] == [list(place) for place in places]


def test_of_several_slices_every_collective_still_says_who_asked_for_it(toys, tmp_path):
    """tp4 over two v5e:2x2, two of each replica's shards on either: devices 0, 1, 4, 5 are on the first slice."""
    places = [(tp // 2, dp, tp % 2, 0, 0) for dp in range(2) for tp in range(4)]
    found = compile_request(tmp_path, request(toys, topology="v5e:2x2", num_slices=2, places=places))
    assert found["device_ids"][:4] == [100_000, 100_002, 200_000, 200_002]
    assert found["op_names"]["lost"] == found["op_names"]["restored"] > 0
    rows = collectives(read(hlo(tmp_path)), {"dp": 2, "tp": 4}, device_ids=found["device_ids"])
    assert {(row.scope, row.part_of) for row in rows} == {("layer.mlp.down", "tp")}
    assert {row.network for row in rows} == {"ici", "dcn"}
    assert sum(row.step_wire_bytes for row in rows) == 2 * 3 * (128 * 512 * 2) // 4
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == set()


def test_sums_of_a_shard_map_which_have_one_channel_are_told_apart_over_slices(toys, tmp_path):
    """Each replica on a slice of its own; what the second sum adds up was made of what the first one gave."""
    places = [(dp, tp // 2, tp % 2, 0, 0) for dp in range(2) for tp in range(4)]
    words = {"program": str(toys / "by_hand.mlirbc"), "topology": "v5e:2x2", "num_slices": 2, "places": places}
    found = compile_request(tmp_path, request(toys, **words))
    assert found["op_names"] == {"lost": 2, "restored": 2}
    rows = collectives(read(hlo(tmp_path)), {"dp": 2, "tp": 4}, device_ids=found["device_ids"])
    assert [(row.kind, row.axes, row.scope, row.network) for row in rows] == [
        ("all-reduce", "tp", "layer.attention.out", "ici"),
        ("all-reduce", "tp", "layer.mlp.down", "ici"),
    ]
    assert hlo(tmp_path).count("channel_id=1,") == 2  # the program itself is as it was written


GENERATIONS = [  # slice         x  y  z  cores
    ("v4:2x2x1", (2, 2, 1, 2)),
    ("v5p:2x2x2", (2, 2, 2, 1)),
    ("v6e:2x4", (2, 4, 1, 1)),
    ("tpu7x:2x2x1", (2, 2, 1, 2)),
]


KNOWN = """
from compare.compile import compiler
from meshes.devices.generations import GENERATIONS
from meshes.devices.topology import Topology
compiler.start()
for row in GENERATIONS.values():
    for shape in (*row.slices, *(("4x4x4", "8x8x4") if row.torus_dims == 3 else ())):
        for slices in ("", "2x"):
            topology = Topology.parse(f"{slices}{row.name}:{shape}")
            there = compiler.list_devices(topology.slice_name, num_slices=topology.slices)
            print(topology.name, sorted(map(compiler.position_of, there)) == sorted(topology.places()))
"""


def test_every_slice_in_the_table_of_generations_is_one_that_libtpu_knows():
    done = python("-c", KNOWN)
    assert done.returncode == 0, done.stderr
    found = dict(line.split() for line in done.stdout.splitlines())
    assert len(found) == 2 * (9 + 9 + 3 * (6 + 2))
    assert [name for name, same in found.items() if same != "True"] == []


@pytest.mark.parametrize(("topology", "sides"), GENERATIONS)
def test_every_generation_compiles_for_chips_in_any_order(toys, tmp_path, topology, sides):
    places = [[0, *at] for at in itertools.product(*map(range, sides))]
    found = compile_request(tmp_path, request(toys, topology=topology, places=places))
    assert found["mesh_chips"] == places
    assert "all-reduce(" in hlo(tmp_path)


@pytest.mark.parametrize("topology", ["v5e:1x2", "v5e:2x1"])
def test_a_part_of_a_host_compiles(toys, tmp_path, topology):
    places = [[0, 0, 0, 0, 0], [0, int(topology == "v5e:2x1"), int(topology == "v5e:1x2"), 0, 0]]
    found = compile_request(tmp_path, request(toys, devices=2, topology=topology, places=places))
    assert (found["mesh_chips"], found["num_devices"]) == (places, 2)


def test_two_slices_compile_to_the_program_of_one_with_transfers_between(toys, tmp_path):
    """The tensor axis crosses slices here: neighbours in the mesh sit in different slices."""
    places = [[slice_index, x, y, 0, 0] for y in range(2) for x in range(2) for slice_index in range(2)]
    found = compile_request(tmp_path, request(toys, topology="v5e:2x2", num_slices=2, places=places))
    assert "num_partitions=4" in hlo(tmp_path)
    assert "_xla_megascale_" in hlo(tmp_path)
    assert found["mesh_chips"] == [[0, x, y, 0, 0] for y in range(2) for x in range(2)]


def test_memory_and_cost_are_those_of_one_device(plain):
    """bf16 shards over dp2 tp4: x [128,512], up [512,512], down [512,512] in, [128,512] out."""
    found = about(plain)
    assert found["memory"]["argument_bytes"] == 2 * (128 * 512 + 512 * 512 + 512 * 512)
    assert found["memory"]["output_bytes"] == 2 * 128 * 512
    assert found["memory"]["peak_bytes"] >= found["memory"]["argument_bytes"]
    matmuls = 2 * 2 * 128 * 512 * 512
    assert matmuls <= found["cost"]["flops"] < 1.01 * matmuls
    assert set(found["versions"]) == {"jaxlib", "libtpu"}


def test_the_cost_of_a_loop_is_that_of_its_body_once(toys, tmp_path):
    """Why the flops of a scanned model are not those of its step.  If this fails, libtpu learnt to multiply."""
    costs = [
        compile_request(tmp_path / str(times), request(toys, program=str(toys / f"loop{times}.mlirbc")))["cost"]
        for times in (2, 64)
    ]
    assert costs[0] == costs[1]
    matmul = 2 * 512**3
    assert matmul <= costs[0]["flops"] < 1.01 * matmul
    assert costs[0]["loop_bodies"] == "counted once"


def test_a_negative_time_is_no_time():
    class Executable:
        def __init__(self, seconds: float):
            self.seconds = seconds

        def cost_analysis(self) -> dict[str, float]:
            return {"flops": 1.0, "bytes accessed": 2.0, "optimal_seconds": self.seconds}

    assert (estimate_cost(Executable(-2.99))["optimal_s"], estimate_cost(Executable(0.5))["optimal_s"]) == (None, 0.5)


def test_progress_is_a_json_line_as_each_stage_begins(plain):
    told = [json.loads(line) for line in (plain / "stdout").read_text().splitlines()]
    assert [line["stage"] for line in told] == ["import", "compile", "write"]
    assert sorted(line["seconds"] for line in told) == [line["seconds"] for line in told]


def test_no_framework_is_imported():
    pytest.importorskip("libtpu", reason="needs libtpu: pip install -e '.[jax]'")
    done = python(
        "-c",
        "import sys, compare.compile.workers.compile_request\n"
        "from compare.compile import compiler; compiler.start(); print(*sys.modules)",
    )
    assert not {"jax", "flax", "torch", "torch_xla"} & set(done.stdout.split())


def test_a_program_larger_than_hbm_says_bytes_needed_and_bytes_there(toys, tmp_path):
    status, line = refusal(aot(tmp_path, request(toys, program=str(toys / "too_large.mlirbc"))))
    assert status == 1
    assert line.startswith("does not fit in HBM: one device needs ")
    assert line.endswith("has 16,911,433,728 bytes (15.75GiB)")
    assert not (tmp_path / "compiled.json").exists()


REFUSALS = [
    ({"topology": "v9:2x4"}, "libtpu knows no topology 'v9:2x4'"),
    ({"topology": "v5e:3x5"}, "libtpu knows no topology 'v5e:3x5'"),
    ({"places": V5E[:6]}, "6 places for the 8 devices of the topology"),
    ({"places": [*V5E[:7], (0, 2, 0, 0, 0)]}, "no device at slice, x, y, z, core = [0, 2, 0, 0, 0]"),
    ({"places": [*V5E[:7], V5E[0]]}, "two logical devices have one place"),
    ({"options": {"num_partitions": 4}}, "num_replicas 1 x num_partitions 4 is not 8"),
    ({"options": {"fast": True}}, "unknown compile option 'fast'; known are "),
    ({"options": {"num_partitions": 8, "flags": "xla_x=1"}}, "the compile option flags is 'xla_x=1'"),
    ({"program": __file__}, "the program is not StableHLO"),
    ({"program": "nowhere.mlirbc"}, "there is no program nowhere.mlirbc"),
    ({"colour": "red"}, "needs exactly the fields"),
]


@pytest.mark.parametrize(("changes", "said"), REFUSALS)
def test_a_wrong_request_is_refused_with_one_line(toys, tmp_path, changes, said):
    status, line = refusal(aot(tmp_path, request(toys, **changes)))
    assert status == 2
    assert said in line


def test_a_cut_program_is_refused(toys, tmp_path):
    cut = tmp_path / "cut.mlirbc"
    cut.write_bytes((toys / "program8.mlirbc").read_bytes()[:1000])
    status, line = refusal(aot(tmp_path, request(toys, program=str(cut))))
    assert (status, line.startswith("the program is not StableHLO")) == (2, True)


def test_libtpu_aborts_on_an_option_vector_of_the_wrong_length(toys, tmp_path):
    """Why every compile has a process of its own: no exception can be caught here."""
    vector = {"allow_spmd_sharding_propagation_to_output": [False, False, True]}
    done = aot(tmp_path, request(toys, options=vector))
    assert done.returncode == -6
    assert "Check failed" in done.stderr
    assert not (tmp_path / "compiled.json").exists()
