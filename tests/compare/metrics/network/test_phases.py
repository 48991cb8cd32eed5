"""Up and down phases, and the volume over a step: nothing is lost between them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare.metrics.network.phases import ALL, bin_volume, find_up_phases, rate_traffic
from compare.metrics.network.sent_bytes import bytes_sent_by
from compare.report.build import lay_out_mesh
from compare.timeline.tracks.step_clipping import clip_to_steps
from compare.timeline.tracks.tracks import DeviceTracks
from meshes.case import Case
from tests.compare.timeline.build import comm, network, row, steps, timeline

MESH = lay_out_mesh(Case.read("tp4pp2@v5e:2x4"))
ROWS = [
    row("gather", "all-gather", "tp", 400, [range(4), range(4, 8)]),
    row("shift", "collective-permute", "pp", 100, [(0, 4), (1, 5), (2, 6), (3, 7)]),
]
SHIFT = {"name": "shift", "kind": "collective-permute", "axes": "pp", "payload": 100}


def gather(start, end, device=0):
    """Sends 300 bytes."""
    return comm(start, end, device=device, name="gather", kind="all-gather", payload=400)


def lay_out(events, marks, **kwargs):
    tracks = DeviceTracks.of(timeline(events, marks, **kwargs))
    carried = rate_traffic(tracks, clip_to_steps(tracks), bytes_sent_by(ROWS, MESH))
    return tracks, carried, find_up_phases(carried)


def test_the_network_is_up_while_anything_runs():
    tracks, _, up = lay_out([gather(0, 20), gather(10, 30), gather(50, 60)], steps(0, 100))
    tp = up[up["axes"].eq("tp")]
    assert tp[["start_ns", "duration_ns", "wire_bytes"]].to_numpy().tolist() == [[0, 30, 600], [50, 10, 300]]
    assert (tp["peak_bytes_per_s"] / 1e9).tolist() == pytest.approx([30, 30])
    assert tp[["turn_from", "turn_to"]].to_numpy().tolist() == [[0, 0.3], [0.5, 0.6]]
    assert network(tracks, up)["tp"] == {
        "duty_cycle": 0.4,
        "up_phases": 2,
        "bytes_per_up_phase": 450,
        "peak_bytes_per_s": 30 * 10**9,
    }


def test_axes_have_their_own_phases_and_all_together_theirs():
    tracks, _, up = lay_out([gather(0, 30), comm(20, 40, **SHIFT)], steps(0, 100))
    use = network(tracks, up)
    assert (use["tp"]["duty_cycle"], use["pp"]["duty_cycle"], use[ALL]["duty_cycle"]) == (0.3, 0.2, 0.4)
    assert use[ALL]["bytes_per_up_phase"] == 400
    assert use[ALL]["peak_bytes_per_s"] == 15 * 10**9


def test_a_device_sends_what_its_place_in_the_collective_says():
    _, carried, _ = lay_out(
        [comm(0, 10, device=0, **SHIFT), comm(0, 10, device=4, **SHIFT)], steps(0, 20, devices=(0, 4))
    )
    assert carried["wire_bytes"].tolist() == [100, 0]


def test_a_phase_does_not_run_on_into_the_next_step():
    tracks, _, up = lay_out([gather(90, 110)], steps(0, 100, 200))
    tp = up[up["axes"].eq("tp")]
    assert tp[["step", "start_ns", "duration_ns", "wire_bytes"]].to_numpy().tolist() == [
        [0, 90, 10, 150],
        [1, 0, 10, 150],
    ]
    assert network(tracks, up)["tp"]["up_phases"] == 1


def test_what_no_row_tells_has_phases_and_no_bytes():
    tracks, _, up = lay_out([comm(0, 10, name="other")], steps(0, 100))
    assert network(tracks, up)["tp"] == {
        "duty_cycle": 0.1,
        "up_phases": 1,
        "bytes_per_up_phase": None,
        "peak_bytes_per_s": None,
    }


def test_a_step_without_traffic_is_never_up():
    tracks, carried, up = lay_out([], steps(0, 100))
    assert network(tracks, up) == {}
    assert bin_volume(tracks, carried, up).empty


def test_the_volume_rises_while_the_network_is_up():
    tracks, carried, up = lay_out([gather(10, 40), gather(60, 90)], steps(0, 100))
    volume = bin_volume(tracks, carried, up, bins=10)
    tp = volume[volume["axes"].eq("tp")]
    assert tp["wire_bytes"].tolist() == pytest.approx([0, 100, 100, 100, 0, 0, 100, 100, 100, 0])
    assert tp["sum_wire_bytes"].tolist()[-1] == pytest.approx(600)
    assert tp["up"].tolist() == pytest.approx([0, 1, 1, 1, 0, 0, 1, 1, 1, 0])
    assert tp["start_ns"].tolist() == [10 * place for place in range(10)]


def test_the_volume_is_a_mean_over_steps_of_their_own_length_and_devices():
    events = [gather(0, 50), gather(100, 200), gather(0, 50, device=7), gather(100, 200, device=7)]
    marks = steps(0, 100, 300, devices=(0, 7))
    tracks, carried, up = lay_out(events, marks, stands_for={0: (0, 1, 2), 7: (7,)})
    tp = bin_volume(tracks, carried, up, bins=4)
    tp = tp[tp["axes"].eq("tp")]
    assert tp["wire_bytes"].tolist() == pytest.approx([150, 150, 0, 0])
    assert tp["start_ns"].tolist() == [0, 37.5, 75, 112.5]


SPAN = st.tuples(st.integers(0, 50), st.integers(0, 30)).map(lambda pair: (pair[0], sum(pair)))


@settings(max_examples=30)
@given(st.lists(SPAN, max_size=6), st.lists(SPAN, max_size=3), st.integers(1, 13))
def test_no_byte_is_lost(gathers, shifts, bins):
    events = [gather(*span) for span in gathers] + [comm(*span, **SHIFT) for span in shifts]
    tracks, carried, up = lay_out(events, steps(0, 100))
    total = 300 * len(gathers) + 100 * len(shifts)
    assert carried["wire_bytes"].sum() == pytest.approx(total)
    lasting = 300 * sum(end > start for start, end in gathers) + 100 * sum(end > start for start, end in shifts)
    for axes in (ALL,):
        assert up.loc[up["axes"].eq(axes), "wire_bytes"].sum() == pytest.approx(lasting)
    volume = bin_volume(tracks, carried, up, bins=bins)
    every = volume[volume["axes"].eq(ALL)]
    if len(every):
        assert every["wire_bytes"].sum() == pytest.approx(total)
        units = {unit for start, end in [*gathers, *shifts] for unit in range(start, end)}
        assert every["up"].mean() == pytest.approx(len(units) / 100)
        assert np.all(every["up"] <= 1 + 1e-9)
