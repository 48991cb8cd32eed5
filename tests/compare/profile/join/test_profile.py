"""Whole profiles with known answers, exact.

No real TPU profile with collectives was at hand: these are built to its layout, as openxla's sources tell it.
"""

import pytest

from compare.profile.join.profile import read_profile
from compare.profile.xplane.reader import profile_files
from compare.timeline.errors import TimingError
from tests.compare.timeline.scenes import (
    AXES,
    BROADCAST,
    DATA,
    F32,
    FUSION,
    REDUCE,
    WHILE,
    collective,
    comms,
    done,
    per_step,
    start,
    timeline,
)
from tests.compare.timeline.spaces import Space, tpu

STEP = {"Steps": [("0", 0, 800)], "XLA_Modules": [("jit_f(17)", 0, 800)]}
TIMES = ("step_ns", "communication_ns", "exposed_ns", "hidden_ns", "compute_ns", "communication_fraction", "overlap")


def times(section):
    return tuple(section[name] for name in TIMES)


def exactly(*numbers):
    """Shares are written with nine digits."""
    return tuple(number if number is None else round(number, 9) for number in numbers)


def test_without_collectives_nothing_communicates_and_overlap_does_not_apply(tmp_path):
    space = Space()
    tpu(space, 0, [(WHILE, 0, 800), (FUSION, 0, 300), (BROADCAST, 300, 400)], **STEP)
    step = per_step(space, tmp_path)
    assert times(step) == exactly(800, 0, 0, 0, 700, 0, None)
    assert (step["by_axes"], step["by_kind"]) == ({}, {})


@pytest.mark.parametrize("devices", [1, 2, 4])
def test_three_eighths_read_three_eighths(tmp_path, devices):
    """A local broadcast, a host's frame called collective_rpc, derived lines and enclosing loops count for nothing."""
    space = Space()
    outer = f"%while.6 = (s32[], {F32}) while((s32[], {F32}) %tuple.2), condition=%cond.2, body=%body.2"
    for device in range(devices):
        ops = [(outer, 0, 800), (WHILE, 0, 790), (FUSION, 0, 300), (BROADCAST, 300, 190), (REDUCE, 490, 300)]
        tpu(space, device, ops, **STEP, TC_Overlay=[("all-reduce.1", 0, 800)], Framework_Ops=[("psum", 0, 800)])
    host = space.plane("/host:CPU")
    host.line("python").event("collective_rpc", 0, 800).event("all-reduce.1", 0, 800)
    step = per_step(space, tmp_path)
    assert times(step) == exactly(800, 300, 300, 0, 490, 0.375, 0)
    # Volumes are those of one device in one step, however many devices the file has.
    assert step["by_axes"]["tensor"] | {"executions": 1, "payload_bytes": 4000} == step["by_axes"]["tensor"]
    assert step["by_kind"]["all-reduce"] == step["by_axes"]["tensor"]


def asynchronous(space, *computing, own_line=True):
    """In a loop of two iterations an all-reduce of 300 ns: its start and its done take 10 ns of these each."""
    ops = [(WHILE, 0, 800)]
    for begin in (100, 500):
        ops += [(start(1), begin, 10), (done(1), begin + 290, 10)]
        ops += [(FUSION, begin + at, length) for at, length in computing]
    spans = {"Async_XLA_Ops": [(start(1), begin, 300) for begin in (100, 500)]} if own_line else {}
    tpu(space, 0, ops, **STEP, **spans)
    return space


@pytest.mark.parametrize("own_line", [True, False])
def test_an_exposed_asynchronous_one_inside_a_loop_is_exposed(tmp_path, own_line):
    step = per_step(asynchronous(Space(), own_line=own_line), tmp_path)
    assert times(step) == exactly(800, 600, 600, 0, 0, 0.75, 0)
    assert step["by_axes"]["tensor"]["executions"] == 2
    assert step["by_axes"]["tensor"]["payload_bytes"] == 8000


@pytest.mark.parametrize("own_line", [True, False])
def test_a_hidden_one_is_hidden_but_for_its_ends(tmp_path, own_line):
    step = per_step(asynchronous(Space(), (10, 280), own_line=own_line), tmp_path)
    assert times(step) == exactly(800, 600, 40, 560, 560, 0.75, 560 / 600)


@pytest.mark.parametrize("own_line", [True, False])
def test_compute_on_both_sides_hides_nothing(tmp_path, own_line):
    step = per_step(asynchronous(Space(), (-50, 50), (10, 100), own_line=own_line), tmp_path)
    assert times(step) == exactly(800, 600, 400, 200, 300, 0.75, 200 / 600)


