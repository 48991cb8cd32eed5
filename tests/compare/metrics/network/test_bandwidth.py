"""Bandwidths by NCCL-tests' formulas, and the peaks that links allow, by hand and by published figures."""

import pytest

from compare.metrics.collectives import collective_rows
from compare.metrics.network.routes import peaks
from compare.metrics.network.sent_bytes import bytes_sent_by
from compare.metrics.verdict_shares import verdict_shares
from compare.report.build import lay_out_mesh
from compare.timeline.tracks.step_clipping import clip_to_steps
from compare.timeline.tracks.tracks import DeviceTracks
from meshes.case import Case
from tests.compare.timeline.build import comm, row, steps, timeline

LINK = 45e9


def peak(name, kind, *axes, pairs=None):
    """The peak of a collective over some axes of a mesh, in links."""
    case = Case.read(name, batch=256)
    picture = lay_out_mesh(case)
    rows = [row("r", kind, ",".join(axes), 100, pairs or case.mesh.groups(*axes))]
    return peaks(bytes_sent_by(rows, picture), picture, LINK).get("r", float("nan")) / LINK


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        ("all-reduce", 1.75),
        ("all-gather", 0.875),
        ("reduce-scatter", 0.875),
        ("all-to-all", 0.875),
        ("collective-broadcast", 1),
    ],
)
def test_bus_bandwidth_has_the_factors_of_nccl_tests(kind, factor):
    """doc/PERFORMANCE.md there, with n = 8."""
    picture = lay_out_mesh(Case.read("tp8@v5e:2x4"))
    bytes_sent = bytes_sent_by([row("r", kind, "tp", 1000, [range(8)])], picture)
    assert measured([comm(0, 500, name="r", kind=kind, payload=1000)], bytes_sent) == {"r": (2e9, 2e9 * factor)}


def measured(comms, bytes_sent):
    """Collective -> algorithm and bus bandwidth."""
    tracks = DeviceTracks.of(timeline(comms, steps(0, 1000)))
    rows = collective_rows(tracks, clip_to_steps(tracks), bytes_sent, verdict_shares([]), {})
    return {each.collective: (each.algorithm_bytes_per_s, each.bus_bytes_per_s) for each in rows}


def test_a_permute_is_send_and_receive():
    picture = lay_out_mesh(Case.read("tp4pp2@v5e:2x4"))
    bytes_sent = bytes_sent_by([row(name, "collective-permute", "pp", 1000, [(0, 4)]) for name in "rs"], picture)
    found = measured([comm(0, 500, name="r", payload=1000), comm(500, 500, name="s")], bytes_sent)
    assert (found["r"][1], found["s"][1]) == (2e9, None)


def test_the_peak_gives_the_time_that_the_scaling_book_computes():
    """v5e 8x4, 34 MB gathered over the open axis of 4: 560 µs in theory."""
    bus = peak("dp8tp4@v5e:4x8", "all-gather", "tp") * LINK
    case = Case.read("dp8tp4@v5e:4x8", batch=256)
    assert case.mesh.groups("tp")[0] == (0, 1, 2, 3)
    assert 34e6 * 3 / 4 / bus * 1e6 == pytest.approx(560, rel=0.02)


@pytest.mark.parametrize(
    ("name", "kind", "axes", "links"),
    [
        ("tp4pp2@v5e:2x4", "all-gather", "tp", 1),  # an open line: its end has one link
        ("tp4pp2@v5e:2x4", "all-reduce", "pp", 1),
        ("dp16pp16@v5e:16x16", "all-reduce", "pp", 2),  # a ring, both ways
        ("tp8@v5e:2x4", "all-gather", "tp", 2),  # the corner of a plane
        ("dp2tp4@v5e:2x4", "all-gather", "dp", 1),
        ("tp2dp4@v5e:2x4", "all-gather", "tp", 1),
        ("dp2pp2tp2@v5e:2x4", "all-gather", "dp", 0.5),  # 0 and 2, 1 and 3 of a line share its middle link
        ("tp8dp8@v5p:4x4x4", "all-gather", "tp", 3),  # one side that closes, and half of another
        ("tp2dp4@v4:2x2x1", "all-gather", "tp", float("nan")),  # two cores of a chip: no link between chips
        ("dp2tp8@2xv5e:2x4", "all-gather", "dp", float("nan")),  # between slices
    ],
)
def test_peaks_in_links(name, kind, axes, links):
    assert peak(name, kind, axes) == pytest.approx(links, nan_ok=True)


def test_a_shift_between_neighbours_has_one_link_and_a_long_one_shares():
    assert peak("tp4pp2@v5e:2x4", "collective-permute", "pp", pairs=[(0, 4), (1, 5), (2, 6), (3, 7)]) == 1
    assert peak("tp8@v5e:2x4", "collective-permute", "tp", pairs=[(0, 2), (1, 3)]) == 0.5


def test_all_to_all_is_bound_by_its_busiest_link():
    """Four on an open line: the middle link carries 2 × 2 messages of a quarter each way."""
    assert peak("tp4pp2@v5e:2x4", "all-to-all", "tp") == 0.75 / 1


def test_without_the_speed_of_a_link_there_is_no_peak():
    picture = lay_out_mesh(Case.read("tp4pp2"))
    bytes_sent = bytes_sent_by([row("r", "all-gather", "tp", 100, [range(4), range(4, 8)])], picture)
    assert peaks(bytes_sent, picture, None) == {}
