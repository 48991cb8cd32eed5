"""When operations end that leave work to other threads, by hand."""

import pytest

from tests.compare.profile.platforms.threads.host import Host, list_rows


def lasting(host, folder):
    return dict(list_rows(host.raw(folder).events, "hlo_op", "duration_ns"))


def test_an_operation_that_ends_in_its_call_lasts_as_long_as_the_call(tmp_path):
    host = Host()
    host["a"].op("add", 10, 30, context=7).ends("add", 29, context=7)
    raw = host.raw(tmp_path)
    assert raw.events["duration_ns"].tolist() == [20]
    assert raw.notes == ()


def test_one_that_another_thread_completes_ends_there_by_its_context_not_by_its_name(tmp_path):
    host = Host()
    host["a"].op("dot.1", 10, 30, context=7).op("dot.2", 100, 120, context=8)
    host["pool"].region(1, 15, 90).ends("dot", 80, context=7)
    host["pool"].region(2, 105, 190).ends("dot", 180, context=8)
    assert lasting(host, tmp_path) == {"dot.1": 70, "dot.2": 80}


def test_what_goes_on_in_the_thread_that_completed_it_begins_when_it_ends(tmp_path):
    host = Host()
    host["a"].op("dot", 10, 30, context=7)
    host["pool"].region(1, 15, 500).op("all-reduce", 60, 400, context=8).ends("all-reduce", 399, context=8)
    host["pool"].ends("dot", 450, context=7)
    assert lasting(host, tmp_path) == {"dot": 50, "all-reduce": 340}


def test_operations_of_an_earlier_piece_of_work_say_nothing(tmp_path):
    host = Host()
    host["a"].op("dot", 10, 30, context=7)
    host["pool"].region(1, 15, 50).op("other", 20, 40, context=8).ends("other", 39, context=8)
    host["pool"].region(2, 55, 100).ends("dot", 90, context=7)
    raw = host.raw(tmp_path)
    spans = {row.name: (row.start_ns, row.duration_ns) for row in raw.events.itertuples()}
    # The call from 10 to 30, then, from 55 to 90, what the other thread does of it: between them it waits for a thread.
    assert spans == {"dot": (10, 20), "other": (20, 20), "end: dot": (55, 35)}
    assert any(note.startswith("1 of 2 operations wait for a thread") for note in raw.notes)


def test_nor_do_those_of_the_piece_of_work_that_left_it_to_others(tmp_path):
    host = Host()
    host["a"].region(1, 5, 200).op("copy", 10, 30, context=7).op("meanwhile", 40, 60, context=8)
    host["a"].ends("meanwhile", 59, context=8).ends("copy", 90, context=7)
    assert lasting(host, tmp_path) == {"copy": 80, "meanwhile": 20}


def test_the_last_ends_before_its_device_has_completed_its_run(tmp_path):
    host = Host()
    host["a"].op("dot", 210, 220, context=7).completes(221, 300, run_id=1, device_ordinal=0)
    host["pool"].region(1, 215, 800).ends("dot", 700, context=7)  # its thread was put aside
    assert lasting(host, tmp_path) == {"dot": 90}


@pytest.mark.parametrize("context", [None, 7])
def test_ends_that_are_not_shown_are_counted(context, tmp_path):
    host = Host()
    host["a"].op("dot", 10, 30, context=context).event("end: dot", 100, 101)
    raw = host.raw(tmp_path)
    assert raw.events["duration_ns"].tolist() == [20]
    assert "the ends of 1 of 1 operations are not shown: they are taken to end with their calls" in raw.notes
