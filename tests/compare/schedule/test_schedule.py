"""What tiny programs take, by arithmetic: waiting, hiding, queues, loops, stages and branches."""

from dataclasses import replace

import numpy as np
import pytest

from compare.timeline.columns import DERIVED_COLUMNS, EVENT_COLUMNS, STEP_COLUMNS, WORK_COLUMNS
from compare.timeline.errors import TimingError
from tests.compare.schedule.toys import (
    ALL_REDUCE_NS,
    BACK,
    BETWEEN_SLICES,
    LOOPED,
    PERMUTE_NS,
    ROUND,
    SHIFT,
    X,
    all_reduce,
    comms,
    loop,
    program,
    run,
    step_ns,
)


def test_a_synchronous_all_reduce_in_a_loop_is_all_exposed():
    body = f"  z = {X} compute(y, 1000)\n  last = {X} {all_reduce('z')}"
    timeline = run(program(LOOPED, more=loop(body, trips=3)))
    assert step_ns(timeline) == 3 * (1000 + ALL_REDUCE_NS)
    each = 1000 + ALL_REDUCE_NS
    assert comms(timeline) == [("last", 1000 + trip * each, ALL_REDUCE_NS, ALL_REDUCE_NS) for trip in range(3)]


@pytest.mark.parametrize(
    ("cycles", "window", "exposed"),
    [
        (1000, 1000, 0),
        (ALL_REDUCE_NS, ALL_REDUCE_NS, 0),
        (400, ALL_REDUCE_NS, ALL_REDUCE_NS - 400),
        (0, ALL_REDUCE_NS, ALL_REDUCE_NS),
    ],
)
def test_compute_between_start_and_done_hides_as_much_as_it_lasts(cycles, window, exposed):
    begun = all_reduce("x").replace("all-reduce(", "all-reduce-start(")
    timeline = run(
        program(
            f"  s = {X} {begun}\n  y = {X} compute(x, {int(cycles)})\n  ROOT d = {X} all-reduce-done(s)\n",
        )
    )
    assert comms(timeline) == [("s", 0, window, exposed)]
    assert step_ns(timeline) == max(cycles, ALL_REDUCE_NS)
    lines = timeline.events.groupby("role", observed=True)["line"].agg(set)
    assert lines["communication"] == {"Async XLA Ops"}
    assert lines["part"] == {"XLA Ops"}


def permutes(*pairs):
    """All are started, then all are waited for."""
    arrays = f"({X}, {X}, u32[], u32[])"
    starts = [
        f"  s{at} = {arrays} collective-permute-start(x), channel_id={at + 1}, source_target_pairs={pair}"
        for at, pair in enumerate(pairs)
    ]
    dones = [f"  d{at} = {X} collective-permute-done(s{at})" for at in range(len(pairs))]
    all_of = ", ".join(f"d{at}" for at in range(len(pairs)))
    result = f"  ROOT all = ({', '.join([X] * len(pairs))}) tuple({all_of})"
    return program("\n".join([*starts, *dones, result]))


def test_two_collectives_on_the_same_link_follow_each_other():
    timeline = run(permutes(SHIFT, SHIFT))
    ends = {name: start + duration for name, start, duration, _ in comms(timeline, 0)}
    assert ends == {"s0": PERMUTE_NS, "s1": PERMUTE_NS + 400}
    assert step_ns(timeline) == PERMUTE_NS + 400


def test_the_two_directions_of_a_link_do_not_disturb_each_other():
    timeline = run(permutes(SHIFT, BACK))
    assert [start + duration for _, start, duration, _ in comms(timeline, 0)] == [PERMUTE_NS, PERMUTE_NS]
    assert step_ns(timeline) == PERMUTE_NS


def test_exposed_time_of_two_at_once_is_shared_so_that_it_adds_up():
    timeline = run(permutes(SHIFT, BACK))
    rows = timeline.events[(timeline.events["device"] == 0) & (timeline.events["role"] == "communication")]
    assert rows["alone_ns"].sum() == PERMUTE_NS


STAGED = """
late {
  l = f32[1000]{0:S(1)} parameter(0)
  ROOT m = f32[1000]{0:S(1)} compute(l, 1000)
}

early {
  e = f32[1000]{0:S(1)} parameter(0)
  ROOT k = f32[1000]{0:S(1)} compute(e, 300)
}
"""
CHOICE = f"""
  id = u32[] partition-id()
  four = u32[] constant(4)
  second = pred[] compare(id, four), direction=GE
  y = {X} conditional(second, x, x), true_computation=early, false_computation=late
"""


