"""Traffic matrices: rows sum to the definitions' bytes, and the torus carries what its algorithm sends."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from compare.hlo.emission.payload import sent_bytes
from compare.metrics.network.matrix import ici_bytes_by_chip, list_uncounted, logical_bytes, traffic_matrix
from compare.metrics.network.routes import Torus, link_loads
from compare.metrics.network.sent_bytes import bytes_sent_by
from compare.report.build import lay_out_mesh
from compare.report.model.report import Report
from compare.timeline.errors import TimingError
from meshes.case import Case
from tests.compare.timeline.build import row
from tests.places import example_report

EXAMPLE = Report.from_json(example_report())
KINDS = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-broadcast"]


def mesh(name):
    return lay_out_mesh(Case.read(name, batch=256))


def sum_bytes(frame, column, device):
    return frame.loc[frame["device_from"].eq(device), column].sum()


@pytest.mark.parametrize("arm", ["jax", "torchxla"])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_the_matrix_of_a_real_program_sums_to_its_wire_bytes(phase, arm):
    program = EXAMPLE.phases[phase].arms[arm].default
    rows = program.collectives
    frame = traffic_matrix(bytes_sent_by(rows, EXAMPLE.mesh), EXAMPLE.mesh)
    by_axes = frame.groupby("axes")["logical_bytes"].sum() / 8
    for axes in {entry.axes for entry in rows}:
        assert by_axes[axes] == sum(entry.step_wire_bytes for entry in rows if entry.axes == axes)
    total = program.totals.wire_bytes
    assert frame["logical_bytes"].sum() / 8 == total
    assert frame["routed_bytes"].sum() / 8 == total


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_each_device_sends_what_the_definitions_say(kind, size):
    group = tuple(range(size))
    expected = sent_bytes(kind, (group,), 1, size)
    for device in group:
        sent = sum((part for pair, part in logical_bytes(kind, group).items() if pair[0] == device), Fraction(0))
        assert sent == expected[device]


def test_a_chip_sends_over_ici_what_leaves_it_and_stays_in_its_slice():
    """Two slices of v4, two chips each, two devices a chip: each device sends 150 bytes to each of the 7 others."""
    whole = mesh("dp4tp2@2xv4:1x2x1")
    places = [(slice_, 0, chip, 0, core) for slice_ in (0, 1) for chip in (0, 1) for core in (0, 1)]
    assert [tuple(known.place) for known in whole.devices] == places
    gather = row("g", "all-gather", "dp,tp", 1200, [range(8)], executions=3, network="dcn", inherent=3 * 1050)
    # From each of two devices to each of two on the other chip; of a device's 1,050 bytes 600 leave the slice.
    assert ici_bytes_by_chip(bytes_sent_by([gather], whole), whole) == [3 * 2 * 2 * 150] * 4
    pairs = ((0, 1), (0, 2), (0, 4), (3, 3))
    permute = row("p", "collective-permute", "dp,tp", 1200, pairs, network="dcn", device_executions=(1,) * 8)
    assert ici_bytes_by_chip(bytes_sent_by([permute], whole), whole) == [1200, 0, 0, 0]


@pytest.mark.parametrize("arm", ["jax", "torchxla"])
def test_in_one_slice_of_chips_with_one_device_all_bytes_are_sent_over_ici(arm):
    program = EXAMPLE.phases["prefill"].arms[arm].default
    sent = ici_bytes_by_chip(bytes_sent_by(program.collectives, EXAMPLE.mesh), EXAMPLE.mesh)
    assert sum(sent) == 8 * program.totals.wire_bytes


def test_what_a_chip_sends_is_not_known_where_executions_are_not():
    sent = bytes_sent_by([row("g", "all-gather", "tp", 8, [(0, 1)], executions=None)], EXAMPLE.mesh)
    assert ici_bytes_by_chip(sent, EXAMPLE.mesh) is None


def test_a_permute_sends_from_source_to_target():
    assert logical_bytes("collective-permute", (3, 7)) == {(3, 7): 1}
    assert logical_bytes("collective-permute", (3, 3)) == {}


def test_an_open_line_gathers_outwards():
    """Four chips in a row, shards a quarter: the link k → k+1 carries the k+1 shards behind it."""
    torus = Torus.of(mesh("tp4pp2@v5e:2x4"))
    loads = link_loads("all-gather", (0, 1, 2, 3), torus)
    ahead = {(0, 1): 1, (1, 2): 2, (2, 3): 3}
    behind = {(3, 2): 1, (2, 1): 2, (1, 0): 3}
    assert loads == {link: Fraction(shards, 4) for link, shards in {**ahead, **behind}.items()}
    backwards = link_loads("reduce-scatter", (0, 1, 2, 3), torus)
    assert backwards == {(target, source): amount for (source, target), amount in loads.items()}
    assert link_loads("all-reduce", (0, 1, 2, 3), torus) == {link: loads[link] + backwards[link] for link in loads}


def test_a_ring_that_closes_sends_half_either_way_round():
    torus = Torus.of(mesh("dp16pp16@v5e:16x16"))
    loads = link_loads("all-gather", tuple(range(16)), torus)
    assert len(loads) == 32
    assert set(loads.values()) == {Fraction(15, 2 * 16)}
    assert (15, 0) in loads


def test_a_plane_uses_both_of_its_sides():
    """Two by four, 0 1 2 3 above 7 6 5 4: half gathers along x then y, half along y then x."""
    loads = link_loads("all-gather", tuple(range(8)), Torus.of(mesh("tp8@v5e:2x4")))
    assert loads[2, 3] == Fraction(3 * 2 + 3, 16)
    assert loads[0, 7] == Fraction(1 + 4, 16)
    assert sum(loads.values()) == 7


@pytest.mark.parametrize(
    "name",
    ["tp8@v5e:2x4", "tp4pp2@v5e:2x4", "dp2tp4@v5e:2x4", "tp8@v4:2x2x1", "dp16pp16@v5e:16x16", "dp2tp8@2xv5e:2x4"],
)
@pytest.mark.parametrize("kind", ["all-reduce", "all-gather", "reduce-scatter"])
def test_between_neighbours_the_algorithm_moves_no_more_than_the_definitions_say(name, kind):
    case = Case.read(name, batch=256)
    group = case.mesh.groups("tp" if case.mesh.tp > 1 else "pp")[0]
    factor = {"all-reduce": 2}.get(kind, 1)
    assert sum(link_loads(kind, group, Torus.of(lay_out_mesh(case))).values()) == factor * (len(group) - 1)


def test_hops_over_others_load_every_link_on_the_way():
    """0 2 4 6 above 1 3 5 7: from 0 to 4 by way of 2, from 0 to 5 along x first."""
    torus = Torus.of(mesh("dp2pp2tp2@v5e:2x4"))
    assert list(torus.route(0, 4)) == [(0, 2), (2, 4)]
    assert list(torus.route(0, 5)) == [(0, 1), (1, 3), (3, 5)]
    assert link_loads("all-to-all", (0, 4), torus) == dict.fromkeys([(0, 2), (2, 4), (4, 2), (2, 0)], Fraction(1, 2))
    assert link_loads("all-gather", (0, 4), torus) == dict.fromkeys([(0, 2), (2, 4), (4, 2), (2, 0)], Fraction(1, 2))


def test_routes_go_the_shorter_way_round():
    torus = Torus.of(mesh("dp16pp16@v5e:16x16"))
    assert list(torus.route(0, 15)) == [(0, 15)]
    assert len(list(torus.route(0, 8))) == 8


def test_a_group_that_is_no_box_makes_a_ring_in_order_of_id():
    torus = Torus.of(mesh("tp8@v5e:2x4"))
    loads = link_loads("all-gather", (0, 1, 6), torus)
    assert loads == dict.fromkeys([(0, 1), (1, 6), (6, 1), (1, 0)], Fraction(2, 3))


def test_groups_of_one_slice_stand_for_a_group_in_every_slice():
    picture = mesh("dp2tp8@2xv5e:2x4")
    rows = [row("r", "all-gather", "tp", 800, [range(8)], induced=700)]
    frame = traffic_matrix(bytes_sent_by(rows, picture), picture)
    assert sum_bytes(frame, "logical_bytes", 0) == sum_bytes(frame, "logical_bytes", 8) == 700
    across = [row("r", "all-reduce", "dp", 100, [(at, at + 8) for at in range(8)], induced=100)]
    frame = traffic_matrix(bytes_sent_by(across, picture), picture)
    assert sum_bytes(frame, "logical_bytes", 8) == 100
    assert set(map(tuple, frame[["device_from", "device_to"]].to_numpy()[:1])) == {(0, 8)}


def test_groups_are_of_places_where_the_devices_of_a_slice_do_not_follow_each_other():
    """Stages over the slices: devices 0 to 3 and 8 to 11 are on the first."""
    picture = mesh("dp2pp2tp4-stages-apart.toml")
    inside = row("r", "all-gather", "dp", 800, [(at, at + 4) for at in range(4)], induced=400)
    assert bytes_sent_by([inside], picture)["r"].groups[:5] == ((0, 8), (1, 9), (2, 10), (3, 11), (4, 12))
    shift = row("s", "collective-permute", "pp", 100, [(0, 4)], induced=100, network="dcn")
    assert bytes_sent_by([shift], picture)["s"].groups == ((0, 4),)


def test_executions_of_a_branch_count_for_the_devices_that_run_it():
    picture = mesh("tp4pp2@v5e:2x4")
    groups = [range(4), range(4, 8)]
    known = row("r", "all-gather", "tp", 400, groups, executions=2, induced=300, device_executions=(2,) * 4 + (0,) * 4)
    frame = traffic_matrix(bytes_sent_by([known], picture), picture)
    assert sum_bytes(frame, "logical_bytes", 0) == 600
    assert sum_bytes(frame, "logical_bytes", 4) == 0
    loads = bytes_sent_by([replace(known, device_executions=None)], picture)
    assert list_uncounted(loads) == ["r"]
    assert traffic_matrix(loads, picture).empty


def test_a_program_of_more_devices_than_the_mesh_is_refused():
    with pytest.raises(TimingError, match="names device 15, and the mesh has 8"):
        bytes_sent_by([row("r", "all-gather", "tp", 400, [range(16)])], mesh("tp4pp2@v5e:2x4"))


def test_a_device_sends_to_itself_nothing():
    frame = traffic_matrix(
        bytes_sent_by(EXAMPLE.phases["prefill"].arms["jax"].default.collectives, EXAMPLE.mesh), EXAMPLE.mesh
    )
    assert (frame["device_from"] != frame["device_to"]).all()
    assert np.isfinite(frame["routed_bytes"]).all()
