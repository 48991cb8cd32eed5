"""TPU profiles: which line says what.  No real TPU profile with collectives was at hand: these are of its layout."""

import json

import numpy as np
import pytest

from compare.profile.platforms.tpu import is_tpu, op_events
from compare.profile.xplane.device_events import RAW
from compare.profile.xplane.reader import read_file
from tests.compare.timeline.spaces import Ref, Space, tpu

FUSION = "%fusion.2 = f32[8]{0:T(256)} fusion(f32[8]{0:T(256)} %p), kind=kLoop, calls=%fused_computation"
REDUCE = "%all-reduce.1 = f32[8]{0:T(256)} all-reduce(f32[8]{0:T(256)} %fusion.2), replica_groups={{0,1}}"
COPY = "%copy-start.3 = (f32[8]{0}, f32[8]{0:S(1)}, u32[]{:S(2)}) copy-start(f32[8]{0:S(1)} %p)"


def raw(space, tmp_path):
    return op_events(read_file(space.write(tmp_path)))


def list_rows(events, *columns):
    return [tuple(row) for row in events[list(columns)].itertuples(index=False)]


def test_the_columns_are_those_of_every_platform(tmp_path):
    space = Space()
    tpu(space, 0, [(FUSION, 0, 5)])
    events = raw(space, tmp_path).events
    assert {name: str(events[name].dtype) for name in events} == RAW


def test_an_operation_has_its_instructions_name_its_line_of_hlo_and_its_program(tmp_path):
    space = Space()
    about = {"hlo_category": Ref("all-reduce"), "tf_op": "jit(f)/layer.mlp.down/psum:"}
    tpu(
        space,
        3,
        [(FUSION, 10, 5), (REDUCE, 15, 5, {"about": about})],
        XLA_Modules=[("jit_f(17)", 10, 100, {"stats": {"run_id": 8}})],
    )
    events = raw(space, tmp_path).events
    assert list_rows(events, "device", "line", "name", "hlo_op", "text", "module", "run", "main") == [
        (3, "XLA Ops", "fusion.2", "fusion.2", FUSION, "jit_f(17)", 8, True),
        (3, "XLA Ops", "all-reduce.1", "all-reduce.1", REDUCE, "jit_f(17)", 8, True),
    ]
    assert list_rows(events, "category", "tf_op") == [("", ""), ("all-reduce", "jit(f)/layer.mlp.down/psum:")]
    assert events["wait_ns"].isna().all()


def test_names_without_hlo_stay_names(tmp_path):
    space = Space()
    plane = space.plane("/device:TPU:0")
    plane.line("XLA Ops").event("fusion.2", 0, 5).event("long", 5, 5, stats={"hlo_op": "all-gather.4"})
    assert list_rows(raw(space, tmp_path).events, "hlo_op", "text") == [("fusion.2", ""), ("all-gather.4", "")]


def test_a_bare_name_is_the_instructions_with_or_without_its_mark(tmp_path):
    space = Space()
    space.plane("/device:TPU:0").line("XLA Ops").event("%all-gather.4", 0, 5).event("x", 5, 5, display="%fusion.2")
    operations = [("all-gather.4", "all-gather.4"), ("fusion.2", "fusion.2")]
    assert list_rows(raw(space, tmp_path).events, "name", "hlo_op") == operations


def test_each_operation_belongs_to_the_execution_in_which_it_begins(tmp_path):
    space = Space()
    tpu(
        space,
        0,
        [(FUSION, 0, 5), (FUSION, 20, 5), (FUSION, 40, 5), (FUSION, 99, 5)],
        XLA_Modules=[("jit_f(1)", 0, 10), ("jit_g(2)", 20, 10), ("jit_f(1)", 40, 10)],
    )
    device_events = raw(space, tmp_path)
    assert list_rows(device_events.events, "module", "run") == [
        ("jit_f(1)", 0),
        ("jit_g(2)", 1),
        ("jit_f(1)", 2),
        ("", -1),
    ]
    assert list_rows(device_events.executions, "module", "start_ns", "duration_ns") == [
        ("jit_f(1)", 0, 10),
        ("jit_g(2)", 20, 10),
        ("jit_f(1)", 40, 10),
    ]


def test_outside_all_executions_the_programs_number_is_known(tmp_path):
    space = Space()
    tpu(space, 0, [(FUSION, 0, 5, {"about": {"program_id": 17}})])
    assert list_rows(raw(space, tmp_path).events, "module", "run") == [("(17)", -1)]


def test_lines_of_asynchronous_operations_and_of_other_cores_are_told_apart(tmp_path):
    space = Space()
    tpu(space, 1, [(FUSION, 0, 5)], Async_XLA_Ops=[(COPY, 1, 9)])
    space.plane("/device:TPU:1 SparseCore 0").line("Sparse Core Ops").event(REDUCE, 2, 3)
    space.plane("/device:TPU:1 SparseCore Tile 1").line("XLA Ops").event(REDUCE, 2, 3)
    device_events = raw(space, tmp_path)
    assert list_rows(device_events.events, "device", "line", "main") == [
        (1, "XLA Ops", True),
        (1, "Async XLA Ops", False),
        (1, "SparseCore 0: Sparse Core Ops", False),
        (1, "SparseCore Tile 1: XLA Ops", False),
    ]
    assert device_events.spanning_lines == {"Async XLA Ops"}
    assert device_events.other_cores == {"SparseCore 0: Sparse Core Ops", "SparseCore Tile 1: XLA Ops"}


