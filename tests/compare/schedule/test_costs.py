"""What one instruction costs: cycles, or bytes through the memory, counted by hand."""

from dataclasses import replace

import pytest

from compare.hlo.text.module import read
from compare.schedule.costs import InstructionCosts, is_unknown
from compare.schedule.hardware import Hardware
from compare.schedule.work.memory import copied_bytes, is_free
from meshes.devices.generations import generation
from tests.compare.schedule.toys import ROUND

TEXT = """HloModule m
sliced {
  p0 = f32[100,10]{1,0} parameter(0)
  p1 = s32[] parameter(1)
  zero = s32[] constant(0)
  cut = f32[1,10]{1,0} dynamic-slice(p0, p1, zero), dynamic_slice_sizes={1,10}
  ROOT out = f32[10]{0:S(1)} bitcast(cut)
}
outer {
  o0 = f32[100,10]{1,0} parameter(0)
  o1 = s32[] parameter(1)
  ROOT in = f32[10]{0:S(1)} fusion(o0, o1), kind=kLoop, calls=sliced
}
updated {
  u0 = f32[100,10]{1,0} parameter(0)
  u1 = f32[1,10]{1,0} parameter(1)
  at = s32[] constant(3)
  ROOT new = f32[100,10]{1,0} dynamic-update-slice(u0, u1, at, at)
}
whole {
  w0 = f32[100,10]{1,0} parameter(0)
  w1 = s32[] parameter(1)
  zero.1 = s32[] constant(0)
  cut.1 = f32[1,10]{1,0} dynamic-slice(w0, w1, zero.1), dynamic_slice_sizes={1,10}
  both = f32[100,10]{1,0} add(w0, w0)
  ROOT pair = (f32[1,10]{1,0:S(1)}, f32[100,10]{1,0}) tuple(cut.1, both)
}
ENTRY e {
  big = f32[100,10]{1,0:T(8,128)} parameter(0)
  near = f32[100,10]{1,0:T(8,128)S(1)} parameter(1)
  i = s32[]{:T(128)S(6)} parameter(2)
  row = f32[1,10]{1,0:S(1)} parameter(3)
  reads = f32[100,10]{1,0:S(1)} negate(big)
  writes = f32[100,10]{1,0} negate(near)
  stays = f32[100,10]{1,0:S(1)} negate(near)
  twice = f32[100,10]{1,0} add(big, big)
  part = f32[10]{0:S(1)} fusion(big, i), kind=kLoop, calls=sliced
  deep = f32[10]{0:S(1)} fusion(big, i), kind=kLoop, calls=outer
  change = f32[100,10]{1,0} fusion(big, row), kind=kLoop, calls=updated
  all = (f32[1,10]{1,0:S(1)}, f32[100,10]{1,0}) fusion(big, i), kind=kLoop, calls=whole
  slow = f32[100,10]{1,0:S(1)} negate(big), backend_config={"estimated_cycles":"500"}
  quick = f32[100,10]{1,0:S(1)} negate(big), backend_config={"estimated_cycles":"5"}
  product = f32[100,10]{1,0:S(1)} negate(big), backend_config={"estimated_cycles":"50","cost_model_type":"COST_MODEL_TYPE_CLASSIC"}
  moved = f32[100,10]{1,0:S(1)} negate(big), backend_config={"estimated_cycles":"50","cost_model_type":"COST_MODEL_TYPE_INVALID"}
  windows = f32[100,10]{1,0:S(1)} negate(near), backend_config={"estimated_cycles":"1000","iteration_bounds":["2","1","3"]}
  fixed = f32[100,10]{1,0:S(1)} negate(near), backend_config={"estimated_cycles":"450","iteration_bounds":["2","1","3"]}
  windowed = f32[100,10]{1,0:S(1)} negate(near), backend_config={"estimated_cycles":"1000","iteration_bounds":["2","1","3"],"cost_model_type":"COST_MODEL_TYPE_CLASSIC"}
  sparse = f32[100,10]{1,0:S(1)} negate(big), backend_config={"estimated_cycles":"9223372036854775807"}
  fetch = (f32[100,10]{1,0:S(1)}, f32[100,10]{1,0}, u32[]{:S(2)}) copy-start(big)
  over = (f32[100,10]{1,0}, f32[100,10]{1,0}, u32[]{:S(2)}) copy-start(big)
  piece = ((f32[100,10]{1,0}), f32[1,10]{1,0:S(1)}, u32[]{:S(2)}) slice-start(big), slice={[0:1], [0:10]}
  room = f32[9]{0} custom-call(), custom_call_target="AllocateBuffer"
  kernel = f32[100,10]{1,0} custom-call(big), custom_call_target="tpu_custom_call"
  told = f32[100,10]{1,0} custom-call(big), custom_call_target="tpu_custom_call", backend_config={"custom_call_config":{"body":"x","cost_estimate":{"flops":"500000","bytes_accessed":"8"}}}
  ROOT r = (f32[100,10]{1,0}) tuple(twice)
}
"""  # noqa: E501
ITEMS = {item.name: item for item in read(TEXT).entry}


