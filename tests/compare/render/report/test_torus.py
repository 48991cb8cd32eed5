"""The mesh, laid on the torus."""

import pytest

from compare.render.report.torus import CHIP, PITCH
from tests.compare.render.from_json import torus
from tests.compare.render.reports import make_mesh


def test_the_groups_of_tp4_run_along_neighbouring_chips() -> None:
    diagram = torus(make_mesh("tp4pp2"))
    at = {chip.device: (chip.x, chip.y) for chip in diagram.chips}
    for group in diagram.axes["tp"]:
        for device, other in zip(group.devices, group.devices[1:], strict=False):
            assert abs(at[device][0] - at[other][0]) + abs(at[device][1] - at[other][1]) == PITCH
    assert [group.devices for group in diagram.axes["pp"]] == [(0, 4), (1, 5), (2, 6), (3, 7)]


def test_members_that_are_no_neighbours_in_the_drawing_are_joined_by_arcs() -> None:
    diagram = torus(make_mesh("tp4pp8@v5p:2x4x4"))
    assert all(group.arcs and not group.steps for group in diagram.axes["tp"])  # along z, from plane to plane
    assert all(group.steps.count("M") == 7 and not group.arcs for group in diagram.axes["pp"])  # a snake on a plane


def test_devices_of_a_group_share_a_hue_and_groups_do_not() -> None:
    diagram = torus(make_mesh("tp4pp2"))
    assert len(set(diagram.hues["tp"][:4])) == 1
    assert len(set(diagram.hues["tp"])) == 2


def test_a_full_slice_shows_its_links_around() -> None:
    assert torus(make_mesh("tp4pp2")).wraps == ()
    assert len(torus(make_mesh("dp16tp16")).wraps) == 64  # two ends for each of 16 rows and 16 columns


@pytest.mark.parametrize(("mesh", "planes"), [("tp4pp4@v5p:2x2x4", 4), ("dp2tp4pp2@2xv5e:2x4", 2), ("dp16tp16", 0)])
def test_no_two_devices_share_a_place(mesh: str, planes: int) -> None:
    diagram = torus(make_mesh(mesh))
    assert len({(chip.x, chip.y) for chip in diagram.chips}) == len(diagram.chips)
    assert len(diagram.planes) == planes
    assert all(
        chip.x >= 0 and chip.x + CHIP <= diagram.width and chip.y + CHIP <= diagram.height for chip in diagram.chips
    )


def test_the_cores_of_a_chip_share_its_box() -> None:
    diagram = torus(make_mesh("tp8@tpu7x:2x2x1"))
    assert {chip.width for chip in diagram.chips} == {CHIP / 2}