def test_derived_lines_and_counters_are_no_operations(tmp_path):
    space = Space()
    derived = (
        "TC Overlay",
        "Framework Ops",
        "Framework Name Scope",
        "Source code",
        "XLA TraceMe",
        "_counters_",
        "counters_0",
        "Scalar Unit",
        "Host Offload Ops",
        "Tensor Core Sync Flag",
    )
    tpu(space, 0, [(FUSION, 0, 5)], **{name.replace(" ", "_"): [("x", 0, 5)] for name in derived[:5]})
    for name in derived[5:]:
        space.planes[0].line(name).event("x", 0, 5)
    device_events = raw(space, tmp_path)
    assert len(device_events.events) == 1
    assert device_events.skipped == {}


def test_lines_that_nobody_knows_are_counted(tmp_path):
    space = Space()
    for device in range(2):
        tpu(space, device, [(FUSION, 0, 5)], Quantum_Ops=[("x", 0, 5), ("y", 5, 5)])
    assert raw(space, tmp_path).skipped == {"line 'Quantum Ops'": 4}


def test_a_devices_own_steps_bear_their_numbers(tmp_path):
    space = Space()
    tpu(space, 0, [(FUSION, 0, 5)], Steps=[("11", 0, 100), ("12", 100, 90), ("13", 190, 0)])
    tpu(space, 1, [(FUSION, 0, 5)], Steps=[("11", 2, 100), ("12", 102, 90)])
    steps = raw(space, tmp_path).steps
    assert list_rows(steps, "device", "step", "start_ns", "duration_ns") == [
        (0, 11, 0, 100),
        (0, 12, 100, 90),
        (1, 11, 2, 100),
        (1, 12, 102, 90),
    ]


def test_steps_whose_names_are_no_numbers_are_counted(tmp_path):
    space = Space()
    tpu(space, 0, [(FUSION, 0, 5)], Steps=[("train", 0, 100), ("train", 100, 90)])
    assert list_rows(raw(space, tmp_path).steps, "step", "start_ns") == [(0, 0), (1, 100)]


def test_lines_keep_their_own_zero(tmp_path):
    space = Space()
    plane = space.plane("/device:TPU:0")
    plane.line("XLA Modules", timestamp_ns=1_700_000_000_000_001_000).event("jit_f(1)", 0, 500)
    plane.line("XLA Ops", timestamp_ns=1_700_000_000_000_000_000).event(FUSION, 1100, 5)
    events = raw(space, tmp_path).events
    assert list_rows(events, "start_ns", "module") == [(1100, "jit_f(1)")]


def test_a_device_that_lost_events_says_so(tmp_path):
    space = Space()
    tpu(space, 0, [(FUSION, 0, 5)], XLA_TraceMe=[("Trace Buffers Dropped", 0, 1)])
    (note,) = raw(space, tmp_path).notes
    assert "trace buffers were dropped" in note


def test_what_crosses_slices_has_a_plane_that_is_named(tmp_path):
    space = Space()
    tpu(space, 0, [(FUSION, 0, 5)])
    space.plane("/device:CUSTOM:Megascale Trace").line("x").event("send", 0, 1)
    (note,) = raw(space, tmp_path).notes
    assert "Megascale" in note


def test_a_host_without_tpus_is_none(tmp_path):
    space = Space()
    space.plane("/host:CPU").line("python").event("x", 0, 1)
    read = read_file(space.write(tmp_path))
    assert not is_tpu(read)
    assert len(op_events(read).events) == 0
    assert np.array_equal(list(op_events(read).events), list(RAW))


def test_xprof_sees_the_same_operations(tmp_path):
    converter = pytest.importorskip("xprof.convert.raw_to_tool_data")
    space = Space()
    for device in range(2):
        plane = space.plane(f"/device:TPU:{device}", device_type_string="TPU v5 lite")
        modules, ops = (plane.line(name, timestamp_ns=1000 + device) for name in ("XLA Modules", "XLA Ops"))
        modules.event("jit_f(17)", 0, 400)
        for at in range(0, 400, 40):
            ops.event(FUSION, at, 30.25, display="fusion.2", about={"hlo_category": Ref("loop fusion")})
            ops.event(REDUCE, at + 30.25, 9.5, display="all-reduce.1", about={"tf_op": "jit(f)/psum:"})
    path = space.write(tmp_path)
    data, _ = converter.xspace_to_tool_data([str(path)], "trace_viewer", {})
    traced = json.loads(data)["traceEvents"]
    lines = {(row["pid"], row["tid"]): row["args"]["name"] for row in traced if row.get("name") == "thread_name"}
    theirs = [
        (
            row["pid"] - 1,
            row["name"],
            row["ts"] * 1000,
            row["dur"] * 1000,
            row["args"].get("hlo_category", ""),
            row["args"].get("tf_op", ""),
        )
        for row in traced
        if row.get("ph") == "X" and lines[row["pid"], row["tid"]] == "XLA Ops"
    ]
    read = read_file(path)
    ours = op_events(read).events.assign(start_ns=lambda events: events["start_ns"] + read.zero_ns)
    columns = ("device", "name", "start_ns", "duration_ns", "category", "tf_op")
    for mine, other in zip(list_rows(ours, *columns), sorted(theirs, key=lambda row: (row[0], row[2])), strict=True):
        assert (mine[:2], mine[4:]) == (other[:2], other[4:])
        assert mine[2:4] == pytest.approx(other[2:4], abs=1e-6)
