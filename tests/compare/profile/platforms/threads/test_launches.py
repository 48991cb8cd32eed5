"""Which device an operation runs on, and in which run, out of hosts made by hand."""

import numpy as np
import pytest

from compare.profile.platforms.threads.launches import find_launches, launch_times_ps
from tests.compare.profile.platforms.threads.host import Host, list_rows


def devices(host, folder):
    """The device of each operation, by time."""
    return [device for (device,) in list_rows(host.raw(folder).events, "device")]


def test_devices_are_numbered_as_the_program_hands_them_over_whoever_runs_them(tmp_path):
    host = Host()
    host.launch(at=0, devices=3, number=100)
    for device, (thread, start) in enumerate([("c", 500), ("a", 300), ("b", 400)]):
        host[thread].region(150 + device, start, start + 50).op("dot", start + 1, start + 9).completes(start + 9, 540)
    raw = host.raw(tmp_path)
    assert list_rows(raw.events, "line", "device") == [("a", 1), ("b", 2), ("c", 0)]
    assert raw.events["run"].nunique() == 1
    assert "3 of 3 operations name no device: inferred from the context ids that link threads" in raw.notes


def test_a_device_whose_share_has_not_begun_keeps_its_place(tmp_path):
    host = Host()
    host["main"].launches_all(0, 50).hands_over(1, 2, at=1)
    host["a"].region(2, 60, 70).launches_one(61, 69).hands_over(3, at=65)
    host["b"].region(3, 80, 99).op("dot", 81, 90)
    assert devices(host, tmp_path) == [1]


def test_what_else_is_handed_over_in_a_launch_takes_no_place(tmp_path):
    host = Host()
    host["main"].launches_all(0, 50).hands_over(1, 2, at=1)
    host["a"].region(1, 52, 58)
    host["a"].region(2, 60, 70).launches_one(61, 69).hands_over(3, at=65)
    host["b"].region(3, 80, 99).op("dot", 81, 90)
    assert devices(host, tmp_path) == [0]


def test_parts_of_an_operation_and_what_they_go_on_with_belong_to_its_device(tmp_path):
    host = Host()
    host.launch(at=0, devices=2, number=100)
    host["a"].region(150, 200, 900).op("wrong", 205, 210)
    host["a"].completes(210, 890)
    host["b"].region(151, 300, 900).op("dot", 301, 320).hands_over(7, at=310).completes(320, 890)
    host["pool"].region(7, 330, 500).hands_over(8, at=340)
    host["pool"].region(8, 350, 360).op("next", 352, 355)  # a part that was run at once, inside the other
    host["pool"].op("later", 400, 450)
    assert list_rows(host.raw(tmp_path).events, "hlo_op", "device") == [
        ("wrong", 0), ("dot", 1), ("next", 1), ("later", 1),
    ]  # fmt: skip


def test_operations_that_run_at_once_lie_in_the_launch_itself(tmp_path):
    host = Host()
    host["main"].launches_all(0, 50).hands_over(1, 2, at=1)
    for device, begins in enumerate((60, 80)):
        thread = host[f"launcher {device}"].region(1 + device, begins, begins + 15)
        thread.launches_one(begins + 1, begins + 14).op("add", begins + 2, begins + 5).completes(begins + 5, begins + 6)
    assert devices(host, tmp_path) == [0, 1]


def two_runs(*, devices=3, apart=10):
    """The second waits for the first, whose device 1 completes last and hands the second over."""
    host = Host()
    host.launch(at=0, devices=devices, number=100)
    host.launch(at=1000, devices=devices, number=200, waits=True, apart=apart)
    for device in range(devices):
        end = 2000 + (device == 1)
        host[f"first {device}"].region(150 + device, 300, end + 100).op("a", 301, 400).completes(400, end)
    host["first 1"].hands_over(*range(900, 900 + devices), at=2010)
    return host


def second(host, *, groups=()):
    """The second run, in the order in which it is handed over; groups: who meets whom in it."""
    for order in range(3):
        thread = host[f"second {order}"].region(900 + order, 2200 + order, 2400).op("b", 2203 + order, 2300)
        if groups:
            thread.meets(2210 + order, 2290, id=0, group=groups[order], op_id=order)
    return host


