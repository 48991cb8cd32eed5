"""Sizes that no model, mesh or step has: refused in one line at once, never counted up to."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from meshes.case import Case, divisors
from meshes.checkpoint import Checkpoint, read_model
from meshes.checkpoint.safetensors import entries
from meshes.mesh_argument import read_mesh
from meshes.models import LARGEST, MODELS, Model
from meshes.process.errors import MeshError

CONFIG = {
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1e4,
}
TINY = MODELS["tiny"].to_dict()


def config(folder, text):
    (folder / "config.json").write_text(text)
    return folder


@pytest.mark.parametrize("key", [key for key in CONFIG if key != "model_type"])
@pytest.mark.parametrize("size", ["1" + "0" * 12, "9" * 400, "9" * 5_000, "1e400", "Infinity", "true", "[" * 100_000])
def test_a_config_of_absurd_sizes_is_refused(tmp_path, key, size):
    text = json.dumps(CONFIG | {key: "SIZE"}).replace('"SIZE"', size)
    if key in ("rms_norm_eps", "rope_theta") and size.startswith("10"):
        pytest.skip("these may be that large")
    with pytest.raises(MeshError, match=r"config.json"):
        Case.read("tp8", shapes=read_model(config(tmp_path, text)))


@pytest.mark.parametrize("dim", LARGEST)
@pytest.mark.parametrize("size", [-1, True, 1.0, None, "8", 10**12, 10**400])
def test_a_model_of_absurd_sizes_is_none(dim, size):
    with pytest.raises(MeshError, match=rf"{dim} of tiny is .*; write a whole number from 1 to"):
        Model.from_dict(TINY | {dim: size})


@pytest.mark.parametrize(
    "name", ["", "..", ".", "../../stolen", "/etc/passwd", "a\nb", "a\x1b[31m", "x" * 200, 3, None]
)
def test_a_model_s_name_is_a_plain_file_name(name):
    with pytest.raises(MeshError, match=r"the model's name is .*; a plain file name is right"):
        Model.from_dict(TINY | {"name": name})


@pytest.mark.parametrize(
    "changed",
    [
        {"norm_eps": "x"},
        {"rope_theta": -1},
        {"rope_theta": None},
        {"rope_scaling": 3},
        {"rope_scaling": {"factor": 1}},
        {"experts": 2, "experts_per_token": 3},
        {"layers": 2**14, "experts": 2**14},
    ],
)
def test_a_model_of_other_nonsense_is_none(changed):
    with pytest.raises(MeshError):
        Case.from_dict(Case.read("tp8", model_name="tiny").to_dict() | {"model": TINY | changed})


CASE = Case.read("tp8", model_name="tiny").to_dict()
BAD_CASES = [
    {"rules": True}, {"rules": []}, {"rules": {"vocab": []}}, {"mesh": 3}, {"mesh": {"axes": []}}, {"order": 3},
    {"mesh": {"axes": {"tp": 8, "x": 1}}}, {"topology": 3}, {"topology": "9999999999xv5e:2x4"}, {"model": 3},
    {"model": {}}, {"batch": 10**10}, {"batch": True}, {"seq": 2**31}, {"capacity": "x"}, {"capacity": []},
    {"phases": 3}, {"phases": ["x"]}, {"phases": []}, {"phases": [[]]}, {"variants": 3}, {"variants": [[]]},
    {"dtype": []}, {"style": {}}, {"batch": 2**30, "seq": 2**30},
]  # fmt: skip


@pytest.mark.parametrize("changed", BAD_CASES, ids=[json.dumps(changed) for changed in BAD_CASES])
def test_a_case_of_nonsense_is_none(changed):
    with pytest.raises(MeshError):
        Case.from_dict(CASE | changed)


@pytest.mark.parametrize("read", [None, 3, [], "case", True])
def test_what_is_no_table_is_no_case(read):
    with pytest.raises(MeshError, match="this is not a case"):
        Case.from_dict(read)


@pytest.mark.parametrize("capacity", [1e308, 1e-320])
def test_a_capacity_beyond_all_tokens_is_all_of_them(capacity):
    case = Case.read("ep8", model_name="tiny-moe", capacity=capacity, phases=("prefill",))
    assert case.expert_slots == {1e308: case.group_tokens, 1e-320: 1}[capacity]


MESHES = [
    ("tp" + "9" * 400, "cannot read mesh 'tp99"),
    ("tp" + "9" * 100, "a mesh has at most 131,072 devices"),
    ("dp131073", "a mesh has at most 131,072 devices"),
    ("dp1024tp1024", "has 1,048,576 devices; there are at most 131,072"),
    ("tp8@" + "9" * 400 + "xv5e:2x4", "cannot read topology"),
    ("tp8@999999xv5e:16x16", "has 255,999,744 devices; there are at most 131,072"),
    ("x" * 400_000, "cannot read mesh 'xxx"),
]


@pytest.mark.parametrize(("mesh", "says"), MESHES, ids=[says for _, says in MESHES])
def test_a_mesh_of_absurd_sizes_is_refused(mesh, says):
    with pytest.raises(MeshError, match=says):
        read_mesh(mesh)


def test_a_vocabulary_that_nothing_divides_is_told_with_what_does():
    shapes = Model.from_dict(TINY | {"vocab": 2**24 - 3})  # 2^24 - 3 is a prime
    with pytest.raises(MeshError, match=r"tp8 does not divide vocab=16777213 of tiny; tp sizes that fit: 1$"):
        Case.read("tp8", shapes=shapes)


@pytest.mark.parametrize("size", [1, 2, 12, 36, 97, 360])
def test_divisors_are_those_that_leave_no_rest(size):
    assert divisors(size) == [n for n in range(1, size + 1) if size % n == 0]


SHAPES = ["[Infinity]", "[NaN]", "[-1]", "[1.5]", "[true]", "[1" + "0" * 400 + "]", '["8"]', "[" * 90_000, "8", "{}"]


@pytest.mark.parametrize("shape", SHAPES, ids=[shape[:12] for shape in SHAPES])
def test_a_tensor_of_an_absurd_shape_is_one_line(tmp_path, shape):
    row = '{"a": {"dtype": "F32", "shape": SHAPE, "data_offsets": [0, 4]}}'.replace("SHAPE", shape).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(row).to_bytes(8, "little") + row + bytes(4))
    with pytest.raises(MeshError, match=r"model.safetensors is (damaged|no safetensors file)"):
        entries(path)


def test_a_shape_that_is_huge_and_right_in_its_bytes_is_none_of_the_model_s(tmp_path):
    save_file({"model.embed_tokens.weight": np.zeros((0, 2**40), np.float32)}, tmp_path / "model.safetensors")
    config(tmp_path, json.dumps(CONFIG))
    with pytest.raises(MeshError):
        Checkpoint.open(tmp_path)


@pytest.mark.parametrize("name", ["..", "../x", "", "a\x00b", "/etc/hostname", "a/b"])
def test_an_index_sends_nobody_out_of_the_folder(tmp_path, name):
    config(tmp_path, json.dumps(CONFIG))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(MeshError, match="it must be a file of the same folder"):
        Checkpoint.open(tmp_path)
