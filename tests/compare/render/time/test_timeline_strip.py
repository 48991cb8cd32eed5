"""The strip: one step in whole numbers, from which every time comes out again."""

import json
import math
from itertools import accumulate
from typing import Any

import pytest

from compare.render.time.timeline_strip import Strip, StripCollective, strip
from tests.compare.render.from_json import stages
from tests.compare.render.reports import make_mesh
from tests.compare.render.timelines import (
    LABEL,
    LAYERS,
    TICKS,
    communicate,
    compute,
    make_timed,
    make_timeline,
    timed_program,
)

US = 1000.0


def _talks(program_strip: Strip, lane: int) -> list[tuple[str, float, float, float]]:
    """Collective, start, length, exposed, in µs."""
    unit, talk = program_strip.unit_ns / US, program_strip.lanes[lane].talk
    rows = zip(talk.of, accumulate(talk.start), talk.length, talk.exposed, strict=True)
    return [(program_strip.collectives[of].name, *(number * unit for number in numbers)) for of, *numbers in rows]


def test_every_communication_is_there_with_its_times() -> None:
    program_strip = strip(make_timed("torchxla"))
    assert [lane.name for lane in program_strip.lanes] == ["devices 0–3", "devices 4–7"]
    talks = _talks(program_strip, 0)
    assert len(talks) == TICKS * (LAYERS * 5 + 1)
    unit = program_strip.unit_ns / US
    expected = [
        ("all-gather.11", 0, 150, 100),
        ("all-gather.12", 150, 25, 25),
        ("all-gather.13", 175, 25, 25),
        ("all-reduce.2", 400, 300, 300),
        ("all-reduce.3", 1150, 300, 300),
    ]
    for shown, (name, *times) in zip(talks[:5], expected, strict=True):
        assert shown[0] == name
        assert shown[1:] == pytest.approx(times, abs=unit)
    assert talks[-1][0] == "collective-permute.1"
    assert talks[-1][3] == pytest.approx(100, abs=unit)


def test_what_is_wholly_exposed_is_exposed_to_the_last_unit() -> None:
    talks = _talks(strip(make_timed("jax")), 0)
    assert all(length == exposed for name, _, length, exposed in talks if name.startswith("all-reduce"))


def test_a_collective_is_told_once_with_its_verdict() -> None:
    program_strip = strip(make_timed("torchxla"))
    assert [row.name for row in program_strip.collectives] == [
        "all-gather.11",
        "all-gather.12",
        "all-gather.13",
        "all-reduce.2",
        "all-reduce.3",
        "collective-permute.1",
    ]
    assert program_strip.collectives[3] == StripCollective(
        name="all-reduce.2",
        kind="all-reduce",
        axes="tp",
        scope="layer.attention.out",
        payload_bytes=16_777_216,
        verdict="inherent",
        parts=(0.8, 0.2, 0.0),
    )
    assert program_strip.to_json()["collectives"][3] == [
        "all-reduce.2",
        "all-reduce",
        "tp",
        "layer.attention.out",
        16_777_216,
        "inherent",
        [0.8, 0.2, 0.0],
    ]
    assert (program_strip.source, program_strip.label, program_strip.step_ns) == ("modelled", LABEL, 117_000_000)


def test_compute_is_its_union_and_gaps_too_short_to_see_are_closed() -> None:
    events = [
        compute(0, "a", 0.0, 500 * US),
        compute(0, "b", 200 * US, 100 * US),
        compute(0, "c", 500.01 * US, 99.99 * US),
        compute(0, "d", 700 * US, 100 * US),
        compute(0, "while", 0.0, 1000 * US, role="container"),
    ]
    program_strip = strip(timed_program(make_timeline(events, steps=[(0, 0, 0.0, 1000 * US)])))
    assert program_strip.unit_ns == 1
    # 0 to 600 µs and 700 to 800 µs: the 10 ns between the first two are a hundredth of a thousandth of the step.
    assert program_strip.lanes[0].compute == [0, 600_000, 700_000, 100_000]