def test_asynchronous_local_copies_are_neither_communication_nor_compute(tmp_path):
    space = Space()
    copy = f"%copy-start.3 = ({F32}, {F32}, u32[]) copy-start({F32} %p)"
    cut = f"%slice-start.4 = (({F32}), f32[10]{{0}}, u32[]) slice-start({F32} %p), slice={{[0:10]}}"
    tpu(space, 0, [(REDUCE, 100, 300)], **STEP, Async_XLA_Ops=[(copy, 0, 700), (cut, 50, 600)])
    joined = timeline(space, tmp_path)
    assert times(per_step(space, tmp_path)) == exactly(800, 300, 300, 0, 0, 0.375, 0)
    assert any("2 events on 'Async XLA Ops'" in note for note in joined.notes)


def test_two_at_once_count_once_in_time_and_twice_in_volume(tmp_path):
    space = Space()
    spans = [(start(1), 100, 300), (start(2, DATA), 200, 400)]
    tpu(space, 0, [(FUSION, 300, 200)], **STEP, Async_XLA_Ops=spans)
    step = per_step(space, tmp_path)
    assert times(step) == exactly(800, 500, 300, 200, 200, 500 / 800, 200 / 500)
    assert times(step["by_axes"]["tensor"])[1:4] == (300, 200, 100)
    assert times(step["by_axes"]["data"])[1:4] == (400, 200, 200)
    assert step["by_kind"]["all-reduce"]["executions"] == 2