def test_the_second_stage_waits_for_the_permute_of_the_first():
    """Stage 0 computes 1000 ns, stage 1 only 300: it waits 700 for what stage 0 sends."""
    timeline = run(
        program(f"{CHOICE}  ROOT z = {X} collective-permute(y), channel_id=1, source_target_pairs={SHIFT}", more=STAGED)
    )
    assert timeline.stands_for == {0: (0, 1, 2, 3), 4: (4, 5, 6, 7)}
    assert comms(timeline, 0) == [("z", 1000, PERMUTE_NS, PERMUTE_NS)]
    assert comms(timeline, 5) == [("z", 300, 700 + PERMUTE_NS, 700 + PERMUTE_NS)]
    waits = timeline.events[timeline.events["role"] == "communication"].set_index("device")["wait_ns"]
    assert waits.to_dict() == {0: 0, 4: 700}
    assert list(timeline.steps["duration_ns"]) == [1000 + PERMUTE_NS] * 2


def test_a_collective_in_a_branch_runs_on_the_devices_that_take_it():
    branch = STAGED.replace("ROOT m = f32[1000]{0:S(1)} compute(l, 1000)", f"ROOT m = {X} {all_reduce('l')}")
    timeline = run(program(CHOICE.replace("  y =", "  ROOT y ="), more=branch))
    assert comms(timeline, 0) == [("m", 0, ALL_REDUCE_NS, ALL_REDUCE_NS)]
    assert comms(timeline, 4) == []
    assert list(timeline.steps["duration_ns"]) == [ALL_REDUCE_NS] * 2


def test_an_unknown_branch_is_modelled_by_its_longest_and_noted():
    entry = CHOICE.replace("partition-id()", "parameter(1)").replace("  y =", "  ROOT y =")
    timeline = run(program(entry, more=STAGED))
    assert step_ns(timeline) == 1000
    assert timeline.stands_for == {0: tuple(range(8))}
    assert timeline.notes == ("which branch of y runs is unknown: its longest is modelled on every device",)


def test_an_unknown_loop_runs_once_and_is_noted():
    body = f"  last = {X} {all_reduce('y')}"
    text = program(LOOPED.replace("constant(0)", "parameter(1)"), more=loop(body, trips=3))
    timeline = run(text)
    assert step_ns(timeline) == ALL_REDUCE_NS
    assert timeline.notes == ("how often around runs is unknown: it is modelled once",)


def test_without_collectives_there_is_no_communication():
    timeline = run(program(f"  y = {X} compute(x, 70)\n  ROOT z = {X} compute(y, 30)"))
    assert comms(timeline) == []
    assert step_ns(timeline) == 100
    assert timeline.stands_for == {0: tuple(range(8))}
    assert list(timeline.events["duration_ns"]) == [70, 30]


def test_an_empty_program_takes_no_time():
    timeline = run(program(f"  ROOT y = {X} bitcast(x)"))
    assert step_ns(timeline) == 0
    assert len(timeline.events) == 0


def test_an_unscheduled_program_and_an_unknown_kernel_are_noted():
    entry = f'  ROOT y = {X} custom-call(x), custom_call_target="mine"'
    timeline = run(program(entry).replace("is_scheduled=true, ", ""))
    assert timeline.notes == (
        "the program is not scheduled: its text is taken for the order in which it runs",
        "what y computes is unknown: only the bytes that it moves count",
    )


def test_a_group_of_one_moves_nothing():
    timeline = run(program(f"  ROOT y = {X} {all_reduce('x', groups='{{0},{1},{2},{3},{4},{5},{6},{7}}')}"))
    assert comms(timeline) == [("y", 0, 0, 0)]


def test_a_pair_with_itself_moves_nothing_and_devices_without_a_pair_do_not_wait():
    pairs = "{{0,0},{1,5}}"
    timeline = run(program(f"  ROOT y = {X} collective-permute(x), channel_id=1, source_target_pairs={pairs}"))
    assert [comms(timeline, device)[0][2] for device in range(8)] == [0, PERMUTE_NS, 0, 0, 0, PERMUTE_NS, 0, 0]


