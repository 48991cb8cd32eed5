"""The grammar of a mesh name, and the numbering of devices."""

import pytest

from meshes.devices.mesh_spec import MeshSpec
from meshes.process.errors import MeshError


def test_order_in_the_name_does_not_matter():
    assert MeshSpec.parse("tp4pp2") == MeshSpec.parse("pp2tp4") == MeshSpec(pp=2, tp=4)
    assert MeshSpec.parse("tp4pp2").name == "pp2tp4"


def test_a_single_device_has_a_name():
    assert MeshSpec().name == "tp1"
    assert MeshSpec.parse("tp1").num_devices == 1


def test_devices_are_numbered_row_major_with_tp_innermost():
    mesh = MeshSpec.parse("dp2pp2tp2")
    # id = 4·dp + 2·pp + tp
    assert mesh.coordinates[6] == {"dp": 1, "pp": 1, "cp": 1 - 1, "ep": 0, "tp": 0}
    assert mesh.groups("tp") == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert mesh.groups("pp") == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert mesh.groups("dp", "tp") == ((0, 1, 4, 5), (2, 3, 6, 7))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tp3x", "cannot read mesh 'tp3x'; write axis\\+size pairs"),
        ("", "cannot read mesh ''"),
        ("tp", "cannot read mesh 'tp'"),
        ("tp0", "cannot read mesh 'tp0'"),
        ("TP4", "cannot read mesh 'TP4'"),
        ("xp4", "names xp; the axes are dp, pp, cp, ep, tp"),
        ("tp2tp2", "names an axis twice"),
    ],
)
def test_a_bad_name_says_what_is_wrong(name, says):
    with pytest.raises(MeshError, match=says):
        MeshSpec.parse(name)
