"""Devices against each other, on timelines where one of them is slow."""

import pytest

from compare.metrics.devices import arrival_lags, per_device
from compare.metrics.network.sent_bytes import bytes_sent_by
from compare.report.build import lay_out_mesh
from compare.timeline.tracks.times import measure_times
from compare.timeline.tracks.tracks import DeviceTracks
from meshes.case import Case
from tests.compare.timeline.build import comm, compute, imbalance, row, steps, stragglers, timeline

MESH = lay_out_mesh(Case.read("tp4pp2@v5e:2x4"))
GROUPS = [range(4), range(4, 8)]
SENT = bytes_sent_by(
    [
        row("sum", "all-reduce", "tp", 100, GROUPS),
        row("all", "all-gather", "pp,tp", 100, [range(8)]),
        row("shift", "collective-permute", "pp", 100, [(0, 4)]),
    ],
    MESH,
)


def lay_out(events, **kwargs):
    devices = {event["device"] for event in events}
    return DeviceTracks.of(timeline(events, steps(0, 100, devices=sorted(devices)), **kwargs))


def rows(events, **kwargs):
    tracks = lay_out(events, **kwargs)
    return per_device(tracks, measure_times(tracks))


def test_each_device_has_its_own_times():
    each = rows([compute(0, 60), comm(50, 80), compute(0, 30, device=1)])
    assert [row.device for row in each] == [0, 1]
    assert {name: getattr(each[0], name) for name in ("compute_ns", "communication_ns", "exposed_ns", "idle_ns")} == {
        "compute_ns": 60,
        "communication_ns": 30,
        "exposed_ns": 20,
        "idle_ns": 20,
    }
    assert each[1].idle_ns == 70


def test_imbalance_is_the_largest_over_the_mean():
    ratios = imbalance(rows([compute(0, 60), compute(0, 30, device=1), compute(0, 30, device=2)]))
    assert ratios["compute_ns"] == {"largest_over_mean": 1.5, "device": 0}
    assert ratios["step_ns"] == {"largest_over_mean": 1, "device": 0}
    assert ratios["communication_ns"] == {"largest_over_mean": None, "device": 0}
    assert "wait_ns" not in ratios


def test_a_shown_device_counts_as_often_as_it_stands_for_one():
    ratios = imbalance(rows([compute(0, 10), compute(0, 50, device=3)], stands_for={0: (0, 1, 2), 3: (3,)}))
    assert ratios["compute_ns"] == {"largest_over_mean": 2.5, "device": 3}


def test_a_device_that_is_always_last_is_the_straggler():
    events = [
        comm(start + 7 * (device == 2), start + 20, device=device, name="sum")
        for device in range(4)
        for start in (0, 50)
    ]
    late = arrival_lags(lay_out(events), SENT)
    assert late.loc[late["device"].eq(2), "lag_ns"].tolist() == [7, 7]
    late_devices = stragglers(late)
    assert late_devices[0] == {"device": 2, "mean_lag_ns": 7, "last_share": 1}
    assert late_devices[1] == {"device": 0, "mean_lag_ns": 0, "last_share": 0}


def test_groups_and_executions_are_held_against_themselves_only():
    events = [
        comm(0, 10, device=0, name="sum"),
        comm(3, 10, device=1, name="sum"),
        comm(50, 60, device=4, name="sum"),
        comm(52, 60, device=5, name="sum"),
        comm(20, 30, device=0, name="sum"),
        comm(20, 30, device=1, name="sum"),
    ]
    late = arrival_lags(lay_out(events), SENT)
    assert late.set_index(["device", "nth"])["lag_ns"].to_dict() == {
        (0, 0): 0,
        (0, 1): 0,
        (1, 0): 3,
        (1, 1): 0,
        (4, 0): 0,
        (5, 0): 2,
    }


@pytest.mark.parametrize("name", ["shift", "unheard of"])
def test_permutes_and_the_unknown_tell_no_straggler(name):
    late = arrival_lags(lay_out([comm(0, 10, name=name), comm(5, 10, device=4, name=name)]), SENT)
    assert stragglers(late) == []


def test_a_device_that_is_shown_alone_waits_for_nobody_that_is_seen():
    assert arrival_lags(lay_out([comm(0, 10, name="sum")]), SENT).empty


def test_without_devices_nobody_is_slow():
    tracks = lay_out([comm(0, 10, device=-1, name="sum")])
    assert per_device(tracks, measure_times(tracks)) == ()
    assert stragglers(arrival_lags(tracks, SENT)) == []
    assert stragglers(arrival_lags(lay_out([comm(0, 10)]), {})) == []
