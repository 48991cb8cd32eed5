"""Each communication once, of the several events that show it: by hand."""

import numpy as np

from compare.profile.join.async_pairing import BETWEEN, DONE, INSIDE, START, WHOLE, CommunicationEvents, match_halves

LINE, MAIN = True, False


def pair(*rows):
    """The events that stand, as (part, start, end).  rows: (group, part, on a line of its own, start, end)."""
    group, half, own_line, starts, ends = zip(*rows, strict=True) if rows else ((),) * 5
    halves = match_halves(
        CommunicationEvents(
            group=np.array(group, np.int64),
            half=np.array(half, np.int8),
            own_line=np.array(own_line, bool),
            starts=np.array(starts, float),
            ends=np.array(ends, float),
        )
    )
    shown = [(rows[at][1], rows[at][3], float(halves.ends[at])) for at in np.flatnonzero(halves.chosen)]
    return shown, int(halves.unfinished.sum()), int(halves.unbegun.sum())


def test_nothing():
    assert pair() == ([], 0, 0)


def test_a_synchronous_one_stands_for_itself():
    assert pair((0, WHOLE, MAIN, 5, 9)) == ([(WHOLE, 5, 9)], 0, 0)


def test_a_start_reaches_until_its_done_each_time():
    events = [(0, START, MAIN, 0, 1), (0, DONE, MAIN, 5, 6), (0, START, MAIN, 10, 11), (0, DONE, MAIN, 12, 13)]
    assert pair(*events) == ([(START, 0, 6), (START, 10, 13)], 0, 0)


def test_the_order_in_the_file_does_not_matter():
    events = [(0, DONE, MAIN, 12, 13), (0, START, MAIN, 10, 11), (0, DONE, MAIN, 5, 6), (0, START, MAIN, 0, 1)]
    assert pair(*events) == ([(START, 10, 13), (START, 0, 6)], 0, 0)


def test_one_that_starts_before_the_last_has_ended_keeps_its_own_done():
    # Double buffering: the next iteration's start comes before this one's done.
    events = [(0, START, MAIN, 0, 1), (0, START, MAIN, 4, 5), (0, DONE, MAIN, 6, 7), (0, DONE, MAIN, 9, 10)]
    assert pair(*events) == ([(START, 0, 7), (START, 4, 10)], 0, 0)


def test_groups_do_not_mix():
    events = [(0, START, MAIN, 0, 1), (1, START, MAIN, 1, 2), (1, DONE, MAIN, 3, 4), (0, DONE, MAIN, 5, 6)]
    assert pair(*events) == ([(START, 0, 6), (START, 1, 4)], 0, 0)


def test_the_line_of_asynchronous_operations_already_spans_it():
    events = [(0, START, LINE, 0, 6), (0, START, MAIN, 0, 1), (0, DONE, MAIN, 5, 6)]
    assert pair(*events) == ([(START, 0, 6)], 0, 0)


def test_what_that_line_does_not_show_is_put_together():
    events = [
        (0, START, LINE, 0, 6),
        (0, START, MAIN, 0, 1),
        (0, DONE, MAIN, 5, 6),
        (0, START, MAIN, 10, 11),
        (0, DONE, MAIN, 15, 16),
    ]
    assert pair(*events) == ([(START, 0, 6), (START, 10, 16)], 0, 0)


def test_a_line_of_starts_and_dones_is_put_together_too():
    assert pair((0, START, LINE, 0, 1), (0, DONE, LINE, 5, 6)) == ([(START, 0, 6)], 0, 0)


def test_a_recording_that_begins_or_ends_in_the_middle_counts_what_is_seen():
    events = [(0, DONE, MAIN, 0, 2), (0, START, MAIN, 5, 6), (0, DONE, MAIN, 8, 9), (1, START, MAIN, 9, 10)]
    assert pair(*events) == ([(DONE, 0, 2), (START, 5, 9), (START, 9, 10)], 1, 1)


def test_a_lost_start_does_not_shift_those_after_it():
    events = [
        (0, START, MAIN, 0, 1),
        (0, DONE, MAIN, 2, 3),
        (0, DONE, MAIN, 8, 9),
        (0, START, MAIN, 10, 11),
        (0, DONE, MAIN, 12, 13),
    ]
    assert pair(*events) == ([(START, 0, 3), (DONE, 8, 9), (START, 10, 13)], 0, 1)


def test_another_cores_work_belongs_to_the_call_that_waits_for_it():
    events = [(0, START, MAIN, 0, 1), (0, INSIDE, MAIN, 1, 4), (0, DONE, MAIN, 4, 5)]
    assert pair(*events) == ([(START, 0, 5)], 0, 0)


def test_two_other_cores_at_one_collective_are_one_communication():
    events = [(0, INSIDE, MAIN, 1, 4), (0, INSIDE, MAIN, 2, 5), (0, INSIDE, MAIN, 7, 8)]
    assert pair(*events) == ([(INSIDE, 1, 5), (INSIDE, 7, 8)], 0, 0)


def test_what_lies_between_start_and_done_is_neither():
    assert pair((0, START, MAIN, 0, 1), (0, BETWEEN, MAIN, 2, 3), (0, DONE, MAIN, 5, 6)) == ([(START, 0, 6)], 0, 0)


def test_one_without_length_is_still_one():
    assert pair((0, START, LINE, 3, 3), (0, WHOLE, MAIN, 7, 7)) == ([(START, 3, 3), (WHOLE, 7, 7)], 0, 0)
