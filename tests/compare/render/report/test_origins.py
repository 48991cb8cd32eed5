import pytest

from compare.render.report.origins import by_text
from tests.compare.render.from_json import origin_lines, origin_table
from tests.compare.render.reports import make_report, row

TOTALS = dict.fromkeys(
    ("wire_bytes", "inherent", "inflated", "induced", "missing", "unserved", "unknown_rows", "upper_bound_rows"), 0
)


def entry(origin, collectives, amount, **changes):
    return {
        "origin": origin,
        "collectives": collectives,
        "step_wire_bytes": amount,
        "inherent_bytes": 0,
        "inflated_bytes": 0,
        "induced_bytes": 0,
        "changes": changes,
    }


def report(*origins, why="", partitioner="shardy"):
    document = make_report(phases=("decode",))
    arms = document["phases"]["decode"]["arms"]
    arms["jax"] |= {
        "origins": list(origins),
        "origins_why_not": why,
        "partitioner": partitioner,
        "collectives": [],
        "totals": None,
        "controls": {},
    }
    document["phases"]["decode"]["arms"] = {"jax": arms["jax"]}
    return document


def lines(*origins, **words):
    return origin_lines(report(*origins, **words), "decode")


def test_one_origin_is_told_in_one_sentence():
    assert lines(entry("partitioner", 8, 100)) == [
        "JAX tpu: all 8 collectives inserted by the partitioner (Shardy); no later pass changed any"
    ]


def test_several_are_told_with_their_bytes_and_what_later_passes_did_with_them_all():
    changes = {"tpu_async_collective_creator: made async": 2, "from a to b: moved": 1}
    sentences = lines(entry("partitioner", 2, 3_000_000), entry("program", 6, 2_000_000, **changes))
    assert sentences == [
        "JAX tpu: inserted by the partitioner (Shardy): 2 collectives with 3.00 MB per step and the program itself: "
        "6 collectives with 2.00 MB per step; then 2 made async by tpu_async_collective_creator and 1 moved by a pass "
        "from a to b"
    ]


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("partitioner+program", "the partitioner (Shardy) and the program itself"),
        ("late-pass", "the pass late-pass"),
        ("unknown: late-pass", "an unknown pass (late-pass)"),
        ("unknown: from a to b", "an unknown pass (from a to b)"),
        ("unknown", "an unknown pass (not in the recorded texts)"),
    ],
)
def test_every_origin_has_its_words(origin, words):
    assert lines(entry(origin, 1, 1))[0].startswith(f"JAX tpu: 1 collective inserted by {words};")


def test_a_run_without_passes_says_why_and_one_from_before_them_nothing():
    assert lines(entry("not recorded", 1, 1), why="not asked for") == [
        "JAX tpu: which pass inserted its collectives is not recorded (not asked for)"
    ]
    assert lines(entry("not recorded", 1, 1), why="not recorded") == []
    assert lines() == []


def test_a_pass_that_is_not_known_is_not_named_as_one():
    assert by_text("all-reduce-combiner") == "all-reduce-combiner"
    assert by_text("from a to b") == "a pass from a to b"


def test_the_table_has_a_row_for_each_pass_and_a_column_for_each_program():
    recorded = report(entry("partitioner", 2, 300), entry("late-pass", 1, 40))
    cell = recorded["phases"]["decode"]["arms"]["jax"] | {"totals": TOTALS}
    twice = [{"pass": "combiner", "what": "merged"}, {"pass": "combiner", "what": "merged"}]
    cell["collectives"] = [
        row("a", "all-reduce", "tp", "x", step_wire_bytes=200, changes=twice),
        row(
            "b",
            "all-reduce",
            "tp",
            "x",
            step_wire_bytes=None,
            changes=[{"pass": "from a to b", "what": "moved"}, *twice],
        ),
        row("c", "all-reduce", "tp", "x", step_wire_bytes=40),
    ]
    other = cell | {"cell": "tpu+gspmd", "collectives": [], "origins": [entry("program", 5, 7)]}
    recorded["phases"]["decode"]["arms"]["jax"] = cell | {"controls": {"tpu+gspmd": other}}
    table = origin_table(recorded, "decode")
    assert [column.code for column in table.columns] == ["", "tpu", "tpu+gspmd"]
    assert [(row.name, [f"{cell.words} {cell.soft}" for cell in row.cells]) for row in table.rows] == [
        ("inserted by the partitioner", ["2 300 B", "– "]),
        ("inserted by the pass late-pass", ["1 40 B", "– "]),
        ("inserted by the program itself", ["– ", "5 7 B"]),
        ("merged by combiner", ["2 200 B", "– "]),
        ("moved by a pass from a to b", ["1 0 B", "– "]),
    ]


def test_there_is_no_table_where_nothing_was_recorded():
    unrecorded = report(entry("not recorded", 1, 1), why="not asked for")
    unrecorded["phases"]["decode"]["arms"]["jax"]["totals"] = TOTALS
    assert origin_table(unrecorded, "decode") is None
