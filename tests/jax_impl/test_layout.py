"""The layout: names of dims in, shardings out; what it cannot place it refuses."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec

from jax_impl.layout import Layout, LayoutError
from meshes.case import Case

LAYOUT = Layout.abstract(Case.read("dp2pp2tp2", model_name="tiny"))

SPECS = (
    ("batch", ("dp",)),
    ("stages batch seq embed", ("pp", "dp", None, None)),
    ("layers stages embed heads head_dim", (None, "pp", None, "tp", None)),
    ("vocab embed", ("tp", None)),
    ("_ stages batch _ kv_heads", (None, "pp", "dp", None, "tp")),
    ("", ()),
)


@pytest.mark.parametrize(("dims", "axes"), SPECS, ids=[dims or "scalar" for dims, _ in SPECS])
def test_dims_name_their_axes(dims: str, axes: tuple[str | None, ...]) -> None:
    assert LAYOUT.sharding(dims).spec == PartitionSpec(*axes)


def test_more_than_five_dims_are_refused() -> None:
    with pytest.raises(LayoutError, match="names 6 dims; an array is sharded over at most 5"):
        LAYOUT.place(jnp.zeros((1,) * 6), "layers stages batch seq heads head_dim")


def test_dims_that_are_not_the_arrays_are_refused() -> None:
    with pytest.raises(LayoutError, match="'batch seq' names 2 dims; the array has 3"):
        LAYOUT.place(jnp.zeros((2, 2, 2)), "batch seq")


def test_too_few_devices_are_said() -> None:
    with pytest.raises(LayoutError, match="mesh dp16 needs 16 devices; here are 8"):
        Layout.on_devices(Case.read("dp16", model_name="tiny", batch=16))


def test_a_shift_moves_each_stage_to_the_next_and_nothing_wraps() -> None:
    layout = Layout.on_devices(Case.read("pp4tp2", model_name="tiny"))
    state = jnp.arange(4.0).reshape(4, 1, 1, 1) + 1
    taken = jnp.full((1, 1, 1), 9.0)
    assert jax.jit(layout.shift)(state, taken).ravel().tolist() == [9.0, 1.0, 2.0, 3.0]


def test_a_single_stage_takes_what_comes() -> None:
    layout = Layout.on_devices(Case.read("tp8", model_name="tiny"))
    assert layout.shift(jnp.zeros((1, 1, 1, 1)), jnp.full((1, 1, 1), 9.0)).tolist() == [[[[9.0]]]]


def test_the_last_stage_chooses() -> None:
    layout = Layout.on_devices(Case.read("pp4tp2", model_name="tiny"))
    chosen = jnp.arange(2 * 4 * 3, dtype=jnp.int32).reshape(2, 4, 3)  # slots stages batch
    assert jax.jit(layout.collect)(chosen).tolist() == [[9, 10, 11], [21, 22, 23]]
