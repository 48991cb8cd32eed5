"""The longest operations of tiny programs, by hand: a cache that is copied in every turn of a loop, among others."""

import json

import pytest

from compare.hlo.text.module import read
from compare.metrics.metrics_section import build_section
from compare.metrics.operations import MOST_OPERATIONS, ProgramText, list_operations
from compare.metrics.work import Peaks
from compare.report.model.codec import encode
from compare.timeline.tracks.tracks import DeviceTracks
from tests.compare.schedule.toys import ALL_REDUCE_NS, X, all_reduce, program, run, step_ns
from tests.compare.timeline.build import comm, compute, row, steps, timeline
from tests.places import EXAMPLE

REACHED = Peaks(flops_per_s=1e12, memory_bytes_per_s=1e11)
"""Those of the toy chip: 1000 FLOPs and 100 bytes a ns."""

CORE = 'metadata={op_name="layer.attention.core/copy" source_file="cache.py" source_line=3}'
UP = 'metadata={op_name="layer.mlp.up/dot_general" source_file="mlp.py" source_line=7}'
ESTIMATE = 'backend_config={"window_config":{"estimated_cycles":"4000"}}'
CONTRACTED = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
CACHE, TURNED = "bf16[8,1000]{1,0}", "bf16[8,1000]{0,1}"
CARRY = f"(s32[], {X}, {CACHE}, {CACHE})"

COPIES_IN_A_LOOP = program(
    f"""
  k = {CACHE} parameter(1)
  v = {CACHE} parameter(2)
  w = bf16[1000,100]{{1,0}} parameter(3)
  g = f32[1000]{{0}} parameter(4)
  zero = s32[] constant(0)
  start = {CARRY} tuple(zero, x, k, v)
  around = {CARRY} while(start), condition=test, body=body
  left = bf16[8,1000]{{1,0:S(1)}} constant(0)
  product = bf16[8,100]{{1,0:S(1)}} dot(left, w), {CONTRACTED}, {UP}, {ESTIMATE}
  begun = ({X}, f32[1000]{{0}}, u32[]) copy-start(g), {UP}
  fetched = {X} copy-done(begun)
  ROOT y = {X} {all_reduce("fetched")}
""",
    more=f"""
test {{
  carry = {CARRY} parameter(0)
  i = s32[] get-tuple-element(carry), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}}

body {{
  carry.1 = {CARRY} parameter(0)
  i.1 = s32[] get-tuple-element(carry.1), index=0
  x.1 = {X} get-tuple-element(carry.1), index=1
  k.1 = {CACHE} get-tuple-element(carry.1), index=2
  v.1 = {CACHE} get-tuple-element(carry.1), index=3
  one = s32[] constant(1)
  next = s32[] add(i.1, one)
  copy.1 = {TURNED} copy(k.1), {CORE}
  copy.2 = {TURNED} copy(v.1), {CORE}
  y.1 = {X} compute(x.1, 500)
  ROOT again = {CARRY} tuple(next, y.1, k.1, v.1)
}}
""",
)
NAMES = {0: "tokens", 1: "cache.k", 2: "cache.v", 3: "mlp.up", 4: "norm.scale"}


def operations_of(text, *, reached=REACHED, names=NAMES):
    module = read(text)
    tracks = DeviceTracks.of(run(text))
    rows = [row("y", "all-reduce", "tp", 4000, ((0, 1, 2, 3), (4, 5, 6, 7)))]
    found = list_operations(
        tracks, ProgramText(module, parameters=names, caches=frozenset({1, 2})), rows=rows, reached=reached
    )
    return {operation.name: operation for operation in found}


def test_a_cache_that_a_loop_copies_in_every_turn_is_one_row_of_both_copies():
    """16 kB read and 16 kB written at 100 bytes a ns: 320 ns, twice in each of three turns."""
    copy = operations_of(COPIES_IN_A_LOOP)["copy.1"]
    assert (copy.opcode, copy.shape, copy.role, copy.bound) == ("copy", "bf16[8,1000]", "compute", "memory")
    assert (copy.instructions, copy.executions, copy.time_ns, copy.memory_bytes) == (2, 6, 1920, 192_000)
    assert (copy.scope, copy.source_line, copy.tensors) == (
        "layer.attention.core",
        "cache.py:3",
        ("cache.k", "cache.v"),
    )


def test_the_longest_comes_first_and_all_of_a_step_is_there():
    """A product of 4000 cycles; copies; three turns of 500; an all-reduce, all exposed; a wait of 40 ns."""
    found = operations_of(COPIES_IN_A_LOOP)
    times = {name: operation.time_ns for name, operation in found.items()}
    expected = {"product": 4000, "copy.1": 1920, "y.1": 1500, "y": ALL_REDUCE_NS, "fetched": 40}
    assert list(times.items()) == list(expected.items())
    assert step_ns(run(COPIES_IN_A_LOOP)) == sum(expected.values())


