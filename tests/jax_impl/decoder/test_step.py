"""The step: declared shardings are the actual ones, the cache is overwritten, scopes are said, shapes are enough."""

import re

import jax
import numpy as np
import pytest
from flax import nnx

from jax_impl.decoder.cache import CACHE_DIMS
from jax_impl.decoder.step import Step, merge_microbatches, split_microbatches
from jax_impl.sharding.create import abstract_layout, layout_on_devices
from jax_impl.sharding.lowering import jit_step
from jax_impl.sharding.spec import named_sharding
from meshes.case import Case
from meshes.scopes import SCOPES
from meshes.weights import weights

MESHES = ("tp8", "dp2tp4", "tp4pp2", "dp2pp2tp2")
EVERYTHING = (("pp2cp2tp2+sp", "tiny"), ("cp2ep2tp2+sp", "tiny-moe"))
"""Meshes with every axis and rule between them, beside those above."""

MODELS = ("tiny", "tiny-moe", "llama-3.2-1b", "qwen3-30b-a3b", "qwen1.5-moe-a2.7b")
FEWER_AXES = [pytest.param(mesh, "tiny", marks=pytest.mark.slow) for mesh in MESHES[:-1]]
CASES = [*FEWER_AXES, (MESHES[-1], "tiny"), *EVERYTHING]
PHASES = ("prefill", "decode")


def step(mesh: str, phase: str, *, model: str = "tiny", devices: bool = False, **words: str | int) -> Step:
    case = Case.read(mesh, model_name=model, phases=(phase,), **words)
    return Step.of(layout_on_devices(case) if devices else abstract_layout(case))


def lower_step(built: Step) -> jax.stages.Lowered:
    traced = jit_step(built.layout, built.run, output_dims=built.output_dims).trace(*built.arguments)
    return traced.lower(lowering_platforms=("tpu",))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("mesh", ["tp8", "dp2pp2tp2"])
def test_the_module_holds_the_table_of_weights(mesh: str, model: str) -> None:
    built = step(mesh, "decode", model=model)
    table = {
        ".".join(path): (each.get_metadata("dims"), each.shape) for path, each in nnx.to_flat_state(built.arguments[0])
    }
    assert table == {spec.name: (spec.dims, spec.shape) for spec in weights(built.layout.case)}


@pytest.mark.parametrize("phase", [pytest.param("prefill", marks=pytest.mark.slow), "decode"])
@pytest.mark.parametrize(("mesh", "model"), CASES)
def test_every_weight_and_cache_is_sharded_as_declared(mesh: str, model: str, phase: str) -> None:
    """Run on eight devices: the arrays that go in, what the executable says, and the cache that comes out."""
    built = step(mesh, phase, model=model, devices=True, dtype="f32", seq=16)
    layout = built.layout
    arrays = jax.tree.map(lambda each: jax.device_put(np.zeros(each.shape, each.dtype), each.sharding), built.arguments)
    for path, weight in nnx.to_flat_state(arrays[0]):
        assert weight[...].sharding == named_sharding(
            weight.get_metadata("dims"), case=layout.case, mesh=layout.mesh
        ), path
    compiled = jit_step(layout, built.run, output_dims=built.output_dims).lower(*built.arguments).compile()
    for array, actual in zip(jax.tree.leaves(arrays), jax.tree.leaves(compiled.input_shardings[0]), strict=True):
        assert actual.is_equivalent_to(array.sharding, array.ndim)
    old = arrays[1]
    ids, cache = compiled(*arrays)
    assert ids.sharding.is_equivalent_to(named_sharding("batch", case=layout.case, mesh=layout.mesh), 1)
    for kept in cache:
        assert kept.sharding.is_equivalent_to(named_sharding(CACHE_DIMS, case=layout.case, mesh=layout.mesh), 5)
    assert all(kept.is_deleted() for kept in old)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("mesh", "model"), CASES)
def test_shapes_on_an_abstract_mesh_give_the_program_of_arrays_on_devices(mesh: str, model: str, phase: str) -> None:
    built = step(mesh, phase, model=model, devices=True, seq=16)
    arrays = jax.tree.map(lambda each: jax.device_put(np.zeros(each.shape, each.dtype), each.sharding), built.arguments)
    traced = jit_step(built.layout, built.run, output_dims=built.output_dims).trace(*arrays)
    real = traced.lower(lowering_platforms=("tpu",)).as_text()
    assert real == lower_step(step(mesh, phase, model=model, seq=16)).as_text()


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("mesh", MESHES)
def test_the_cache_is_donated_to_the_cache(mesh: str, phase: str) -> None:
    """Results are ids, k, v: the two caches among the arguments become results 1 and 2."""
    text = lower_step(step(mesh, phase)).as_text()
    assert re.findall(r"tf\.aliasing_output = (\d)", text) == ["1", "2"]
    assert "jax.buffer_donor" not in text


@pytest.mark.parametrize("loop", ["scan", "unrolled"])
@pytest.mark.parametrize("phase", PHASES)
def test_every_scope_of_a_dense_model_is_said(phase: str, loop: str) -> None:
    text = lower_step(step("dp2pp2tp2", phase, loop=loop)).as_text(debug_info=True)
    assert refusal(text) == {scope for scope in SCOPES if ".moe." not in scope}


@pytest.mark.parametrize("phase", PHASES)
def test_a_model_of_experts_says_theirs(phase: str) -> None:
    alone = refusal(lower_step(step("dp2ep4", phase, model="tiny-moe")).as_text(debug_info=True))
    assert alone == {scope for scope in SCOPES if ".mlp." not in scope and "pipeline." not in scope}
    shared = refusal(lower_step(step("dp2ep4", phase, model="qwen1.5-moe-a2.7b")).as_text(debug_info=True))
    assert shared == alone | {"layer.mlp.up", "layer.mlp.down"}


def refusal(text: str) -> set[str]:
    return {scope for scope in SCOPES if re.search(rf"[/\"(]{re.escape(scope)}[/)]", text)}


def test_without_a_pipeline_no_pipeline_is_said() -> None:
    text = lower_step(step("dp2tp4", "decode")).as_text(debug_info=True)
    assert "pipeline.shift" not in text
    assert "pipeline.collect" not in text


def test_the_unrolled_form_has_no_loop_and_the_scan_two() -> None:
    for loop, whiles in (("unrolled", 0), ("scan", 2)):
        assert lower_step(step("tp4pp2", "decode", loop=loop)).as_text().count("stablehlo.while") == whiles


def test_microbatches_are_dealt_out_and_taken_back() -> None:
    tokens = jax.numpy.arange(6)[:, None]  # of 6 sequences, one each
    dealt = split_microbatches(tokens, slots=2)
    assert dealt[..., 0].tolist() == [[0, 2, 4], [1, 3, 5]]
    assert merge_microbatches(dealt[..., 0]).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_tied_head_is_the_embedding() -> None:
    built = step("tp8", "decode", model="llama-3.2-1b")
    assert "head" not in built.arguments[0]
