"""Waits for local copies: a kind of time beside compute, communication and idle.

Profiles with the traits of public ones: host memory as `S(5)`, starts that take no time, `Async XLA Ops` on TPU:0
alone, slices as `async-start`.
"""

import pytest

from compare.ccl_bench_metrics.subject import Subject
from compare.ccl_bench_metrics.times import average_memory_bandwidth, memory_transfer_overhead
from compare.profile.join.local_copies import local_copy_of
from tests.compare.timeline.build import trace_summary
from tests.compare.timeline.scenes import AXES, FUSION, REDUCE, collective, comms, serialize, timeline
from tests.compare.timeline.spaces import Ref, Space, tpu

HBM, HOST, CHIP = "f32[1000]{0:T(1024)}", "f32[1000]{0:T(1024)S(5)}", "f32[1000]{0:T(1024)S(1)}"
FROM_HOST = f"({HBM}, {HOST}, u32[]{{:S(2)}})"
TO_HOST = f"({HOST}, {HBM}, u32[]{{:S(2)}})"


def fetch(number):
    return f"%copy-start.{number} = {FROM_HOST} copy-start({HOST} %param.{number})"


def fetched(number):
    return f"%copy-done.{number} = {HBM} copy-done({FROM_HOST} %copy-start.{number})"


OFFLOAD = f"%copy-start.9 = {TO_HOST} copy-start({HBM} %fusion.2)"
OFFLOADED = f"%copy-done.9 = {HOST} copy-done({TO_HOST} %copy-start.9)"
SLICED = "((s8[9000]{0:T(1024)}), s8[400]{0:T(1024)S(1)}, s32[]{:S(2)})"
SLICE = f"%slice-start.3 = {SLICED} async-start(s8[9000]{{0:T(1024)}} %p), calls=%async_computation"
SLICE_DONE = f"%slice-done.3 = s8[400]{{0:T(1024)S(1)}} async-done({SLICED} %slice-start.3)"
UPDATED = f"(({HOST}, f32[8]{{0}}, s32[]), {HOST}, u32[]{{:S(2)}})"
UPDATE = f"%dynamic-update-slice-start.1 = {UPDATED} async-start({HOST} %buffer, f32[8]{{0}} %new, s32[] %at), calls=%c"
SEND = "%send.5 = (f32[8], u32[], token[]) send(f32[8] %x, token[] %t), channel_id=1, is_host_transfer=true"
RECEIVED = "%recv-done.6 = (f32[8], token[]) recv-done((f32[8], u32[], token[]) %recv.6), is_host_transfer=true"
ACROSS = (
    "%send.7 = (f32[8], u32[], token[]) send(f32[8] %x, token[] %t), channel_id=1, is_host_transfer=true, "
    'frontend_attributes={_xla_host_transfer_handler_name="xla_megascale_runtime"}'
)


def step(*, line=False):
    """A step of 100 ns: two fetches begin at once, the first is awaited for 30 ns, a fusion for 20, the second for 40.

    Then an all-reduce of 8 and nothing for 2.  line: whether the profiler filled the line of asynchronous operations.
    """
    ops = [(fetch(1), 0, 0), (fetch(2), 0, 0), (fetched(1), 0, 30), (FUSION, 30, 20)]
    ops += [(fetched(2), 50, 40), (REDUCE, 90, 8)]
    return ops, {"Async_XLA_Ops": [(fetch(1), 0, 30), (fetch(2), 0, 90)]} if line else {}


def offloading(*, devices=4, lines=(0,)):
    space = Space()
    for device in range(devices):
        ops, more = step(line=device in lines)
        tpu(space, device, ops, XLA_Modules=[("jit_f(17)", 0, 100)], **more)
    return space


def test_a_step_is_compute_waits_for_copies_exposed_communication_and_idle_time(tmp_path):
    times = trace_summary(timeline(offloading(), tmp_path))["per_step"]
    assert {name: times[name] for name in ("step_ns", "compute_ns", "copy_wait_ns", "exposed_ns")} == {
        "step_ns": 100,
        "compute_ns": 20,
        "copy_wait_ns": 70,
        "exposed_ns": 8,
    }


