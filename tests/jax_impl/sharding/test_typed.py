"""Style typed: each array's sharding in its type, the same numbers as with pins, and what it refuses."""

from functools import partial
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec

from jax_impl.decoder.step import Step
from jax_impl.process.loading import load_cache, load_inputs, load_weights
from jax_impl.sharding.create import abstract_layout, layout_on_devices
from jax_impl.sharding.lowering import jit_step
from jax_impl.sharding.spec import named_sharding
from jax_impl.sharding.typed import out_sharding
from meshes.case import Case
from meshes.process.errors import NotOfferedError
from meshes.process.random_inputs import draw_values

PHASES = ("prefill", "decode")
MESHES = (
    ("dp2tp4", "tiny"),
    ("tp4pp2+sp", "tiny"),
    ("cp4tp2", "tiny"),
    ("dp2ep2tp2", "tiny-moe"),
    ("pp2cp2tp2+sp", "tiny-moe"),
)


def case(mesh: str, phase: str, *, model: str = "tiny", **words: Any) -> Case:
    return Case.read(mesh, model_name=model, phases=(phase,), seq=16, **({"style": "typed"} | words))


def lower_text(wanted: Case) -> str:
    step = Step.of(abstract_layout(wanted))
    traced = jit_step(step.layout, step.run, output_dims=step.output_dims).trace(*step.arguments)
    return traced.lower(lowering_platforms=("tpu",)).as_text()


def test_every_axis_of_its_mesh_is_explicit_and_those_of_other_styles_are_not() -> None:
    for style, kind in (("typed", AxisType.Explicit), ("pinned", AxisType.Auto), ("weights", AxisType.Auto)):
        for make in (abstract_layout, layout_on_devices):
            assert set(make(case("dp2tp4", "decode", style=style)).mesh.axis_types) == {kind}


def test_an_axis_of_one_device_is_in_no_type() -> None:
    """JAX refuses a type in which two dims have one axis, whatever its size: scores have queries and keys by cp."""
    layout = abstract_layout(case("dp2tp4", "prefill"))
    assert named_sharding("stages batch seq heads _", case=layout.case, mesh=layout.mesh).spec == PartitionSpec(
        None, "dp", None, "tp", None
    )


def test_an_operation_is_told_of_its_result_in_this_style_alone() -> None:
    typed, pinned = (abstract_layout(case("dp2tp4", "decode", style=style)) for style in ("typed", "pinned"))
    told = out_sharding(typed, "batch")
    assert told is not None
    assert told.spec == PartitionSpec("dp")
    assert out_sharding(pinned, "batch") is None


def test_the_type_of_each_array_is_what_the_table_says() -> None:
    """Read from the traced step itself: the logits by dp and tp, as no pin after the product says it."""
    built = Step.of(abstract_layout(case("dp2tp4", "decode")))
    traced = jax.jit(built.watch).trace(*built.arguments)
    ids, logits, cache = (jax.tree.leaves(each)[0].sharding.spec for each in traced.out_info)
    assert (ids, logits) == (PartitionSpec("dp"), PartitionSpec(None, None, "dp", None, "tp"))
    assert cache == PartitionSpec(None, None, "dp", None, "tp")


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(("mesh", "model"), MESHES)
def test_its_logits_and_cache_are_those_of_pins(mesh: str, model: str, phase: str) -> None:
    """float32, on eight CPU devices."""
    of_pins, of_types = (
        run(case(mesh, phase, model=model, batch=16, dtype="f32", style=style)) for style in ("pinned", "typed")
    )
    for one, other in zip(of_pins, of_types, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * np.abs(one).max())
    assert np.abs(of_pins[1]).max() > 0


def run(wanted: Case) -> list[np.ndarray[Any, Any]]:
    """Ids, logits and cache of one step on random weights."""
    step = Step.of(layout_on_devices(wanted))
    numbers = partial(draw_values, vocab=wanted.model.vocab, position=wanted.seq)
    arguments = load_weights(step, numbers), load_cache(step, numbers), *load_inputs(step, numbers)
    run = jit_step(step.layout, step.watch, output_dims=step.watch_dims)
    return [np.asarray(each) for each in jax.tree.leaves(run(*arguments))]


@pytest.mark.parametrize(
    "words",
    [
        {"loop": "unrolled"},
        {"variants": ("cache-index",)},
        {"variants": ("cache-slice",)},
        {"variants": ("cache-written",)},
        {"variants": ("cache-written-index",)},
    ],
    ids=lambda words: str(*words.values()),
)
def test_a_token_put_among_split_positions_without_a_mask_is_refused_in_one_line(words: dict[str, Any]) -> None:
    with pytest.raises(NotOfferedError, match=r"style typed is not offered in decode on mesh cp4tp2 .*cache-select$"):
        abstract_layout(case("cp4tp2", "decode", **words))
    # Where nothing splits positions, all of them are offered; so is the mask where cp does.
    assert "stablehlo" in lower_text(case("dp2tp4", "decode", **words))
    assert "stablehlo" in lower_text(case("cp4tp2", "decode", variants=("cache-select",), loop="unrolled"))