def test_the_step_of_the_middle_length_is_shown_from_its_start() -> None:
    events = [communicate(0, "all-reduce.2", at * 1000 * US + 100 * US, 10 * US * (at + 1)) for at in range(3)]
    steps = [(0, 0, 0.0, 900 * US), (0, 1, 1000 * US, 700 * US), (0, 2, 2000 * US, 800 * US)]
    joined = strip(timed_program(make_timeline(events, steps=steps)))
    assert joined.step_ns == 800 * US
    assert _talks(joined, 0) == [("all-reduce.2", 100, 30, 30)]


def test_without_steps_the_whole_span_is_shown() -> None:
    program_strip = strip(
        timed_program(
            make_timeline([compute(3, "a", 500.0, 100.0), communicate(3, "all-reduce.2", 700.0, 50.0)], steps=[])
        )
    )
    assert program_strip.step_ns == 250
    assert program_strip.lanes[0].talk.start == [200]


def test_of_many_devices_the_first_of_each_stage_is_shown() -> None:
    mesh = make_mesh("tp4pp2")
    events = [communicate(device, "all-reduce.2", 0.0, 10.0) for device in (1, 2, 3, 5, 6, 7)]
    joined = strip(timed_program(make_timeline(events, steps=[])), stage_of=stages(mesh))
    assert [lane.name for lane in joined.lanes] == ["stage 0, device 1", "stage 1, device 5"]


def test_a_device_that_stands_for_others_is_named_by_them() -> None:
    stage_of = stages(make_mesh("tp4pp2"))
    program_strip = strip(make_timed("jax"), stage_of=stage_of)
    assert [lane.name for lane in program_strip.lanes] == ["stage 0, devices 0–3", "stage 1, devices 4–7"]


def test_what_is_not_known_says_so() -> None:
    nameless = (-1, "tf_XLA", "psum", "", "communication", "", "", "", "?", math.nan, 3.0, 4.0, math.nan)
    program_strip = strip(timed_program(make_timeline([nameless], steps=[])))
    assert [lane.name for lane in program_strip.lanes] == ["unknown device"]
    assert program_strip.to_json()["collectives"] == [["psum", "", "?", "", None, "unknown", [0.0, 0.0, 0.0]]]
    assert program_strip.lanes[0].talk.wait is None


def test_a_step_of_an_8b_model_is_small_and_plain_json() -> None:
    text = json.dumps(strip(make_timed("torchxla")).to_json(), separators=(",", ":"), allow_nan=False)
    assert len(text) < 25_000


def _offloading() -> Any:
    """A step of 1 ms: 400 µs wait for a copy, 200 compute, 300 are an all-reduce, of which the copy hides 100."""
    events = [
        compute(0, "copy-done.3", 0.0, 400 * US, role="copy"),
        compute(0, "fusion.1", 400 * US, 200 * US),
        communicate(0, "all-reduce.2", 300 * US, 100 * US),
        communicate(0, "all-reduce.3", 600 * US, 200 * US),
    ]
    return make_timeline(events, steps=[(0, 0, 0.0, 1000 * US)], source="measured", label="measured on 1 TPU device")


def test_waits_for_local_copies_stand_beside_compute() -> None:
    program_strip = strip(timed_program(_offloading()))
    (lane,) = program_strip.lanes
    unit = program_strip.unit_ns / US
    assert [number * unit for number in lane.compute] == pytest.approx([400, 200], abs=unit)
    assert lane.copies is not None
    assert [number * unit for number in lane.copies] == pytest.approx([0, 400], abs=unit)
    assert [talk[1:] for talk in _talks(program_strip, 0)] == [
        pytest.approx((300, 100, 0), abs=unit),
        pytest.approx((600, 200, 200), abs=unit),
    ]


def test_a_strip_without_such_waits_has_no_word_of_them() -> None:
    assert all("copies" not in lane for lane in strip(make_timed("jax")).to_json()["lanes"])


def test_the_figure_of_a_step_paints_waits_for_copies() -> None:
    """At 20 % of the step the lane above is in the colour of copies, at 50 % in that of compute."""
    from matplotlib.colors import to_rgb

    from compare.render.palette import COMPUTE, COPIES
    from compare.render.time.figures import _paint_strip

    program_strip = strip(timed_program(_offloading()))
    paper = _paint_strip(program_strip, program_strip.step_ns)
    for share, colour in ((0.2, COPIES), (0.5, COMPUTE), (0.9, "#ffffff")):
        assert tuple(paper[9, int(share * paper.shape[1])]) == pytest.approx(to_rgb(colour))
