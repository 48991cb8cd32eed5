"""Weights of a checkpoint reach the devices shard by shard, from Hugging Face's folder and from Orbax, on any mesh."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from jax_impl.convert import convert, restore_weights
from jax_impl.decoder.step import Step
from jax_impl.process.loading import read_weights
from jax_impl.sharding.create import layout_on_devices
from jax_impl.sharding.spec import named_sharding
from meshes.case import Case
from meshes.checkpoint import read_model
from meshes.checkpoint.converted import ConvertedCheckpoint
from meshes.weights import WeightSpec
from tests.meshes.checkpoint.hub import config_of, state_of, weights_of, write

MESHES = ("tp8", "dp2tp4", "tp4pp2", "pp4tp2", "dp2pp2tp2", "cp4tp2", "dp2ep4", "pp2ep4", "ep2tp4+sp")
CONFIG = config_of("qwen2_moe", num_attention_heads=24, num_key_value_heads=6, shared_expert_intermediate_size=16)
"""Experts, shared ones, biases; 6 KV heads, which tp4 and tp8 copy, and no shard holds whole sets of copies."""

FIRST = ("tp8", "dp2pp2tp2", "ep2tp4+sp")
RESTORED = [
    *((mesh, "f32") for mesh in FIRST),
    *(pytest.param(mesh, "f32", marks=pytest.mark.slow) for mesh in MESHES if mesh not in FIRST),
    pytest.param("tp4pp2", "bf16", marks=pytest.mark.slow),
]


def step(mesh: str, folder: Path, *, dtype: str) -> Step:
    case = Case.read(mesh, shapes=read_model(folder), phases=("prefill",), dtype=dtype, batch=32, seq=16)
    return Step.of(layout_on_devices(case))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in f32, as the hub would have it."""
    return write(tmp_path_factory.mktemp("hub"), CONFIG, state_of(CONFIG))


@pytest.fixture(scope="module")
def orbax(folder: Path) -> Path:
    out = folder.with_name("orbax")
    convert(folder, out)
    return out


@pytest.mark.parametrize("mesh", MESHES)
def test_each_shard_is_read_once_and_nothing_else_is(mesh: str, folder: Path) -> None:
    loaded_step, reads = step(mesh, folder, dtype="f32"), []
    right = weights_of(CONFIG, state_of(CONFIG), loaded_step.layout.case)

    def read(spec: WeightSpec, index: tuple[slice, ...], case: Case) -> np.ndarray:
        reads.append((spec.name, tuple((side.start, side.stop) for side in index)))
        return right[spec.name][index]

    loaded = nnx.to_flat_state(read_weights(loaded_step, read))
    assert len(reads) == len(set(reads))
    for path, weight in loaded:
        name, array = ".".join(path), weight[...]
        assert array.sharding == named_sharding(
            weight.get_metadata("dims"), case=loaded_step.layout.case, mesh=loaded_step.layout.mesh
        )
        assert np.array_equal(array, right[name]), name
        boxes = {
            tuple(side.indices(size)[:2] for side, size in zip(shard.index, array.shape, strict=True))
            for shard in array.addressable_shards
        }
        assert {box for each, box in reads if each == name} == boxes


@pytest.mark.parametrize(("mesh", "dtype"), RESTORED)
def test_what_was_converted_once_is_restored_onto_any_mesh(mesh: str, dtype: str, orbax: Path, folder: Path) -> None:
    loaded_step = step(mesh, folder, dtype=dtype)
    right = weights_of(CONFIG, state_of(CONFIG), loaded_step.layout.case)
    for path, weight in nnx.to_flat_state(restore_weights(ConvertedCheckpoint.open(orbax), loaded_step)):
        array = weight[...]
        assert array.sharding == named_sharding(
            weight.get_metadata("dims"), case=loaded_step.layout.case, mesh=loaded_step.layout.mesh
        )
        assert array.dtype == loaded_step.layout.dtype
        assert np.array_equal(array, jnp.asarray(right[".".join(path)], array.dtype)), path
