"""Pipelines drawn by hand: GPipe's bubble comes out exactly."""

from fractions import Fraction

import pytest

from compare.metrics.pipeline import SHIFT, find_ticks, stages_of
from compare.report.build import lay_out_mesh
from compare.timeline.tracks.tracks import DeviceTracks
from meshes.case import Case
from tests.compare.timeline.build import comm, compute, container, pipeline_of, steps, timeline

SHIFT_IS = {"kind": "collective-permute", "axes": "pp", "scope": SHIFT, "name": "permute"}


def pipeline_times(events, marks, stages, microbatches):
    tracks = DeviceTracks.of(timeline(events, marks))
    table = find_ticks(tracks, stages, microbatches=microbatches)
    return pipeline_of(tracks, table, microbatches=microbatches, num_stages=max(stages) + 1)


def uniform(stages, microbatches, *, order="shift first", before=0, after=0, loop=False, work=90, shift=10):
    """Every device shifts and computes in every tick alike; times in ns."""
    count, events = microbatches + stages - 1, []
    for device in range(stages):
        at = before
        for tick in range(count):
            parts = [(comm, shift, SHIFT_IS), (compute, work, {})]
            if order == "shift last":
                parts.reverse()
            if order == "first shift lost" and tick == 0:
                parts = parts[1:]
            for make, length, words in parts:
                events.append(make(at, at + length, device=device, **words))
                at += length
        if loop:
            events.append(container(before, at, device=device))
            events.append(container(0, at + after, device=device))
        events.append(compute(0, before, device=device))
        events.append(compute(at, at + after, device=device))
    return events, steps(0, at + after, devices=range(stages))


@pytest.mark.parametrize("order", ["shift first", "shift last", "first shift lost"])
@pytest.mark.parametrize(("stages", "microbatches"), [(2, 1), (2, 4), (4, 8), (8, 3), (4, 1)])
def test_a_uniform_pipeline_has_the_bubble_of_gpipe(stages, microbatches, order):
    times = pipeline_times(*uniform(stages, microbatches, order=order), range(stages), microbatches)
    expected = round(float(Fraction(stages - 1, microbatches + stages - 1)), 9)
    assert times["bubble_share"] == times["gpipe_bubble_share"] == expected
    assert [row["bubble_share"] for row in times["stages"]] == [expected] * stages
    assert [row["bubble_ticks"] for row in times["stages"]] == [stages - 1] * stages


@pytest.mark.parametrize("order", ["shift first", "shift last", "first shift lost"])
@pytest.mark.parametrize("loop", [True, False])
def test_what_comes_before_and_after_the_loop_is_no_tick(order, loop):
    times = pipeline_times(*uniform(2, 4, order=order, before=900, after=700, loop=loop), range(2), 4)
    assert times["bubble_share"] == 0.2


def test_the_smallest_loop_around_all_shifts_bounds_the_ticks():
    times = pipeline_times(*uniform(2, 3, before=35, after=25, loop=True), range(2), 3)
    assert [(row["phase"], row["start_ns"], row["duration_ns"]) for row in times["phases"]] == [
        ("before", 0, 35),
        ("fill", 35, 100),
        ("steady", 135, 200),
        ("drain", 335, 100),
        ("after", 435, 25),
    ]
    assert times["ticks"][1] == {"tick": 1, "start_ns": 135, "duration_ns": 100, "microbatches": [1, 0]}
    assert times["ticks"][3]["microbatches"] == [None, 2]


def test_a_bubble_that_computes_is_busy_and_one_that_does_not_is_idle():
    """Stage 1 holds nothing in tick 0: here it computes in it all the same, there it waits."""
    events, marks = uniform(2, 2)
    stage = pipeline_times(events, marks, range(2), 2)["stages"][1]
    assert (stage["bubble_ns"], stage["busy_in_bubble_ns"], stage["idle_ns"]) == (90, 90, 0)
    first = min(
        event["start_ns"]
        for event in events
        if event["device"] == 1 and event["role"] == "compute" and event["duration_ns"]
    )
    spared = [e for e in events if not (e["device"] == 1 and e["role"] == "compute" and e["start_ns"] == first)]
    stage = pipeline_times(spared, marks, range(2), 2)["stages"][1]
    assert (stage["bubble_ns"], stage["busy_in_bubble_ns"], stage["idle_ns"]) == (90, 0, 90)


def test_a_slow_stage_has_its_own_ticks():
    """Ticks of 100 and 300 ns: the bubble is the share of time, not of ticks."""
    events = [comm(0, 10, **SHIFT_IS), comm(100, 110, **SHIFT_IS), comm(400, 410, **SHIFT_IS), compute(410, 500)]
    both = [event | {"device": device} for event in events for device in (0, 1)]
    times = pipeline_times(
        [*both, container(0, 500), container(0, 500, device=1)], steps(0, 500, devices=(0, 1)), range(2), 2
    )
    assert [row["bubble_ns"] for row in times["stages"]] == [90, 90]
    assert times["stages"][0]["pipeline_ns"] == 90 + 290 + 90


def test_shifts_of_several_parts_are_told_by_one_collective():
    events, marks = uniform(2, 2)
    extra = [
        comm(e["start_ns"], e["start_ns"] + 5, device=e["device"], **{**SHIFT_IS, "name": "rest"})
        for e in events
        if e["scope"] == SHIFT
    ]
    assert pipeline_times([*events, *extra, *extra], marks, range(2), 2)["bubble_share"] == round(1 / 3, 9)


def test_shifts_that_do_not_count_up_to_ticks_tell_no_pipeline():
    events, marks = uniform(2, 4)
    assert pipeline_times(events, marks, range(2), 9) is None


def test_stages_are_read_from_the_mesh():
    picture = lay_out_mesh(Case.read("tp2pp2dp2@v5e:2x4"))
    assert stages_of(picture) == [0, 0, 1, 1, 0, 0, 1, 1]


def test_one_stage_is_no_pipeline():
    assert pipeline_times(*uniform(1, 4), [0], 4) is None
