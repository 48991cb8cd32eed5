"""Weights read from checkpoints, whole and in the shards of a mesh, against numpy on what was written."""

import itertools
import sys
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from meshes.case import Case
from meshes.checkpoint import Checkpoint, from_huggingface
from meshes.dims import axes_of
from meshes.process.errors import MeshError
from meshes.weights import WeightSpec, weights
from tests.meshes.checkpoint.hub import CONFIGS, case_on, config_of, shapes_of, some_model, state_of, weights_of, write

MESHES = ("tp1", "tp2pp2", "tp4")  # on tp4 each of 2 KV heads stands twice


def shards(spec: WeightSpec, case: Case) -> list[tuple[slice, ...]]:
    """The slices that the devices of a mesh hold."""
    sizes, ways = case.mesh.axes, []
    for split, size in zip(axes_of(spec.dims, rules=case.plan.rules), spec.shape, strict=True):
        axes = (split,) if isinstance(split, str) else split or ()
        part = size // int(np.prod([sizes[axis] for axis in axes], dtype=int))
        ways.append([slice(start, start + part) for start in range(0, size, part)])
    return list(itertools.product(*ways))


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("family", CONFIGS)
def test_every_shard_of_every_weight_is_what_was_written(family: str, mesh: str, tmp_path: Path) -> None:
    config = config_of(family)
    state = state_of(config)
    checkpoint = Checkpoint.open(write(tmp_path / "some", config, state, files=3))
    case = case_on(mesh, checkpoint.model, dtype="f32")
    right = weights_of(config, state, case)
    assert {spec.name for spec in weights(case)} == set(right)
    for spec in weights(case):
        for index in shards(spec, case):
            values = checkpoint.read(spec, index, case)
            assert values.dtype == np.float32
            assert np.array_equal(values, right[spec.name][index]), (spec.name, index)


@pytest.mark.parametrize("family", CONFIGS)
def test_arrays_in_memory_are_the_same_weights(family: str) -> None:
    config = config_of(family)
    state = state_of(config)
    case = case_on("tp2pp2", some_model(config), dtype="f32")
    values = from_huggingface(state, case=case)
    right = weights_of(config, state, case)
    assert {name: array.shape for name, array in values.items()} == {spec.name: spec.shape for spec in weights(case)}
    assert all(np.array_equal(values[name], right[name]) for name in right)


@pytest.mark.parametrize("family", ["mixtral", "qwen3_moe", "qwen2_moe"])
def test_experts_may_be_stacked_as_transformers_keeps_them_in_memory(family: str) -> None:
    config = config_of(family)
    published = state_of(config)
    gate, up, down = ("w1", "w3", "w2") if family == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    room = "block_sparse_moe" if family == "mixtral" else "mlp"
    stacked = {name: array for name, array in published.items() if ".experts." not in name and ".gate.w" not in name}
    for layer in range(4):
        at = f"model.layers.{layer}"
        each = [
            {part: published[f"{at}.{room}.experts.{n}.{part}.weight"] for part in (gate, up, down)} for n in range(4)
        ]
        stacked[f"{at}.mlp.gate.weight"] = published[f"{at}.{room}.gate.weight"]
        stacked[f"{at}.mlp.experts.gate_up_proj"] = np.stack(
            [np.concatenate([expert[gate], expert[up]]) for expert in each]
        )
        stacked[f"{at}.mlp.experts.down_proj"] = np.stack([expert[down] for expert in each])
    case = case_on("tp2pp2", some_model(config), dtype="f32")
    values, right = from_huggingface(stacked, case=case), from_huggingface(published, case=case)
    assert all(np.array_equal(values[name], right[name]) for name in right)


