"""Two timelines side by side: a copy differs nowhere, one more collective is found, a slower clock is no difference."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.metrics.alignment.timeline_diff import timeline_diff
from compare.report.model.codec import encode
from compare.report.model.timing import Side
from tests.compare.timeline.build import comm, compute, row, steps, timeline

DIFFERENCES = [
    "difference_communication_ns",
    "difference_exposed_ns",
    "difference_executions",
    "difference_payload_bytes",
]
SCOPES = ["layer.attention.out", "layer.mlp.down", "pipeline.shift", "?"]
WORDS = st.fixed_dictionaries(
    {
        "scope": st.sampled_from(SCOPES),
        "axes": st.sampled_from(["tp", "pp"]),
        "kind": st.sampled_from(["all-reduce", "all-gather"]),
        "name": st.sampled_from(["a", "b", "c"]),
        "payload": st.sampled_from([64, 1000]),
        "device": st.integers(0, 1),
    }
)
SPAN = st.tuples(st.integers(0, 190), st.integers(1, 30)).map(lambda pair: (pair[0], sum(pair)))
TALKS = st.lists(st.tuples(SPAN, WORDS), max_size=14)
COMPUTES = st.lists(st.tuples(SPAN, st.integers(0, 1)), max_size=6)
EDGES = (0, 100, 200)


def encode_rows(diff, **more):
    """As a report has it."""
    return encode(diff.to_report(Side(arm="jax", cell="tpu"), Side(arm="torchxla", cell="tpu"), **more))


def make_timeline(comms, computes, shift=0.0):
    events = [comm(start + shift, end + shift, **words) for (start, end), words in comms]
    events += [compute(start + shift, end + shift, device=device) for (start, end), device in computes]
    return timeline(events, steps(*(edge + shift for edge in EDGES), devices=(0, 1)))


def nothing(diff):
    total = {name: value for name, value in encode(diff.total).items() if name.startswith("difference")}
    return (
        not diff.by_scope[DIFFERENCES].to_numpy().any()
        and not any(total.values())
        and diff.stretches.empty
        and diff.excess.empty
    )


@pytest.mark.slow
@settings(max_examples=20)
@given(TALKS, COMPUTES)
def test_a_profile_against_itself_gives_zero_everywhere(comms, computes):
    unchanged = make_timeline(comms, computes)
    assert nothing(timeline_diff(unchanged, unchanged))


@pytest.mark.slow
@settings(max_examples=20)
@given(TALKS, COMPUTES, st.floats(-1e9, 1e12))
def test_a_shifted_copy_gives_zero_everywhere(comms, computes, shift):
    shift = float(round(shift))
    assert nothing(timeline_diff(make_timeline(comms, computes), make_timeline(comms, computes, shift)))


@pytest.mark.slow
@settings(max_examples=40)
@given(TALKS, COMPUTES, st.tuples(SPAN, WORDS), st.booleans())
def test_one_injected_collective_comes_out_as_exactly_that_one(comms, computes, injected, on_the_left):
    (start, end), words = injected
    few, many = make_timeline(comms, computes), make_timeline([*comms, injected], computes)
    diff = timeline_diff(many, few) if on_the_left else timeline_diff(few, many)
    (stretch,) = diff.stretches.to_dict("records")
    assert stretch["side"] == ("left" if on_the_left else "right")
    assert {name: stretch[name] for name in ("scope", "axes", "kind", "executions")} == {
        "scope": words["scope"],
        "axes": words["axes"],
        "kind": words["kind"],
        "executions": 1,
    }
    same = [comm for comm in comms if comm[0] == injected[0] and {**comm[1], "name": ""} == {**words, "name": ""}]
    if not same:  # else either may be the new one
        assert stretch["collective"] == words["name"]
    assert (stretch["device"], stretch["step"], stretch["start_ns"]) == (words["device"], start // 100, start % 100)
    assert (stretch["duration_ns"], stretch["communication_ns"]) == (end - start, end - start)
    changed = diff.by_scope[diff.by_scope[DIFFERENCES].any(axis=1)]
    assert changed[["scope", "axes"]].to_numpy().tolist() == [[words["scope"], words["axes"]]]
    assert changed["difference_executions"].tolist() == [-0.25 if on_the_left else 0.25]


def layers(count, *, gathers=0, work=50, talking=10, lead=0):
    """A step of so many layers, each with `gathers` gathers and then a sum; `lead` ns before each."""
    events, at = [], 0
    for _ in range(count):
        events.append(compute(at, at + work))
        at += work
        for _ in range(gathers):
            events.append(comm(at, at + 20, name="gather", kind="all-gather", scope="layer.attention.core"))
            at += 20
        at += lead
        events.append(comm(at, at + talking, name="sum"))
        at += talking
    return timeline(events, steps(0, at))


def test_a_slower_step_is_still_the_same_step():
    diff = timeline_diff(layers(4), layers(4, work=170))
    assert nothing(diff)


def test_slower_communication_is_a_difference_and_no_stretch():
    diff = timeline_diff(layers(4), layers(4, talking=15))
    assert diff.stretches.empty
    assert diff.by_scope["difference_communication_ns"].tolist() == [20]
    assert diff.total.difference_exposed_ns == 20


def test_what_one_framework_adds_in_every_layer_is_added_up():
    rows = [
        row(
            "gather",
            "all-gather",
            "tp",
            1000,
            [range(4)],
            induced=750,
            causes={"activation-gather": 750},
            scope="layer.attention.core",
        ),
        row("sum", "all-reduce", "tp", 1000, [range(4)], inherent=1500),
    ]
    diff = timeline_diff(layers(4), layers(4, gathers=3), left_rows=rows[1:], right_rows=rows)
    (excess,) = encode_rows(diff)["excess"]
    assert excess == {
        "side": "right",
        "collective": "gather",
        "scope": "layer.attention.core",
        "axes": "tp",
        "kind": "all-gather",
        "verdict": "induced",
        "cause": "activation-gather",
        "reason": "a sharded activation is gathered or reduced along an axis that the plan keeps sharded",
        "communication_ns": 240,
        "exposed_ns": 240,
        "executions": 12,
        "stretches": 4,
        "longest_ns": 60,
    }
    assert diff.stretches["executions"].tolist() == [3, 3, 3, 3]
    assert diff.stretches["duration_ns"].tolist() == [60, 60, 60, 60]


def test_among_equals_the_extra_one_is_told_by_what_stands_around_it():
    """Between the second and third gather one side has two sums, the other one."""
    few, many = [], []
    for layer in range(4):
        at = 100 * layer
        for side, twice in ((few, False), (many, layer == 1)):
            side.append(comm(at, at + 10, kind="all-gather", scope="embed", name="g"))
            side.append(comm(at + 20, at + 30))
            if twice:
                side.append(comm(at + 40, at + 50))
    # The other side is slower, and by no even factor.
    many = [event | {"start_ns": event["start_ns"] * 1.7 + 3} for event in many]
    diff = timeline_diff(timeline(few, steps(0, 400)), timeline(many, steps(0, 700)))
    assert len(diff.stretches) == 1
    assert diff.stretches["start_ns"][0] in (120 * 1.7 + 3, 140 * 1.7 + 3)


@pytest.mark.parametrize("place", range(5))
def test_an_extra_of_another_size_is_that_one(place):
    sums = [comm(100 * at, 100 * at + 10, payload=64) for at in range(5)]
    longer = sorted([*sums, comm(100 * place + 50, 100 * place + 60, payload=8)], key=lambda event: event["start_ns"])
    late = [event | {"start_ns": event["start_ns"] * 3} for event in longer]
    diff = timeline_diff(timeline(sums, steps(0, 500)), timeline(late, steps(0, 2000)))
    assert diff.stretches["start_ns"].tolist() == [300 * place + 150]


def test_alike_devices_are_shown_once_on_one_side_only():
    shown = timeline([comm(0, 10)], steps(0, 100), stands_for={0: (0, 1)}, source="modelled")
    every = timeline([comm(0, 10), comm(0, 10, device=1)], steps(0, 100, devices=(0, 1)))
    assert nothing(timeline_diff(shown, every))
    more = timeline([*(comm(0, 10, device=d) for d in (0, 1)), comm(40, 44, device=1)], steps(0, 100, devices=(0, 1)))
    diff = timeline_diff(shown, more)
    assert diff.excess["communication_ns"].tolist() == [2]
    assert diff.labels == {"left": "modelled by hand", "right": "measured by hand"}


def test_devices_and_steps_of_one_side_only_are_noted():
    left = timeline([comm(0, 10)], steps(0, 100, 200))
    right = timeline([comm(0, 10), comm(0, 30, device=1)], steps(0, 100, devices=(0, 1)))
    diff = timeline_diff(left, right)
    assert diff.notes == (
        "right: 1 of 2 devices are not in the other timeline; unmatched intervals leave them out",
        "2 steps on the left, 1 on the right: unmatched intervals are of the first 1",
    )
    assert diff.stretches.empty


def test_a_step_of_a_device_that_is_not_known_has_no_stretches():
    marks = steps(0, 100, devices=(0, 1, -1))
    every = timeline([comm(0, 10), comm(0, 10, device=1)], marks)
    lost = timeline([comm(0, 10), comm(0, 10, device=-1)], marks)
    assert timeline_diff(every, lost).stretches.empty


def test_without_devices_only_volumes_are_compared():
    left = timeline([comm(0, 10, device=-1)], steps(0, 100, devices=(-1,)))
    diff = timeline_diff(left, timeline([comm(0, 10)], steps(0, 100)))
    assert diff.total.difference_exposed_ns is None
    assert diff.by_scope["difference_executions"].tolist() == [0]
    assert "unmatched intervals are unknown where events name no device" in diff.notes
    json.dumps(encode_rows(diff), allow_nan=False)


def test_a_diff_is_plain_and_keeps_the_longest_stretches():
    diff = encode_rows(timeline_diff(layers(9), layers(9, gathers=2)), most=3)
    assert json.loads(json.dumps(diff, allow_nan=False)) == diff
    assert (len(diff["stretches"]), diff["num_stretches"]) == (3, 9)