def test_runs_that_waited_are_handed_over_the_last_to_come_first(tmp_path):
    events = second(two_runs()).raw(tmp_path).events
    assert list_rows(events[events["hlo_op"] == "b"], "device") == [(2,), (1,), (0,)]
    assert events.groupby("hlo_op", observed=True)["run"].nunique().to_dict() == {"a": 1, "b": 1}
    assert events["run"].nunique() == 2


def test_of_devices_that_came_to_wait_at_the_same_time_none_is_guessed(tmp_path):
    raw = second(two_runs(apart=5)).raw(tmp_path)  # each takes 8: neighbours overlap, the first and the last do not
    assert list_rows(raw.events[raw.events["hlo_op"] == "b"], "device") == [(-1,), (-1,), (-1,)]
    assert raw.events["run"].nunique() == 2
    assert "the device of 3 of 6 operations is not shown" in raw.notes


def test_the_groups_that_a_device_meets_in_and_the_others_of_its_run_tell_it(tmp_path):
    events = second(two_runs(apart=5), groups=[(1, 2), (1,), (0, 2)]).raw(tmp_path).events
    assert list_rows(events[events["hlo_op"] == "b"], "device") == [(2,), (1,), (0,)]


def test_a_device_outside_the_group_that_it_meets_is_no_device(tmp_path):
    events = second(two_runs(), groups=[(0, 1), (1,), (0, 2)]).raw(tmp_path).events
    assert list_rows(events[events["hlo_op"] == "b"], "device") == [(-1,), (1,), (0,)]


def test_where_something_ran_already_when_the_profile_began_no_order_is_trusted(tmp_path):
    host = second(two_runs())
    host["second 0"].op("older", 5, 9)
    events = host.raw(tmp_path).events
    assert set(events[events["hlo_op"] == "b"]["device"]) == {-1}
    assert set(events[events["hlo_op"] == "a"]["device"]) == {0, 1, 2}


def test_runs_launched_by_several_threads_at_once_are_not_told_apart(tmp_path):
    host = two_runs()
    host["other"].launches_all(1040, 1090).hands_over(301, at=1041)
    host["launcher of other"].region(301, 1100, 1110).launches_one(1101, 1109)
    host["first 1"].hands_over(903, at=2020)
    host["second 3"].region(903, 2300, 2400).op("c", 2310, 2320)
    events = second(host).raw(tmp_path).events
    assert list_rows(events[events["hlo_op"] == "c"], "device") == [(-1,)]


def test_who_meet_run_together_whatever_launched_them(tmp_path):
    host = Host()
    for run, start in enumerate((0, 1000)):
        for device in range(2):
            thread = (
                host[f"{device}"].region(10 * run + device, start, start + 90).op("all-reduce", start + 1, start + 80)
            )
            thread.meets(start + 2 + device, start + 50, id=device, group=(0, 1))
    events = host.raw(tmp_path).events
    assert set(events["device"]) == {-1}
    assert sorted(len(rows) for _, rows in events.groupby("run")) == [2, 2]


def single(host, thread, number, at):
    host[f"main {thread}"].launches_one(at, at + 20).hands_over(number, at=at + 10)
    host[thread].region(number, at + 30, at + 90).op("dot", at + 40, at + 80).completes(at + 80, at + 85)


def test_a_program_for_one_device_runs_on_its_first(tmp_path):
    host = Host()
    single(host, "a", 1, 0)
    single(host, "b", 2, 100)
    events = host.raw(tmp_path).events
    assert set(events["device"]) == {0}
    assert events["run"].nunique() == 2


def test_programs_for_one_device_that_run_at_once_are_on_several(tmp_path):
    host = Host()
    single(host, "a", 1, 0)
    single(host, "b", 2, 30)
    assert devices(host, tmp_path) == [-1, -1]


@pytest.mark.parametrize(("through", "asked_ns"), [("main", 10), ("pool", 5)])
def test_a_run_is_asked_for_by_the_first_thread_on_its_way(through, asked_ns, tmp_path):
    host = Host()
    host["python"].event("step", 0, 400).hands_over(77, at=5)
    if through == "pool":
        host["main"].region(77, 8, 390)
    host["main"].launches_all(10, 60).hands_over(1, at=11)
    host["a"].region(1, 70, 90).launches_one(71, 89).hands_over(2, at=80)
    host["b"].region(2, 100, 200).op("dot", 110, 120)
    threads, ops = host.axis(tmp_path)
    (run,) = set(find_launches(threads, ops).run.tolist())
    assert launch_times_ps(threads, np.array([run])).tolist() == [asked_ns * 1000]