def test_several_steps_are_averaged(tmp_path):
    space = Space()
    ops = [(FUSION, 0, 100), (REDUCE, 100, 100), (FUSION, 1000, 100), (REDUCE, 1100, 300), (REDUCE, 5000, 50)]
    tpu(space, 0, ops, Steps=[("7", 0, 200), ("8", 1000, 400)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "step", "duration_ns") == [(7, 100), (8, 300), (-1, 50)]
    assert times(per_step(space, tmp_path)) == exactly(300, 200, 200, 0, 100, 200 / 300, 0)


SPARSE = "%all-reduce.11 = f32[1000]{0} all-reduce(f32[1000]{0} %q), replica_groups={{0,1},{2,3}}, to_apply=%add"
SPARSE_CORE = 'async_execution_thread="sparsecore"'


def call_event(word, number):
    """The start and the done of a call, as the TensorCore's line has them."""
    begun = f"%{word}call-start.{number}"
    over = begun.replace("start", "done")
    return (
        f"{begun} = (({F32}), {F32}) call-start({F32} %x), {SPARSE_CORE}, to_apply=%called.{number}",
        f"{over} = {F32} call-done((({F32}), {F32}) {begun}), {SPARSE_CORE}",
    )


@pytest.mark.parametrize("word", ["", "all-reduce.12.cloned.1."])
def test_a_sparse_cores_collective_counts_once_and_is_no_compute(tmp_path, word):
    """The TensorCore's line shows a call and the wait for it; the work is on two SparseCores."""
    space = Space()
    begun, over = call_event(word, 3)
    tpu(space, 0, [(begun, 100, 10), (FUSION, 110, 100), (over, 300, 100)], **STEP)
    for core, (at, length) in enumerate(((105, 290), (110, 285))):
        space.plane(f"/device:TPU:0 SparseCore {core}").line("Sparse Core Ops").event(SPARSE, at, length)
    assert comms(timeline(space, tmp_path), "kind", "axes", "payload_bytes", "start_ns", "duration_ns") == [
        ("all-reduce", "tensor", 4000, 100, 300)
    ]
    assert times(per_step(space, tmp_path)) == exactly(800, 300, 200, 100, 100, 300 / 800, 100 / 300)


def test_on_the_line_of_asynchronous_operations_it_counts_once_too(tmp_path):
    space = Space()
    begun, over = call_event("", 3)
    tpu(
        space,
        0,
        [(begun, 100, 10), (FUSION, 110, 100), (over, 300, 100)],
        **STEP,
        Async_XLA_Ops=[(begun, 100, 300)],
    )
    space.plane("/device:TPU:0 SparseCore 0").line("Sparse Core Ops").event(SPARSE, 105, 290)
    assert times(per_step(space, tmp_path)) == exactly(800, 300, 200, 100, 100, 300 / 800, 100 / 300)


def test_a_call_of_another_core_that_does_not_communicate_is_neither(tmp_path):
    space = Space()
    begun, over = call_event("", 3)
    tpu(space, 0, [(begun, 100, 10), (FUSION, 110, 100), (over, 300, 100), (REDUCE, 400, 100)], **STEP)
    space.plane("/device:TPU:0 SparseCore 0").line("Sparse Core Ops").event(FUSION, 105, 290)
    assert times(per_step(space, tmp_path)) == exactly(800, 100, 100, 0, 100, 100 / 800, 0)


def test_a_sparse_cores_collective_that_nothing_asks_for_stands_for_itself(tmp_path):
    space = Space()
    tpu(space, 0, [(FUSION, 110, 100)], **STEP)
    for core in (0, 1):
        space.plane(f"/device:TPU:0 SparseCore {core}").line("Sparse Core Ops").event(SPARSE, 105, 290)
    assert times(per_step(space, tmp_path)) == exactly(800, 290, 190, 100, 100, 290 / 800, 100 / 290)


def test_a_sparse_cores_other_work_is_not_the_devices(tmp_path):
    space = Space()
    tpu(space, 0, [(REDUCE, 100, 300)], **STEP)
    space.plane("/device:TPU:0 SparseCore 0").line("Sparse Core Ops").event(FUSION, 0, 800)
    assert times(per_step(space, tmp_path)) == exactly(800, 300, 300, 0, 0, 0.375, 0)


def hosts(tmp_path, count, *, first=0):
    """Files of one session, in which every host numbers its two devices from `first` on."""
    for host in range(count):
        space = Space(hostname=f"w{host}")
        for device in (0, 1):
            ops = [(FUSION, 0, 100), (REDUCE, 100, 100 * (host + 1))]
            tpu(space, first * host + device, ops, Steps=[("0", 0, 500)])
        space.write(tmp_path, f"w-{host}")
    return profile_files(tmp_path)


def test_several_hosts_are_one_profile(tmp_path):
    times = read_profile(hosts(tmp_path, 2), axes=AXES)
    assert comms(times, "device", "duration_ns") == [(0, 100), (1, 100), (2, 200), (3, 200)]
    assert times.num_devices == 4
    assert any("devices are renumbered" in note for note in times.notes)


def test_hosts_that_already_number_through_keep_their_numbers(tmp_path):
    times = read_profile(hosts(tmp_path, 2, first=2), axes=AXES)
    assert comms(times, "device", "duration_ns") == [(0, 100), (1, 100), (2, 200), (3, 200)]
    assert not any("numbered" in note for note in times.notes)


def test_the_tenth_host_comes_behind_the_second(tmp_path):
    times = read_profile(hosts(tmp_path, 11), axes={"data": 22})
    assert [duration for _, duration in comms(times, "device", "duration_ns")][::2] == [100 * n for n in range(1, 12)]


def test_hosts_share_one_zero_of_time(tmp_path):
    for host, late in ((0, 5000), (1, 0)):
        space = Space()
        plane = space.plane(f"/device:TPU:{host}")
        plane.line("XLA Ops", timestamp_ns=1_700_000_000_000_000_000 + late).event(REDUCE, 10, 5)
        space.write(tmp_path, f"w-{host}")
    assert comms(read_profile(profile_files(tmp_path), axes=AXES), "device", "start_ns") == [(0, 5010), (1, 10)]


def test_a_host_without_devices_is_noted(tmp_path):
    files = hosts(tmp_path, 1)
    other = Space()
    other.plane("/host:CPU").line("python").event("x", 0, 1)
    other.write(tmp_path, "w-1")
    times = read_profile([*files, *profile_files(tmp_path)[1:]], axes=AXES)
    assert "w-1.xplane.pb shows no device at work" in times.notes


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/device:GPU:0", "a profile of GPUs"),
        ("/host:CPU", "no operation of any device"),
        ("/device:TPU:0", "no operation"),
    ],
)
def test_a_profile_without_devices_operations_is_refused(tmp_path, name, words):
    space = Space()
    space.plane(name).line("Stream #1").event("all-reduce.1", 0, 5)
    with pytest.raises(TimingError, match=words) as caught:
        timeline(space, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_collective_permutes_axes_are_those_along_which_it_moves(tmp_path):
    space = Space()
    move = f"%collective-permute.2 = {F32} collective-permute({F32} %x), source_target_pairs={{{{0,2}},{{1,3}}}}"
    tpu(space, 0, [(move, 0, 5), (collective("all-gather", 3, "{{0,1,2,3}}"), 5, 5)])
    assert comms(timeline(space, tmp_path), "axes") == [("data",), ("data,tensor",)]


def test_communications_outside_all_steps_are_noted(tmp_path):
    space = Space()
    tpu(space, 0, [(REDUCE, 0, 5), (REDUCE, 900, 5)], Steps=[("0", 0, 100)])
    assert "1 of 2 communications begin outside all steps, and count in none" in timeline(space, tmp_path).notes