def test_a_local_copy_runs_beside_the_core_and_its_done_waits():
    """20000 bytes from memory at 100 a ns: 200 ns; 150 of them beside compute."""
    entry = f"""
  w = f32[5000]{{0}} parameter(1)
  s = (f32[5000]{{0:S(1)}}, f32[5000]{{0}}, u32[]) copy-start(w)
  y = {X} compute(x, 150)
  d = f32[5000]{{0:S(1)}} copy-done(s)
  ROOT all = ({X}, f32[5000]{{0:S(1)}}) tuple(y, d)
"""
    timeline = run(program(entry))
    assert step_ns(timeline) == 200
    by_name = timeline.events.set_index("hlo_op")
    assert by_name.loc["d", ["start_ns", "duration_ns", "role"]].tolist() == [150, 50, "compute"]
    assert by_name.loc["s", ["line", "role", "duration_ns"]].tolist() == ["Async XLA Ops", "part", 200]


def test_local_copies_share_the_memory_with_what_the_core_reads():
    """A fusion reads 10000 bytes (100 ns) in its 150 ns: of the copy's 200 ns 100 pass late."""
    entry = """
  w = f32[5000]{0} parameter(1)
  v = f32[2500]{0} parameter(2)
  s = (f32[5000]{0:S(1)}, f32[5000]{0}, u32[]) copy-start(w)
  y = f32[1]{0:S(1)} fusion(v), kind=kLoop, calls=first, backend_config={"estimated_cycles":"150"}
  d = f32[5000]{0:S(1)} copy-done(s)
  ROOT all = (f32[1]{0:S(1)}, f32[5000]{0:S(1)}) tuple(y, d)
"""
    more = "first {\n  f = f32[2500]{0} parameter(0)\n  ROOT g = f32[1]{0:S(1)} reduce(f, f), to_apply=sum\n}\n"
    assert step_ns(run(program(entry, more=more))) == 300


def test_a_loop_without_communication_is_costed_once_and_shown_each_time():
    body = f"  last = {X} compute(y, 10)"
    timeline = run(program(LOOPED, more=loop(body, trips=5)))
    assert list(timeline.events["start_ns"]) == [0, 10, 20, 30, 40]


def test_a_start_that_nothing_waits_for_still_arrives():
    begun = all_reduce("x").replace("all-reduce(", "all-reduce-start(")
    timeline = run(program(f"  s = {X} {begun}\n  ROOT y = {X} compute(x, 10)"))
    assert step_ns(timeline) == ALL_REDUCE_NS
    assert timeline.notes == ("nothing waits for s: it ends when all has arrived",)


def test_every_slice_talks_over_the_data_centre_at_its_own_rate():
    """A send of 4000 bytes at 1 byte a ns after 1000."""
    timeline = run(program(BETWEEN_SLICES, head="num_partitions=4"), mesh="dp2tp4@2xv5e:2x2")
    assert step_ns(timeline) == 1000 + 4000


def test_groups_over_slices_without_the_data_centre_network_are_refused():
    entry = f"  ROOT r = {X} {all_reduce('x', groups='{{0,4},{1,5},{2,6},{3,7}}')}"
    with pytest.raises(TimingError, match=r"r has groups over several slices, but is no transfer of the data-centre"):
        run(program(entry), mesh="dp2tp4@2xv5e:2x2")


def test_the_timeline_has_the_form_that_measured_ones_have():
    timeline = run(program(f"  y = {X} compute(x, 70)\n  ROOT z = {X} {all_reduce('y')}"))
    assert {name: str(timeline.events[name].dtype) for name in timeline.events} == {
        **EVENT_COLUMNS,
        **WORK_COLUMNS,
        **DERIVED_COLUMNS,
    }
    assert {name: str(timeline.steps[name].dtype) for name in timeline.steps} == STEP_COLUMNS
    assert timeline.source == "modelled"
    assert timeline.label == "modelled for v5e:2x4"
    assert (timeline.num_devices, timeline.num_steps) == (8, 1)
    assert (timeline.events["step"] == 0).all()
    comm = timeline.events.set_index("hlo_op").loc["z"]
    assert comm[["collective", "kind", "axes", "scope", "payload_bytes"]].tolist() == [
        "z",
        "all-reduce",
        "tp",
        "?",
        4000,
    ]
    assert timeline.events.set_index("hlo_op").loc["y", ["collective", "kind", "axes", "scope"]].tolist() == [""] * 4


def test_rates_scale_the_parts_that_they_stand_for():
    text = program(f"  y = {X} compute(x, 1000)\n  ROOT z = {X} {all_reduce('y')}")
    twice = replace(ROUND, cycle_ns=2.0, link_bytes_per_ns=20.0, launch_ns=0.0, hop_ns=0.0)
    assert step_ns(run(text, hardware=twice)) == 2000 + 300
    assert np.isclose(step_ns(run(text)), 1000 + ALL_REDUCE_NS)
