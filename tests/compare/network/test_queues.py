"""Chunks through queues, worked by hand."""

from compare.network.queues import Visit, serve_chunks


def test_a_queue_serves_one_behind_the_other():
    assert serve_chunks([[Visit(0, 5)]] * 3) == 15


def test_the_second_queue_works_while_the_first_does():
    # 5, 10, 15 out of the first; 3 more for the last.
    assert serve_chunks([[Visit(0, 5), Visit(1, 3)]] * 3) == 18
    # The second is the slower one: 3, and then 5 for each.
    assert serve_chunks([[Visit(0, 3), Visit(1, 5)]] * 3) == 18


def test_a_chunk_that_comes_back_waits_behind_those_that_came_before():
    # Queue 0 serves A (0-4), B (4-8), then A again, which came back at 5 (8-10), then B, back at 9 (10-12).
    chunk = [Visit(0, 4), Visit(1, 1), Visit(0, 2)]
    assert serve_chunks([chunk, chunk]) == 12