def test_the_longer_bound_counts_if_it_is_half_of_the_time():
    """The product: 2·8·100·1000 FLOPs take 1600 ns, 200 kB of weight 2000 of 4000 ns.  The fusion moves nothing."""
    found = operations_of(COPIES_IN_A_LOOP)
    product, other = found["product"], found["y.1"]
    assert (product.matrix_flops, product.memory_bytes, product.tensors) == (1_600_000, 200_000, ("mlp.up",))
    assert (product.arithmetic_ns, product.memory_ns, product.bound) == (1600, 2000, "memory")
    assert (other.arithmetic_ns, other.memory_ns, other.bound) == (0, 0, "other")
    slower = operations_of(COPIES_IN_A_LOOP.replace('"4000"', '"4001"'))["product"]
    assert slower.bound == "other"


def test_where_arithmetic_takes_longer_it_is_the_bound():
    faster = Peaks(flops_per_s=1e12, memory_bytes_per_s=1e12)
    assert operations_of(COPIES_IN_A_LOOP, reached=faster)["product"].bound == "other"
    slower = Peaks(flops_per_s=0.5e12, memory_bytes_per_s=1e12)
    assert operations_of(COPIES_IN_A_LOOP, reached=slower)["product"].bound == "arithmetic"


def test_a_wait_for_a_local_copy_names_what_is_copied_and_all_its_bytes():
    """4 kB at 100 bytes a ns, and nothing runs beside it."""
    wait = operations_of(COPIES_IN_A_LOOP)["fetched"]
    assert (wait.role, wait.opcode, wait.shape, wait.bound) == ("copy", "copy", "f32[1000]", "memory")
    assert (wait.time_ns, wait.memory_bytes, wait.executions, wait.tensors) == (40, 4000, 1, ("norm.scale",))
    assert (wait.scope, wait.source_line) == ("layer.mlp.up", "mlp.py:7")


def test_communication_stands_in_the_list_with_its_exposed_time():
    comm_row = operations_of(COPIES_IN_A_LOOP)["y"]
    assert (comm_row.role, comm_row.opcode, comm_row.bound) == ("communication", "all-reduce", "collective")
    assert (comm_row.time_ns, comm_row.payload_bytes, comm_row.memory_bytes) == (ALL_REDUCE_NS, 4000, None)


def test_without_a_devices_rates_there_are_times_and_no_bounds():
    found = operations_of(COPIES_IN_A_LOOP, reached=None)
    assert {operation.bound for operation in found.values()} == {None, "collective"}
    assert found["copy.1"].time_ns == 1920


def test_the_same_copy_on_another_line_is_another_row():
    moved = COPIES_IN_A_LOOP.replace(f"copy(v.1), {CORE}", f"copy(v.1), {CORE.replace('line=3', 'line=4')}")
    found = operations_of(moved)
    assert {name: (found[name].instructions, found[name].tensors) for name in ("copy.1", "copy.2")} == {
        "copy.1": (1, ("cache.k",)),
        "copy.2": (1, ("cache.v",)),
    }


def test_a_parameter_without_a_name_is_not_named():
    assert operations_of(COPIES_IN_A_LOOP, names={})["copy.1"].tensors == ()


def test_of_many_operations_the_longest_ten_are_listed():
    entry = "\n".join(f"  y{at} = f32[{1000 - at}]{{0}} copy(z{at})" for at in range(12))
    given = "\n".join(f"  z{at} = f32[{1000 - at}]{{0}} parameter({at + 1})" for at in range(12))
    found = operations_of(program(f"{given}\n{entry}\n  ROOT y = {X} compute(x, 1)"), names={})
    assert list(found) == [f"y{at}" for at in range(MOST_OPERATIONS)]


def test_a_timeline_without_work_has_none():
    made = timeline([compute(0, 10), comm(10, 20)], steps(0, 100))
    text = ProgramText(read(COPIES_IN_A_LOOP))
    assert list_operations(DeviceTracks.of(made), text, rows=(), reached=REACHED) == ()


def test_a_section_without_its_program_has_no_key():
    made = timeline([compute(0, 10)], steps(0, 100))
    assert "operations" not in encode(build_section(made))


@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize("arm", ["jax", "torchxla"])
def test_the_example_names_lines_and_parameters(phase, arm):
    """Each arm's longest products read the weights of the MLP, each 80 times: 16 layers in 5 ticks."""
    program = json.loads((EXAMPLE / "report.json").read_text())["phases"][phase]["arms"][arm]
    rows = program["timing"]["operations"]
    assert len(rows) == MOST_OPERATIONS
    assert [row["time_ns"] for row in rows] == sorted((row["time_ns"] for row in rows), reverse=True)
    down = next(row for row in rows if row["scope"] == "layer.mlp.down" and row["role"] == "compute")
    assert (down["executions"], down["tensors"]) == (80, ["layers.mlp.down"])
    assert down["matrix_flops"] == 80 * 2 * (2 * (1024 if phase == "prefill" else 1)) * 3584 * 4096
    assert down["source_line"].startswith(f"{arm}_impl/decoder/layers.py:")