def test_what_is_in_flight_while_the_device_waits_for_a_copy_is_hidden(tmp_path):
    """Without the collective the device would wait for the copy as long."""
    space = Space()
    gather = [
        (f"%all-gather-start.4 = ({HBM}, {HBM}) all-gather-start({HBM} %p), replica_groups={{{{0,1}}}}", 0, 1),
        (f"%all-gather-done.4 = {HBM} all-gather-done(({HBM}, {HBM}) %all-gather-start.4)", 50, 10),
    ]
    tpu(space, 0, [gather[0], (fetched(1), 1, 39), (FUSION, 40, 10), gather[1]], Steps=[("0", 0, 100)])
    times = trace_summary(timeline(space, tmp_path, axes={}))["per_step"]
    assert (times["communication_ns"], times["hidden_ns"], times["exposed_ns"]) == (60, 49, 11)
    assert (times["compute_ns"], times["copy_wait_ns"]) == (10, 39)


def test_a_profile_without_such_waits_says_nothing_of_them(tmp_path):
    space = Space()
    tpu(space, 0, [(FUSION, 0, 5)], Steps=[("0", 0, 10)])
    assert "copy_wait_ns" not in trace_summary(timeline(space, tmp_path))["per_step"]


@pytest.mark.parametrize("lines", [(), (0,), (0, 1, 2, 3)])
def test_copies_are_the_same_whichever_devices_have_a_line_of_them(tmp_path, lines):
    """Of the two copies 30 and 90 ns, the union is 90, and 20 of these are compute: 70 of 100 on every device."""
    subject = Subject(timeline=timeline(offloading(lines=lines), tmp_path), axes=AXES)
    overhead = memory_transfer_overhead(subject)
    assert (overhead.number, overhead.details["copies"]) == (70, 8)


def test_the_bytes_of_copies_are_of_every_device(tmp_path):
    """Two copies of 500 and 1,000 bytes in 30 and 90 ns on each device; the line alone would be TPU:0's."""
    space, about = Space(), [{"about": {"bytes_accessed": count}} for count in (500, 1000)]
    for device in range(2):
        more = {"Async_XLA_Ops": [(fetch(1), 0, 30, about[0]), (fetch(2), 0, 90, about[1])]} if device == 0 else {}
        ops = [(fetch(1), 0, 0, about[0]), (fetch(2), 0, 0, about[1]), (fetched(1), 0, 30), (fetched(2), 50, 40)]
        tpu(space, device, ops, XLA_Modules=[("jit_f(17)", 0, 100)], **more)
    measured = average_memory_bandwidth(Subject(timeline=timeline(space, tmp_path), axes=AXES))
    assert (measured.number, measured.details["copies"]) == (3000 / 240, 4)


def test_an_asynchronous_collective_is_the_same_where_only_one_device_has_a_line_of_them(tmp_path):
    begin = f"%all-gather-start.4 = ({HBM}, {HBM}) all-gather-start({HBM} %p), replica_groups={{{{0,1}},{{2,3}}}}"
    end = f"%all-gather-done.4 = {HBM} all-gather-done(({HBM}, {HBM}) %all-gather-start.4)"
    space = Space()
    for device in range(4):
        more = {"Async_XLA_Ops": [(begin, 0, 60)]} if device == 0 else {}
        tpu(space, device, [(begin, 0, 1), (FUSION, 1, 39), (end, 40, 20)], Steps=[("0", 0, 100)], **more)
    shown = timeline(space, tmp_path)
    assert comms(shown, "device", "start_ns", "duration_ns") == [(device, 0, 60) for device in range(4)]
    assert trace_summary(shown)["per_step"]["by_kind"]["all-gather"]["executions"] == 1


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        (fetch(1), "host → HBM"),
        (fetched(1), "host → HBM"),
        (OFFLOAD, "HBM → host"),
        (OFFLOADED, "HBM → host"),
        (SLICE, "HBM → on-chip memory"),
        (SLICE_DONE, "HBM → on-chip memory"),
        (UPDATE, "HBM → host"),
        (SEND, "HBM → host"),
        (RECEIVED, "host → HBM"),
        (ACROSS, None),
        (FUSION, None),
        (REDUCE, None),
        (f"%copy.3 = {HBM} copy({HBM} %p)", None),
        (f"%async-done.3 = {HBM} async-done({HBM} %async-start.3)", None),
        (f"%copy-done.4 = {HBM} copy-done(%copy-start.4)", ""),
    ],
)
def test_a_line_of_hlo_says_what_is_copied_where(text, moves):
    assert local_copy_of(text.partition(" = ")[0][1:], text, "") == moves


