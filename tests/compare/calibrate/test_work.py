"""The work of a benchmark's program, by hand."""

from pathlib import Path

import pytest

from compare.calibrate.benchmarks import build_windows
from compare.calibrate.timed_programs import list_programs
from compare.calibrate.work import Device, count_work
from compare.timeline.errors import TimingError

MATMUL = """\
HloModule products, is_scheduled=true

ENTRY %main (a: f32[256,256], b: f32[256,256]) -> f32[256,256] {
  %a = f32[256,256]{1,0} parameter(0)
  %b = f32[256,256]{1,0} parameter(1)
  %first = f32[256,256]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %second = f32[256,256]{1,0} dot(%first, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
ALL_REDUCE = """\
HloModule sum, is_scheduled=true, num_partitions=8

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main (a: f32[16,1024]) -> f32[16,1024] {
  %a = f32[16,1024]{1,0} parameter(0)
  ROOT %r = f32[16,1024]{1,0} all-reduce(%a), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true, to_apply=%add
}
"""  # noqa: E501
LIBRARY = MATMUL.replace("dot(%first, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "copy(%first)").replace(
    "dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", 'custom-call(%a, %b), custom_call_target="gemm"'
)
CPU = Device.of("cpu", [])


def test_two_products():
    """2 × 2 × 256³ FLOPs; each reads two arrays of 256 kB and writes one."""
    work = count_work(MATMUL, CPU)
    assert (work["chips"], work["matrix_flops"], work["memory_bytes"]) == (1, 4 * 256**3, 6 * 4 * 256**2)
    assert (work["collectives"], work["ici_byte_hops"]) == (0, 0)


def test_an_all_reduce_over_a_ring_of_eight():
    """Of 64 kB 7/8 twice, half either way round: 7/8 on each link, in 14 steps; 8 devices send 14/8 each."""
    work, payload = count_work(ALL_REDUCE, CPU), 65536
    assert (work["collectives"], work["hops"]) == (1, 14)
    assert work["link_bytes"] == pytest.approx(payload * 7 / 8)
    assert work["ici_byte_hops"] == pytest.approx(payload * 14)
    assert (work["chips"], work["devices"]) == (8, 8)


def test_the_cores_of_a_chip_are_devices_of_one_chip():
    """A tpu7x:2x2x1 has four chips of two cores, each a device: eight devices; the first three are of two chips."""
    coords = [[x, y, 0, core] for y in range(2) for x in range(2) for core in range(2)]
    device = Device.of("TPU7x", coords)
    assert (device.count(8), device.count(3)) == ({"chips": 4, "devices": 8}, {"chips": 2, "devices": 3})
    work = count_work(ALL_REDUCE, device)
    assert (work["chips"], work["devices"]) == (4, 8)


def test_devices_of_a_tpu_lie_where_their_coordinates_say():
    """Of v5e:2x4 a ring over neighbours, of which no link closes a side: eight devices are still one ring."""
    coords = [[x, y, 0, 0] for y in range(4) for x in range(2)]
    device = Device.of("TPU v5 lite", coords)
    assert device.generation is not None
    assert (device.generation.name, device.torus(8).sides, device.torus(8).wraps) == ("v5e", (2, 4, 1), (False,) * 2)
    assert count_work(ALL_REDUCE, device)["hops"] == 14


def measured(windows, kind="cpu", **more):
    device = {"platform": "cpu", "kind": kind, "num_devices": 1, "num_cores": 8, "coords": []}
    return {"device": device, "programs": [{"number": 0, "windows": windows}], "idle": [], **more}


def test_a_window_has_the_work_of_all_its_calls():
    programs = list_programs("cpu", kinds=("matmul",))
    windows = [{"calls": 10, "time_s": 0.5, "energy_j": None}, {"calls": 10, "time_s": 0.6, "energy_j": 30.0}]
    idle = [{"calls": 1, "time_s": 2.0, "energy_j": 40.0}]
    table = build_windows(measured(windows, idle=idle), programs, {0: MATMUL}, profiles=Path()).table
    assert table["name"].to_list() == ["matmul 128", "matmul 128", "idle"]
    assert table["matrix_flops"].to_list() == [10 * 4 * 256**3] * 2 + [0]
    assert table["energy_j"].isna().to_list() == [True, False, False]


def test_a_product_in_a_librarys_kernel_has_the_flops_that_were_asked_for():
    """cuBLAS by a custom call: 4 products of 128 × 128."""
    programs = list_programs("cpu", kinds=("matmul",))
    windows = [{"calls": 1, "time_s": 0.5, "energy_j": None}]
    table = build_windows(measured(windows), programs, {0: LIBRARY}, profiles=Path()).table
    assert table["matrix_flops"].to_list() == [4 * 2 * 128**3]


def test_a_program_that_fails_is_a_note_and_the_only_one_an_error():
    programs = list_programs("cpu", kinds=("matmul",))
    windows = [{"calls": 1, "time_s": 0.5, "energy_j": None}]
    failed = {"number": 1, "error": "RESOURCE_EXHAUSTED: no memory"}
    both = measured(windows)
    both["programs"].append(failed)
    assert build_windows(both, programs, {0: MATMUL}, profiles=Path()).notes == (
        "matmul 256 was not measured: RESOURCE_EXHAUSTED: no memory",
    )
    with pytest.raises(TimingError, match="matmul 256 was not measured"):
        build_windows({**both, "programs": [failed]}, programs, {}, profiles=Path())


def test_collectives_are_measured_over_two_devices_and_over_all():
    names = [program["name"] for program in list_programs("tpu", kinds=("all-reduce",))]
    assert names == [
        f"all-reduce {size} over {n}" for n in (2, "all") for size in ("64 KiB", "1 MiB", "16 MiB", "128 MiB")
    ]


def test_one_device_has_no_collectives_and_says_so():
    """Of those the process measures none: there is nothing but the product."""
    programs = list_programs("gpu", kinds=("matmul", "all-reduce"))
    windows = [{"calls": 1, "time_s": 0.5, "energy_j": None}]
    assert build_windows(measured(windows), programs, {0: MATMUL}, profiles=Path()).notes == (
        "no collective is measured: there is one device",
    )
