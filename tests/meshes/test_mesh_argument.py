"""TOML spec files: axes, topology, order, rules."""

import pytest

from meshes.devices.mesh_spec import MeshSpec
from meshes.mesh_argument import SPECS, read_mesh
from meshes.process.errors import MeshError


def write_file(tmp_path, text):
    path = tmp_path / "mesh.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_says_all_that_a_name_says_and_more(tmp_path):
    text = 'axes = { tp = 4, dp = 2 }\ntopology = "v6e:2x4"\norder = ["tp", "dp"]\n[rules]\nvocab = "none"\n'
    plan = read_mesh(write_file(tmp_path, text))
    assert plan.mesh == MeshSpec(dp=2, tp=4)
    assert plan.topology.name == "v6e:2x4"
    assert plan.order == ("pp", "cp", "ep", "tp", "dp")
    assert plan.rules["vocab"] is None
    assert plan.rules["ffn"] == "tp"


def test_sequence_parallelism_is_a_rule_or_a_word_behind_the_name(tmp_path):
    named = read_mesh("tp4pp2+sp")
    assert read_mesh(write_file(tmp_path, 'axes = { tp = 4, pp = 2 }\nrules = { seq = "tp" }')) == named
    assert named.name == "pp2tp4+sp"
    assert read_mesh("tp4pp2+sp@v6e:2x4").topology.name == "v6e:2x4"


@pytest.mark.parametrize("path", sorted(SPECS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_file_that_ships_can_be_read_by_its_name(path):
    assert read_mesh(path.name) == read_mesh(str(path))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("axis = { tp = 8 }", "unknown keys axis; the keys are axes, topology, order, rules"),
        ("", "axes is missing"),
        ("axes = { tp = 8", "is not TOML"),
        ("axes = { tp = -8 }", "size -8; a size is a whole number"),
        ("axes = { tp = true }", "size True; a size is a whole number"),
        ("axes = { tp = 8 }\ntopology = 8", "topology is 8; write a string"),
        ('axes = { tp = 8 }\norder = ["tp", "tp"]', "order is"),
        ('axes = { tp = 8 }\nrules = { ffn = "dp" }', "rules split ffn over 'dp'; offered is 'tp' or 'none'"),
        ('axes = { tp = 8 }\nrules = { width = "tp" }', "rules name the dim 'width'"),
        ('axes = { tp = 8 }\nrules = { heads = "none" }', "attention needs both split, or neither"),
        ('axes = { tp = 8 }\ntopology = "v5e:4x4"', "mesh tp8 has 8 devices, but v5e:4x4 has 16"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, text, says):
    with pytest.raises(MeshError, match=says) as caught:
        read_mesh(write_file(tmp_path, text))
    assert "\n" not in str(caught.value).replace(str(tmp_path), "")


def test_a_file_that_is_not_there_names_those_that_ship():
    with pytest.raises(MeshError, match=r"No such file.*tp4pp2\.toml"):
        read_mesh("no-such.toml")