@pytest.mark.parametrize(
    ("name", "category", "moves"),
    [
        ("copy-done.4", "copy-done", ""),
        ("slice-start", "async-start", ""),
        ("x.4", "host send-done", "HBM → host"),
        ("infeed.1", "infeed", "host → HBM"),
        ("copy.4", "copy", None),
        ("async-done.4", "async-done", None),
        ("copy_done_fusion", "loop fusion", None),
    ],
)
def test_without_its_line_the_category_and_the_name_tell(name, category, moves):
    assert local_copy_of(name, "", category) == moves


PROGRAM = """HloModule jit_f, is_scheduled=true, num_partitions=4

sliced {
  q = f32[1000]{0} parameter(0)
  ROOT part = f32[500]{0:S(1)} slice(q), slice={[0:500]}
}

called {
  q = f32[1000]{0} parameter(0)
  twice = f32[1000]{0} add(q, q)
  ROOT product = f32[1000]{0} multiply(twice, q)
}

ENTRY main {
  p = f32[1000]{0:S(5)} parameter(0)
  begun = (f32[1000]{0}, f32[1000]{0:S(5)}, u32[]) copy-start(p)
  here = f32[1000]{0} copy-done(begun)
  first = ((f32[1000]{0}), f32[500]{0:S(1)}, u32[]) async-start(here), calls=sliced
  other = ((f32[1000]{0}), f32[1000]{0}, u32[]) async-start(here), calls=called
  near = f32[500]{0:S(1)} async-done(first)
  sum = f32[1000]{0} async-done(other)
  ROOT out = (f32[1000]{0}, f32[500]{0:S(1)}) tuple(sum, near)
}
"""


def test_the_program_tells_copies_from_other_asynchronous_work(tmp_path):
    """Names here say nothing: `near` ends a slice, `sum` work of another core."""
    space = Space()
    names = ("begun", "here", "first", "other", "near", "sum")
    tpu(space, 0, [(name, 10 * at, 5) for at, name in enumerate(names)], Steps=[("0", 0, 100)])
    space.programs({"jit_f(17)": serialize(PROGRAM)})
    events = timeline(space, tmp_path).events
    shown = list(zip(events["hlo_op"], events["role"], events["moves"], strict=True))
    assert shown == [
        ("begun", "copy", "host → HBM"),
        ("here", "copy", "host → HBM"),
        ("first", "copy", "HBM → on-chip memory"),
        ("other", "part", ""),
        ("near", "copy", "HBM → on-chip memory"),
        ("sum", "part", ""),
    ]


def test_a_device_whose_operations_were_not_recorded_is_in_no_mean(tmp_path):
    """The trait: a device plane with executions of programs and an empty line of operations."""
    space = Space()
    tpu(space, 0, [(FUSION, 0, 50)], XLA_Modules=[("jit_f(17)", 0, 100)])
    tpu(space, 1, [], XLA_Modules=[("jit_f(17)", 0, 100)])
    summary = trace_summary(timeline(space, tmp_path))
    assert summary["per_step"]["compute_ns"] == 50
    assert any(note.startswith("devices 1 execute programs") for note in summary["notes"])


def test_collectives_stay_collectives(tmp_path):
    space = Space()
    about = {"about": {"hlo_category": Ref("all-gather")}}
    tpu(space, 0, [(collective("all-gather", 4), 0, 5, about), (ACROSS, 5, 5)], Steps=[("0", 0, 10)])
    assert [kind for (kind,) in comms(timeline(space, tmp_path), "kind")] == ["all-gather", "?"]
