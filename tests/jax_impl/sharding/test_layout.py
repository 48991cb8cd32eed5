"""The layout: names of dims in, shardings out; what it cannot place it refuses."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec

from jax_impl.sharding.create import abstract_layout, layout_on_devices
from jax_impl.sharding.layout import STREAM, TOKENS, Layout
from jax_impl.sharding.spec import named_sharding
from meshes.case import Case
from meshes.twins.layout import LayoutError


def layout(mesh: str, *, phase: str = "prefill", model: str = "tiny", batch: int = 8) -> Layout:
    return abstract_layout(Case.read(mesh, model_name=model, phases=(phase,), batch=batch))


BATCH = ("dp", "ep")
SPECS = (
    ("dp2pp2tp2", "prefill", "batch", (BATCH,)),
    ("dp2pp2tp2", "prefill", "stages batch seq embed", ("pp", BATCH, "cp", None)),
    ("dp2pp2tp2", "prefill", "layers stages heads embed head_dim", (None, "pp", "tp", None, None)),
    ("dp2pp2tp2", "prefill", "vocab embed", ("tp", None)),
    ("dp2pp2tp2", "prefill", "_ stages batch positions kv_heads", (None, "pp", BATCH, "cp", "tp")),
    ("dp2pp2tp2", "prefill", "", ()),
    # Of one new token there is one position, which nothing splits; of those in a cache there are many.
    ("cp2tp4", "decode", "stages batch seq embed", ("pp", BATCH, None, None)),
    ("cp2tp4", "decode", "_ stages batch positions kv_heads", (None, "pp", BATCH, "cp", "tp")),
    # Sequence parallelism: tp splits the stream's positions, or in decode its sequences.
    ("cp2tp4+sp", "prefill", STREAM, ("pp", BATCH, ("cp", "tp"), None)),
    ("cp2tp4+sp", "prefill", TOKENS, ("pp", BATCH, "cp", None)),
    ("cp2tp4+sp", "decode", STREAM, ("pp", ("dp", "ep", "tp"), None, None)),
    # Two sequences of a microbatch do not divide by four.
    ("tp4pp2+sp", "decode", STREAM, ("pp", BATCH, None, None)),
)


@pytest.mark.parametrize(("mesh", "phase", "dims", "axes"), SPECS, ids=[" ".join(row[:3]) for row in SPECS])
def test_dims_name_their_axes(mesh: str, phase: str, dims: str, axes: tuple[str | tuple[str, ...] | None, ...]) -> None:
    placed = layout(mesh, phase=phase)
    assert named_sharding(dims, case=placed.case, mesh=placed.mesh).spec == PartitionSpec(*axes)


def test_a_dim_is_split_into_as_many_parts_as_its_axes_have_devices() -> None:
    assert layout("cp2tp4+sp").num_parts("stream_seq") == 8
    assert layout("cp2tp4+sp").num_parts("parts") == 2
    assert layout("cp2tp4+sp", phase="decode").num_parts("parts") == 1
    assert layout("dp2ep4", model="tiny-moe").num_parts("batch") == 8
    assert layout("tp8").num_parts("embed") == 1


def test_more_than_five_dims_are_refused() -> None:
    with pytest.raises(LayoutError, match="names 6 dims; an array is sharded over at most 5"):
        layout("tp8").place(jnp.zeros((1,) * 6), "layers stages batch seq heads head_dim")


def test_dims_that_are_not_the_arrays_are_refused() -> None:
    with pytest.raises(LayoutError, match="'batch seq' names 2 dims; the array has 3"):
        layout("tp8").place(jnp.zeros((2, 2, 2)), "batch seq")


def test_too_few_devices_are_said() -> None:
    with pytest.raises(LayoutError, match="mesh dp16 needs 16 devices; here are 8"):
        layout_on_devices(Case.read("dp16", model_name="tiny", batch=16))


def on_devices(mesh: str, *, phase: str = "prefill") -> Layout:
    return layout_on_devices(Case.read(mesh, model_name="tiny", phases=(phase,)))


def test_a_shift_moves_each_stage_to_the_next_and_nothing_wraps() -> None:
    state = jnp.arange(4.0).reshape(4, 1, 1, 1) + 1
    taken = jnp.full((4, 1, 1, 1), 9.0)
    assert jax.jit(on_devices("pp4tp2").shift)(state, taken, tick=0).ravel().tolist() == [9.0, 1.0, 2.0, 3.0]


def test_a_single_stage_takes_what_comes() -> None:
    taken = jnp.full((1, 1, 1, 1), 9.0)
    assert on_devices("tp8").shift(jnp.zeros((1, 1, 1, 1)), taken, tick=0).tolist() == [[[[9.0]]]]


def test_the_last_stage_chooses() -> None:
    token_ids = jnp.arange(2 * 4 * 3, dtype=jnp.int32).reshape(2, 4, 3, 1)  # slots stages batch parts
    assert jax.jit(on_devices("pp4tp2").collect)(token_ids).tolist() == [[9, 10, 11], [21, 22, 23]]


def test_of_a_split_sequence_the_last_part_of_the_last_stage_chooses() -> None:
    token_ids = jnp.arange(2 * 2 * 3 * 2, dtype=jnp.int32).reshape(2, 2, 3, 2)  # slots stages batch parts
    assert jax.jit(on_devices("pp2cp2tp2").collect)(token_ids).tolist() == [[7, 9, 11], [19, 21, 23]]


def test_the_last_token_of_each_part_is_its_last_shards() -> None:
    """On cp2tp4 with sequence parallelism 8 shards end somewhere; the 4th and the 8th end a part."""
    x = jnp.arange(8.0).reshape(1, 1, 1, 8, 1)
    assert jax.jit(on_devices("cp2tp4+sp").last_tokens)(x).ravel().tolist() == [3.0, 7.0]


def test_a_hop_brings_what_the_part_before_has() -> None:
    layout = on_devices("cp4tp2")
    x = jnp.arange(8.0).reshape(1, 1, 8, 1)

    def block(rank: jax.Array, hop: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
        return hop(x) + 100 * rank

    hopped = jax.jit(layout.ring(block, takes=(TOKENS,), gives=TOKENS))(x)
    assert hopped.ravel().tolist() == [6, 7, 100, 101, 202, 203, 304, 305]
