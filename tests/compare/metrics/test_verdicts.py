"""Time by verdict adds up to the step's, whatever runs at once."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.metrics.verdict_shares import verdict_shares
from compare.metrics.verdicts import VERDICTS, verdict_times
from compare.timeline.tracks.step_clipping import clip_to_steps
from compare.timeline.tracks.tracks import DeviceTracks
from tests.compare.timeline.build import by_verdict, comm, compute, row, steps, timeline, trace_summary

TP = [range(4)]
ROWS = [
    row("needed", "all-reduce", "tp", 1000, TP, inherent=1500),
    row("bubbly", "all-reduce", "tp", 1000, TP, inherent=900, inflated=600, causes={"bubble": 600}),
    row("useless", "all-gather", "tp", 1000, TP, induced=750, causes={"activation-gather": 750}),
    row("odd", "all-gather", "tp", 1000, TP, inflated=250, induced=500, causes={"padding": 250, "other": 500}),
    replace(
        row("uncounted", "all-reduce", "tp", 1000, TP, executions=None),
        step_wire_bytes=None,
        inherent_bytes=None,
        inflated_bytes=None,
        induced_bytes=None,
    ),
]


def split(events, marks):
    tracks = DeviceTracks.of(timeline(events, marks))
    return by_verdict(tracks, clip_to_steps(tracks), verdict_shares(ROWS))


def test_a_collective_is_divided_as_its_bytes_are():
    shares = verdict_shares(ROWS).set_index("collective")
    assert shares.loc["bubbly", list(VERDICTS)].tolist() == [0.6, 0.4, 0]
    assert shares["verdict"].tolist() == ["inherent", "inherent", "induced", "induced", "unknown"]
    assert shares["cause"].tolist() == ["", "bubble", "activation-gather", "other", ""]
    assert shares.loc["useless", "reason"].startswith("a sharded activation is gathered")
    assert shares.loc["odd", "reason"] == "it satisfies nothing in the plan; the cause is unknown"


def test_each_verdict_has_its_part_of_the_time():
    events = [comm(0, 10, name="needed"), comm(20, 40, name="bubbly", wait=5), comm(50, 60, name="useless")]
    assert split([*events, compute(55, 60)], steps(0, 100)) == {
        "inherent": {"communication_ns": 22, "exposed_ns": 22, "wait_ns": 3},
        "inflated": {"communication_ns": 8, "exposed_ns": 8, "wait_ns": 2},
        "induced": {"communication_ns": 10, "exposed_ns": 5, "wait_ns": 0},
        "unknown": {"communication_ns": 0, "exposed_ns": 0, "wait_ns": 0},
    }


@pytest.mark.parametrize("name", ["uncounted", "never heard of", ""])
def test_what_has_no_verdict_is_unknown_and_shown(name):
    assert split([comm(0, 10, name=name)], steps(0, 100))["unknown"]["exposed_ns"] == 10


def test_two_that_are_exposed_at_once_share_the_time():
    splits = split([comm(0, 10, name="needed"), comm(0, 10, name="useless")], steps(0, 100))
    assert splits["inherent"]["exposed_ns"] == splits["induced"]["exposed_ns"] == 5


def test_only_what_lies_inside_a_step_counts():
    splits = split([comm(90, 120, name="needed"), comm(190, 230, name="useless")], steps(0, 100, 200))
    assert splits["inherent"]["exposed_ns"] == (10 + 20) / 2
    assert splits["induced"]["exposed_ns"] == 10 / 2


def test_the_table_tells_device_step_axes_and_scope():
    events = [comm(0, 10, name="needed"), comm(0, 30, device=1, name="useless", axes="pp", scope="?")]
    tracks = DeviceTracks.of(timeline(events, steps(0, 100, devices=(0, 1))))
    table = verdict_times(clip_to_steps(tracks), verdict_shares(ROWS))
    some = table[table["exposed_ns"] > 0]
    columns = ["device", "step", "axes", "scope", "verdict", "exposed_ns"]
    assert some[columns].to_numpy().tolist() == [
        [0, 0, "tp", "layer.mlp.down", "inherent", 10],
        [1, 0, "pp", "?", "induced", 30],
    ]


def test_the_verdicts_add_up_where_some_devices_are_unknown():
    events = [comm(0, 10, name="needed"), comm(0, 30, device=-1, name="useless")]
    marks = steps(0, 100, devices=(0, 1, -1))
    assert split(events, marks)["inherent"]["exposed_ns"] == 10
    assert trace_summary(timeline(events, marks))["per_step"]["exposed_ns"] == 10


def test_without_devices_nothing_is_told():
    splits = split([comm(0, 10, device=-1)], steps(0, 100, devices=(-1,)))
    assert splits["unknown"] == {"communication_ns": None, "exposed_ns": None, "wait_ns": None}


SPAN = st.tuples(st.integers(-5, 45), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair)))
NAMES = ["needed", "bubbly", "useless", "odd", "uncounted", ""]


@settings(max_examples=30)
@given(st.lists(st.tuples(SPAN, st.integers(0, 1), st.sampled_from(NAMES)), max_size=8), st.lists(SPAN, max_size=4))
def test_the_verdicts_add_up_to_the_step(comms, computes):
    events = [
        comm(*span, device=device, name=name, wait=span[1] - span[0] - 1)
        for span, device, name in comms
        if span[1] > span[0]
    ]
    events += [compute(*span, device=1) for span in computes]
    marks = steps(0, 20, 40, devices=(0, 1))
    full = trace_summary(timeline(events, marks))["per_step"]
    splits = split(events, marks)
    for name in ("communication_ns", "exposed_ns", "wait_ns"):
        if full[name] is not None:
            assert sum(row[name] for row in splits.values()) == pytest.approx(full[name], abs=1e-9)
