"""Who put a program's bytes there, summed up by origin."""

from compare.report.model.program import PassChange
from compare.report.rows import origin_totals
from tests.compare.report.records import collective


def row(origin, amount, *, induced=0, changes=()):
    return collective(
        origin=origin,
        changes=tuple(PassChange(by=by, what=what) for by, what in changes),
        step_wire_bytes=amount,
        induced_bytes=induced,
        inherent_bytes=None if amount is None else amount - induced,
        inflated_bytes=None if amount is None else 0,
    )


def test_bytes_and_collectives_are_summed_by_who_put_them_there_the_most_first():
    totals = origin_totals([row("program", 10), row("partitioner", 30, induced=5), row("partitioner", 7)])
    assert [(entry.origin, entry.collectives, entry.step_wire_bytes) for entry in totals] == [
        ("partitioner", 2, 37),
        ("program", 1, 10),
    ]
    assert totals[0].induced_bytes == 5
    assert totals[0].inherent_bytes == 32


def test_what_cannot_be_counted_is_in_no_sum_and_not_forgotten():
    (totals,) = origin_totals([row("partitioner", None), row("partitioner", 4)])
    assert (totals.collectives, totals.step_wire_bytes) == (2, 4)


def test_changes_count_collectives_not_events():
    twice = row("partitioner", 1, changes=[("p", "replaced"), ("p", "replaced"), ("q", "made async")])
    (totals,) = origin_totals([twice, row("partitioner", 1, changes=[("p", "replaced")])])
    assert totals.changes == {"p: replaced": 2, "q: made async": 1}


def test_no_collectives_have_no_origins():
    assert origin_totals([]) == ()
