"""How long devices wait for each other, by hand."""

import math

from tests.compare.profile.platforms.threads.host import Host, list_rows


def collective(host, device, start, end, *, arrives, leaves, id, group=(0, 1, 2), op_id=1, name="all-reduce"):
    host[f"{device}"].op(name, start, end, device_ordinal=device).meets(
        arrives, leaves, id=id, group=group, op_id=op_id
    )


def waits(host, folder):
    return [wait for (wait,) in list_rows(host.raw(folder).events, "wait_ns")]


def test_a_device_waits_from_its_arrival_until_the_last_ones(tmp_path):
    host = Host()
    collective(host, 0, 10, 190, arrives=11, leaves=150, id=0)
    collective(host, 1, 40, 190, arrives=41, leaves=120, id=1)
    collective(host, 2, 99, 190, arrives=101, leaves=110, id=2)
    # Until 150 the first has not woken up, until 190 all move data: neither is waiting for others to come.
    assert waits(host, tmp_path) == [90, 60, 0]


def test_rounds_under_one_key_are_told_apart(tmp_path):
    host = Host()
    for begins in (0, 1000, 2000):
        collective(host, 0, begins + 10, begins + 90, arrives=begins + 11, leaves=begins + 80, id=0, group=(0, 1))
        collective(host, 1, begins + 50, begins + 90, arrives=begins + 51, leaves=begins + 60, id=1, group=(0, 1))
    assert waits(host, tmp_path) == [40, 0] * 3


def test_groups_wait_for_their_own_only(tmp_path):
    host = Host()
    for device, (start, id, group) in enumerate([(10, 0, (0, 1)), (500, 1, (0, 1)), (20, 0, (2, 3)), (30, 1, (2, 3))]):
        collective(host, device, start, 600, arrives=start, leaves=590, id=id, group=group)
    assert waits(host, tmp_path) == [490, 10, 0, 0]


def test_a_thread_that_was_put_aside_after_the_last_had_its_number_waits_for_no_one(tmp_path):
    host = Host()
    collective(host, 0, 10, 90, arrives=50, leaves=80, id=0, group=(0, 1))
    collective(host, 1, 40, 90, arrives=41, leaves=80, id=1, group=(0, 1))
    assert waits(host, tmp_path) == [0, 0]


def test_a_wait_whose_end_the_profile_does_not_show_is_unknown_and_what_meets_no_one_waits_for_none(tmp_path):
    host = Host()
    collective(host, 0, 10, 90, arrives=11, leaves=80, id=0, group=(0, 1))
    host["0"].op("dot", 100, 110)
    first, second = waits(host, tmp_path)
    assert math.isnan(first)
    assert math.isnan(second)


def test_several_meetings_of_one_operation_add_up_and_count_for_it_alone(tmp_path):
    host = Host()
    host["0"].op("while", 0, 500)
    for op_id, arrives in ((1, 10), (2, 200)):
        host["0"].meets(arrives, arrives + 50, id=0, group=(0, 1), op_id=op_id)
        host["1"].meets(arrives + 30, arrives + 50, id=1, group=(0, 1), op_id=op_id)
    host["0"].op("all-reduce", 5, 300)
    host["1"].op("all-reduce", 5, 300)
    events = host.raw(tmp_path).events
    ordered = events[events["hlo_op"] == "all-reduce"].sort_values("line")
    assert ordered["wait_ns"].tolist() == [60, 0]
    assert events[events["hlo_op"] == "while"]["wait_ns"].isna().all()


def test_what_lies_inside_an_operation_is_none(tmp_path):
    host = Host()
    collective(host, 0, 10, 90, arrives=11, leaves=80, id=0, group=(0,))
    host["0"].event("Wait: pending_threads=1/2", 20, 30).event("InvokeRendezvous", 40, 50).event("python frame", 0, 99)
    assert list_rows(host.raw(tmp_path).events, "name", "start_ns", "duration_ns") == [("all-reduce", 10, 80)]