@pytest.mark.parametrize(
    ("name", "moved"),
    [
        ("reads", 4000),  # the operand
        ("writes", 4000),  # the result
        ("stays", 0),  # both in on-chip memory
        ("twice", 8000),  # one operand, named twice, and the result
        ("part", 40),  # a row of the operand
        ("deep", 40),  # the same through a fusion in the fusion
        ("change", 40),  # in place: only the row
        ("all", 8000),  # a slice, but also the whole; a result in memory, another not
        ("kernel", 8000),
    ],
)
def test_bytes_through_the_memory(name, moved):
    assert InstructionCosts(ROUND).memory_bytes(ITEMS[name]) == moved


@pytest.mark.parametrize(
    ("name", "ns"),
    [
        ("reads", 40),  # 4000 bytes at 100 a ns
        ("slow", 500),  # the estimate is more
        ("quick", 40),  # the estimate is less than the bytes take
        ("kernel", 80),  # nothing is said of it but its shapes
        ("told", 500),  # 500,000 operations, at 1000 a ns
        ("r", 0),
        ("room", 0),
    ],
)
def test_the_larger_of_estimate_and_bytes_counts(name, ns):
    assert InstructionCosts(ROUND).compute_ns(ITEMS[name]) == ns


def test_an_estimate_of_the_memory_alone_gives_way_to_the_memorys_rate():
    """The compiler takes 0.0125 cycles a byte, 50 for these 4000: what it says beyond the true 40 ns is only that."""
    pessimistic = replace(ROUND, copy_cycles_per_byte=0.0125)
    assert InstructionCosts(pessimistic).compute_ns(ITEMS["moved"]) == 40
    assert InstructionCosts(pessimistic).compute_ns(ITEMS["product"]) == 50
    assert InstructionCosts(pessimistic).compute_ns(ITEMS["slow"]) == 500


@pytest.mark.parametrize(("name", "ns"), [("windows", 500), ("fixed", 450), ("windowed", 1000), ("slow", 500)])
def test_what_the_compiler_counts_between_the_windows_of_a_loop_passes_beside_the_work(name, ns):
    """Six windows have five pauses of 100 cycles between them; an estimate of less is none of windows, and a product's
    stays as it is."""
    assert InstructionCosts(replace(ROUND, window_cycles=100.0)).compute_ns(ITEMS[name]) == ns


def test_where_the_compiler_has_no_estimate_the_bytes_count():
    assert InstructionCosts(ROUND).compute_ns(ITEMS["sparse"]) == 40


def test_cycles_take_the_time_that_they_are_measured_to_take():
    assert InstructionCosts(replace(ROUND, cycle_ns=0.5)).compute_ns(ITEMS["slow"]) == 250


@pytest.mark.parametrize(("name", "moved"), [("fetch", 4000), ("over", 8000), ("piece", 40)])
def test_bytes_of_local_copies(name, moved):
    assert copied_bytes(ITEMS[name]) == moved
    assert InstructionCosts(ROUND).copy_ns(ITEMS[name]) == moved / 100


def test_a_kernel_of_which_nothing_is_said_is_known_as_such():
    assert [name for name in ("kernel", "told", "room", "reads") if is_unknown(ITEMS[name])] == ["kernel"]


def test_names_for_what_is_there_are_free():
    assert [name for name in ("big", "r", "room", "kernel", "reads") if is_free(ITEMS[name])] == ["big", "r", "room"]


def test_a_known_product_takes_what_was_measured():
    """v6e, 8192 x 8192 x 8192: 2,977,840 cycles at 1.75 GHz, measured 1.3288 ms."""
    hardware = Hardware.of(generation("v6e"))
    assert hardware.cycle_ns * 2_977_840 == pytest.approx(1.3288e6, rel=1e-4)


PRODUCTS = """HloModule m
ENTRY e {
  a = f32[100,100]{1,0} parameter(0)
  v = f32[1,1000]{1,0} parameter(1)
  w = f32[1000,1000]{1,0} parameter(2)
  square = f32[100,100]{1,0} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}, backend_config={"estimated_cycles":"3000","cost_model_type":"COST_MODEL_TYPE_CLASSIC"}
  thin = f32[1,1000]{1,0} dot(v, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, backend_config={"estimated_cycles":"60000","cost_model_type":"COST_MODEL_TYPE_CLASSIC"}
  ROOT r = (f32[100,100]{1,0}) tuple(square)
}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("name", "core", "memory", "ns"),
    [
        # 2 · 10^6 FLOPs take 2000 ns, 80,000 bytes 800: the arithmetic binds the 3000 cycles.
        ("square", 1.0, 1.0, 3000),
        ("square", 0.5, 1.0, 6000),
        ("square", 1.0, 0.5, 3000),
        ("square", 1.0, 0.25, 3000 * 3200 / 2000),  # the bytes now take 3200
        ("square", 4.0, 1.0, 3000 * 800 / 2000),  # the arithmetic only 500: the bytes bind
        # 2 · 10^6 FLOPs take 2000 ns, 4,008,000 bytes 40,080: the memory binds the 60,000 cycles.
        ("thin", 1.0, 1.0, 60000),
        ("thin", 0.5, 1.0, 60000),
        ("thin", 1.0, 2.0, 30000),
    ],
)
def test_at_another_speed_a_product_follows_what_binds_it(name, core, memory, ns):
    (item,) = (item for item in read(PRODUCTS).entry if item.name == name)
    hardware = replace(
        ROUND, core_speed=core, flops_per_ns=1000.0 * core, memory_speed=memory, hbm_bytes_per_ns=100.0 * memory
    )
    assert InstructionCosts(hardware).compute_ns(item) == pytest.approx(ns)