@pytest.mark.parametrize("family", CONFIGS)
def test_any_slice_is_that_slice_of_the_whole(family: str, tmp_path: Path) -> None:
    config = config_of(family)
    state = state_of(config)
    checkpoint = Checkpoint.open(write(tmp_path / "some", config, state))
    case = case_on("tp4", checkpoint.model, dtype="f32")
    right, random = weights_of(config, state, case), np.random.default_rng(0)
    for spec, _ in itertools.product(weights(case), range(4)):
        ends = [sorted(random.choice(size + 1, 2, replace=False)) for size in spec.shape]
        index = tuple(slice(int(start), int(stop)) for start, stop in ends)
        assert np.array_equal(checkpoint.read(spec, index, case), right[spec.name][index]), (spec.name, index)


def test_a_projection_is_turned_and_its_heads_are_the_outer_digit() -> None:
    config = config_of("llama")
    state = state_of(config)
    rows = np.arange(48.0)  # 8 heads of 6
    state["model.layers.3.self_attn.q_proj.weight"] = np.repeat(rows[:, None], 24, axis=1)
    state["model.layers.3.self_attn.o_proj.weight"] = np.repeat(rows[None], 24, axis=0)
    values = from_huggingface(state, case=case_on("tp2pp2", some_model(config)))
    # Layer 3 is the second of the second stage; head 5, dim 4.
    assert values["layers.attention.q"][1, 1, 5, 0, 4] == values["layers.attention.o"][1, 1, 5, 4, 0] == 5 * 6 + 4


def test_numbers_are_read_in_the_dtype_of_the_case(tmp_path: Path) -> None:
    config = config_of("llama")
    state = state_of(config) | {
        "model.norm.weight": np.array(
            [1 + 2**-8, 1 + 3 * 2**-8, np.nan, np.inf, 1e30, 2**-130, -0.0, *range(17)], np.float32
        )
    }
    for kept, wanted in itertools.product(("f32", "bf16", "f16"), ("f32", "bf16")):
        with np.errstate(over="ignore"):
            folder = write(tmp_path / f"{kept}-{wanted}", config, state, dtype=kept)
            stored = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}[kept]
            right = state["model.norm.weight"].astype(stored).astype(np.float32)
        checkpoint = Checkpoint.open(folder)
        case = case_on("tp2", checkpoint.model, dtype=wanted)
        spec = next(spec for spec in weights(case) if spec.name == "norm.scale")
        values = checkpoint.read(spec, (slice(None),), case)
        if wanted == "bf16":  # by ml_dtypes, which rounds as JAX does
            assert np.array_equal(
                values.view(ml_dtypes.bfloat16).astype(np.float32),
                right.astype(ml_dtypes.bfloat16).astype(np.float32),
                equal_nan=True,
            )
        else:
            assert np.array_equal(values, right, equal_nan=True)


LARGE = {
    "vocab_size": 64,
    "hidden_size": 2048,
    "intermediate_size": 16_384,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
}


@pytest.mark.skipif(sys.platform != "linux", reason="counts what the kernel says was read")
def test_a_slice_reads_itself_and_holds_a_few_megabytes_beside_it(tmp_path: Path) -> None:
    config = config_of("llama", **LARGE)
    state = {name: np.zeros(shape, ml_dtypes.bfloat16) for name, shape in shapes_of(config).items()}
    checkpoint = Checkpoint.open(write(tmp_path / "large", config, state, dtype="bf16"))
    case = case_on("tp8", checkpoint.model)
    for name in ("layers.mlp.up", "layers.mlp.down", "layers.attention.k"):
        spec = next(spec for spec in weights(case) if spec.name == name)
        index = shards(spec, case)[3]
        tracemalloc.start()
        before = bytes_read()
        values = checkpoint.read(spec, index, case)
        read, (_, peak) = bytes_read() - before, tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert values.nbytes <= read < values.nbytes + 4096
        assert peak - values.nbytes < 16 * 2**20


def bytes_read() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


def test_a_missing_array_is_named() -> None:
    state = state_of(config_of("llama"))
    del state["model.norm.weight"]
    with pytest.raises(MeshError, match=r"no 'model\.norm\.weight'"):
        from_huggingface(state, case=case_on("tp2", some_model(config_of("llama"))))
