"""What an operation of a profile is: by its program, its line of HLO, its category, its name, in this order."""

import pytest

from compare.hlo.text.module import read as read_hlo
from compare.timeline.errors import TimingError
from tests.compare.timeline.scenes import (
    DATA,
    F32,
    FUSION,
    PROGRAM,
    REDUCE,
    WHILE,
    collective,
    comms,
    done,
    serialize,
    start,
    timeline,
)
from tests.compare.timeline.spaces import Ref, Space, data, number, tpu


def roles(joined):
    return {name: role for name, role in joined.events[["hlo_op", "role"]].itertuples(index=False)}


def test_a_line_of_hlo_tells_kind_axes_and_payload(tmp_path):
    space = Space()
    about = {"about": {"tf_op": "jit(f)/layer.mlp.down/psum:"}}
    tpu(space, 0, [(FUSION, 0, 5), (REDUCE, 5, 5, about), (collective("all-gather", 4, DATA), 10, 5)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "collective", "kind", "axes", "scope", "payload_bytes") == [
        ("all-reduce.1", "all-reduce", "tensor", "layer.mlp.down", 4000),
        ("all-gather.4", "all-gather", "data", "?", 4000),
    ]
    assert joined.unjoined_events == 0


def test_without_axes_they_are_unknown(tmp_path):
    space = Space()
    tpu(space, 0, [(REDUCE, 5, 5)])
    assert comms(timeline(space, tmp_path, axes={}), "kind", "axes") == [("all-reduce", "?")]


@pytest.mark.parametrize("name", ["broadcast.7", "reduce.3", "gather.1", "scatter.2", "all-reduce-fusion.1", "send_it"])
def test_local_operations_are_compute_whatever_they_are_called(tmp_path, name):
    space = Space()
    tpu(space, 0, [(name, 0, 5), (f"%{name} = {F32} fusion({F32} %all-reduce.1), kind=kLoop, calls=%all-reduce", 5, 5)])
    assert roles(timeline(space, tmp_path)) == {name: "compute"}


def test_a_line_of_hlo_overrules_category_and_name(tmp_path):
    space = Space()
    local = f"%all-reduce.6 = {F32} add({F32} %a, {F32} %b)"
    tpu(space, 0, [(local, 0, 5, {"about": {"hlo_category": Ref("all-reduce")}})])
    assert roles(timeline(space, tmp_path)) == {"all-reduce.6": "compute"}


def test_a_category_overrules_a_name(tmp_path):
    space = Space()
    plane = space.plane("/device:TPU:0")
    ops = plane.line("XLA Ops")
    ops.event("all-reduce.6", 0, 5, about={"hlo_category": Ref("loop fusion")})
    ops.event("psum.3", 5, 5, about={"hlo_category": Ref("all-reduce")})
    joined = timeline(space, tmp_path)
    assert roles(joined) == {"all-reduce.6": "compute", "psum.3": "communication"}
    assert joined.unjoined_events == 1


def test_a_name_alone_tells_the_kind_and_counts_as_unjoined(tmp_path):
    space = Space()
    tpu(space, 0, [("all-reduce.3", 0, 5), ("collective-permute-start.2", 5, 1), ("collective-permute-done.2", 8, 2)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "collective", "kind", "axes", "start_ns", "duration_ns") == [
        ("all-reduce.3", "all-reduce", "?", 0, 5),
        ("collective-permute.2", "collective-permute", "?", 5, 5),
    ]
    assert joined.unjoined_events == 2


def test_a_fusion_whose_program_is_not_there_is_counted(tmp_path):
    """That it communicates its name tells, and not what."""
    begun, over = (f"%async-collective-{end}.1 = {F32} fusion({F32} %p), kind=kCustom" for end in ("start", "done"))
    scatters = f"%fusion.8 = {F32} fusion({F32} %p), kind=kCustom, calls=%all-reduce-scatter.2"
    space = Space()
    tpu(space, 0, [(begun, 0, 5), (FUSION, 5, 20), (over, 25, 5), (scatters, 30, 5), (REDUCE, 35, 5)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "kind", "axes", "start_ns", "duration_ns") == [
        ("?", "?", 0, 30),
        ("reduce-scatter", "?", 30, 5),
        ("all-reduce", "tensor", 35, 5),
    ]
    assert joined.unjoined_events == 2


def test_a_bare_name_means_what_the_line_of_another_event_says(tmp_path):
    space = Space()
    ops = [(start(3), 0, 5), (FUSION, 5, 20), (done(3), 25, 5)]
    tpu(space, 0, ops, Async_XLA_Ops=[("all-reduce-start.3", 0, 30)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "collective", "axes", "duration_ns") == [("all-reduce-start.3", "tensor", 30)]
    assert joined.unjoined_events == 0


def test_loops_calls_and_branches_are_containers(tmp_path):
    space = Space()
    call, branch = (f"%{word}.1 = {F32} {word}({F32} %p), to_apply=%c" for word in ("call", "conditional"))
    tpu(space, 0, [(WHILE, 0, 100), (call, 0, 50), (branch, 50, 50), ("while.9", 100, 10)])
    assert set(roles(timeline(space, tmp_path)).values()) == {"container"}


def test_what_encloses_communication_on_a_devices_line_is_a_loop_around_it(tmp_path):
    space = Space()
    tpu(space, 0, [("region.4", 0, 100), (REDUCE, 10, 20), (FUSION, 40, 20)])
    joined = timeline(space, tmp_path)
    assert roles(joined) == {"region.4": "container", "all-reduce.1": "communication", "fusion.2": "compute"}
    assert any("enclose communication" in note for note in joined.notes)


def test_the_program_that_the_profile_carries_tells_most(tmp_path):
    space = Space()
    space.programs({"jit_f(17)": serialize()})
    events = [("twice", 0, 5), ("begun", 5, 1), ("fusion.9", 6, 10), ("over", 16, 4)]
    tpu(space, 0, events, XLA_Modules=[("jit_f(17)", 0, 20)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "hlo_op", "collective", "kind", "axes", "scope", "start_ns", "duration_ns") == [
        ("begun", "begun", "all-reduce", "tensor", "layer.mlp.down", 5, 15),
        ("fusion.9", "inner.1", "reduce-scatter", "data", "?", 6, 10),
    ]
    assert roles(joined) == {
        "twice": "compute",
        "begun": "communication",
        "fusion.9": "communication",
        "over": "part",
    }
    assert joined.unjoined_events == 0


def test_cloned_names_are_joined_to_what_they_were_cloned_from(tmp_path):
    space = Space()
    space.programs({"jit_f(17)": serialize()})
    tpu(space, 0, [("fusion.9.clone.1", 0, 5), ("twice.remat2", 5, 5)], XLA_Modules=[("jit_f(17)", 0, 20)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "collective", "axes") == [("inner.1", "data")]
    assert not any("not in the program" in note for note in joined.notes)


def test_programs_with_the_same_names_are_told_apart(tmp_path):
    space = Space()
    other = PROGRAM.replace("{{0,1},{2,3}}", "{{0,1,2,3}}")
    space.programs({"jit_f(17)": serialize(), "jit_f(18)": serialize(other)})
    tpu(
        space,
        0,
        [("begun", 0, 1), ("over", 1, 4), ("begun", 10, 1), ("over", 11, 4)],
        XLA_Modules=[("jit_f(17)", 0, 9), ("jit_f(18)", 10, 9)],
    )
    assert comms(timeline(space, tmp_path), "collective", "axes") == [
        ("jit_f(17)/begun", "tensor"),
        ("jit_f(18)/begun", "data,tensor"),
    ]


def test_a_program_is_found_by_its_number_too(tmp_path):
    space = Space()
    space.programs({"jit_f(17)": serialize(), "jit_g(18)": serialize()})
    tpu(space, 0, [("fusion.9", 0, 5, {"about": {"program_id": 17}})])
    assert comms(timeline(space, tmp_path), "collective", "axes") == [("inner.1", "data")]


def test_a_program_may_be_given_where_the_profile_has_none(tmp_path):
    space = Space()
    tpu(space, 0, [("begun", 0, 1), ("fusion.9", 1, 10), ("over", 11, 4)], XLA_Modules=[("jit_f(17)", 0, 20)])
    assert comms(timeline(space, tmp_path, hlo=read_hlo(PROGRAM)), "collective", "axes", "duration_ns") == [
        ("begun", "tensor", 15),
        ("inner.1", "data", 10),
    ]
    assert comms(timeline(space, tmp_path), "collective") == []


def test_the_program_of_other_operations_is_left_out(tmp_path):
    space = Space()
    tpu(
        space, 0, [(f"fusion.{number}", 10 * number, 5) for number in range(20, 28)] + [("twice", 0, 5), (REDUCE, 5, 5)]
    )
    joined = timeline(space, tmp_path, hlo=read_hlo(PROGRAM))
    assert (
        "the given program is another's: 9 of 10 operations are not in it; the profile is read without it"
        in joined.notes
    )
    assert comms(joined, "collective", "axes") == [("all-reduce.1", "tensor")]


def test_a_program_that_cannot_be_read_is_noted_and_lines_of_hlo_are_enough(tmp_path):
    space = Space()
    space.programs({"jit_f(17)": b"\xff\xff\xff"})
    tpu(space, 0, [(REDUCE, 5, 5)], XLA_Modules=[("jit_f(17)", 0, 20)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "collective", "axes") == [("all-reduce.1", "tensor")]
    assert any("'jit_f(17)' cannot be read" in note for note in joined.notes)


def test_axes_that_fit_no_program_are_refused(tmp_path):
    space = Space()
    space.programs({"jit_f(17)": serialize()})
    tpu(space, 0, [("begun", 0, 1), ("over", 1, 4)], XLA_Modules=[("jit_f(17)", 0, 20)])
    with pytest.raises(TimingError, match=r"axes do not fit the program.* jit_f\(17\)"):
        timeline(space, tmp_path, axes={"tp": 3})


def test_devices_bear_the_numbers_of_their_places_in_the_program(tmp_path):
    # HloModuleProto.device_assignment: four replicas of one computation, on the runtime's devices 1, 0, 3 and 2.
    order = data(3, b"".join(number(1, device) for device in (1, 0, 3, 2)))
    space = Space()
    space.programs({"jit_f(17)": serialize(number_by_place=number(1, 4) + number(2, 1) + order)})
    for device in (0, 1):
        tpu(space, device, [("begun", 10 * device, 1), ("over", 90, 1)], XLA_Modules=[("jit_f(17)", 0, 99)])
    joined = timeline(space, tmp_path, axes={})
    assert comms(joined, "device", "start_ns") == [(0, 10), (1, 0)]
    assert any("places in the program" in note for note in joined.notes)


def test_starts_and_dones_without_a_program_are_tied_by_the_dones_operand(tmp_path):
    space = Space()
    tpu(space, 0, [(start(1), 0, 1), (start(2, DATA), 1, 1), (FUSION, 2, 10), (done(2), 12, 1), (done(1), 13, 2)])
    joined = timeline(space, tmp_path)
    assert comms(joined, "collective", "axes", "start_ns", "duration_ns", "hidden_ns", "exposed_ns") == [
        ("all-reduce-start.1", "tensor", 0, 15, 10, 5),
        ("all-reduce-start.2", "data", 1, 12, 10, 2),
    ]
