"""One step, in order."""

from typing import Any

from tests.compare.render.from_json import moves, story
from tests.compare.render.reports import row

Report = dict[str, Any]


def test_places_follow_the_program_and_say_how_often_they_are_passed(report: Report) -> None:
    sentences = story(report, "prefill")
    assert [(chapter.label, [station.scope for station in chapter.stations]) for chapter in sentences.chapters] == [
        ("In each of 5 ticks of the pipeline", ["embed"]),
        (
            "In each of 16 layers, in each of 5 ticks of the pipeline",
            ["layer.attention.core", "layer.attention.out", "layer.mlp.down"],
        ),
        ("In each of 5 ticks of the pipeline", ["pipeline.shift"]),
        ("Once per step", ["sample", "pipeline.collect"]),
    ]


def test_a_place_that_only_one_arm_has_stands_where_it_runs(report: Report) -> None:
    core = story(report, "prefill").chapters[1].stations[0]
    assert core.moves["jax"] == ()
    assert [len(move.rows) for move in core.moves["torchxla"]] == [1, 2]  # q; k and v are alike


def test_what_the_plan_asks_and_nothing_moves_is_told(report: Report) -> None:
    phase = report["phases"]["prefill"]
    for arm in phase["arms"].values():
        for cell in (arm, *arm["controls"].values()):
            cell["collectives"] = []
    sentences = story(report, "prefill")
    scopes = [station.scope for chapter in sentences.chapters for station in chapter.stations]
    assert scopes == [
        "embed",
        "pipeline.shift",
        "layer.attention.out",
        "layer.mlp.down",
        "sample",
        "pipeline.collect",
    ]
    assert all(station.required for chapter in sentences.chapters for station in chapter.stations)


def test_loops_that_are_written_out_are_told_as_such(report: Report) -> None:
    for arm in report["phases"]["prefill"]["arms"].values():
        for cell in (arm, *arm["controls"].values()):
            cell["collectives"] = [
                {**collective, "executions": 1, "loops": []}
                for collective in cell["collectives"]
                for _ in range(collective["executions"])
            ]
    assert [chapter.label for chapter in story(report, "prefill").chapters] == [
        "Several times, unrolled",
        "In every layer, unrolled",
        "In every tick, unrolled",
        "Once per step",
    ]


def test_a_loop_of_one_trip_is_no_loop(report: Report) -> None:
    for arm in report["phases"]["prefill"]["arms"].values():
        for cell in (arm, *arm["controls"].values()):
            for collective in cell["collectives"]:
                collective["loops"] = [16, 1] if collective["loops"] == [5, 16] else [1] * len(collective["loops"])
    assert [chapter.label for chapter in story(report, "prefill").chapters] == [
        "Once per step",
        "In each of 16 layers",
        "Once per step",
    ]


def test_rows_that_differ_in_nothing_but_their_names_are_one() -> None:
    rows = [
        row(
            f"all-reduce.{at}",
            "all-reduce",
            "tp",
            "layer.mlp.down",
            payload_bytes=8,
            step_wire_bytes=12,
            inherent_bytes=12 if at < 64 else 0,
            inflated_bytes=0 if at < 64 else 12,
            causes={} if at < 64 else {"bubble": 12},
        )
        for at in range(80)
    ]
    (move,) = moves(rows)
    assert (len(move.rows), move.executions, move.sum_of("step_wire_bytes"), move.causes) == (
        80,
        80,
        960,
        {"bubble": 192},
    )


def test_an_unknown_count_is_not_added_to_known_ones() -> None:
    known, unknown = moves([row("a", "all-reduce", "tp", "x"), row("b", "all-reduce", "tp", "x", executions=None)])
    assert (known.executions, unknown.executions) == (1, None)
