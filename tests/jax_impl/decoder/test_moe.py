"""A mixture of experts against the same thing said token by token, in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from jax_impl.decoder.moe import Moe, group_tokens, ungroup_tokens
from jax_impl.sharding.create import layout_on_devices
from jax_impl.sharding.layout import Layout
from meshes.case import Case
from meshes.models import Model

MODEL = Model(
    name="four",
    vocab=64,
    embed=8,
    ffn=0,
    layers=1,
    heads=2,
    kv_heads=2,
    head_dim=4,
    experts=4,
    experts_per_token=2,
    expert_ffn=6,
)


def layout(mesh: str, *, seq: int, phase: str = "prefill", capacity: float | None = None) -> Layout:
    case = Case.read(mesh, shapes=MODEL, phases=(phase,), batch=4, seq=seq, capacity=capacity, dtype="f32")
    return layout_on_devices(case)


def by_hand(moe: Moe, x: np.ndarray, *, groups: list[list[tuple[int, int]]], slots: int) -> np.ndarray:
    """Each group's tokens in order; an expert takes of them the first `slots` that choose it."""
    router, gate, up, down = (np.asarray(w[...])[0, 0].astype(float) for w in (moe.router, moe.gate, moe.up, moe.down))
    out = np.zeros(x.shape)
    for group in groups:
        taken = dict.fromkeys(range(MODEL.experts), 0)
        for at in group:
            odds = np.exp(x[at] @ router)
            best = np.argsort(-odds)[: MODEL.experts_per_token]
            for expert in best:
                if taken[expert] < slots:
                    gated, two = x[at] @ gate[expert], x[at] @ up[expert]
                    out[at] += odds[expert] / odds[best].sum() * ((gated / (1 + np.exp(-gated)) * two) @ down[expert])
                taken[expert] += 1
    return out


def with_weights(layout: Layout) -> Moe:
    random = np.random.default_rng(0)
    moe = Moe(layout)
    for weight in (moe.router, moe.gate, moe.up, moe.down):
        weight[...] = jnp.asarray(random.standard_normal(weight.shape), jnp.float32)
    return moe


SLOTS = ((None, 6), (1.0, 3), (0.5, 2))
"""Capacity, and an expert's places for 6 tokens of 2 choices each among 4 experts: ceil(capacity · 3)."""


@pytest.mark.parametrize(("capacity", "slots"), SLOTS)
@pytest.mark.parametrize("mesh", ["ep4tp2", "cp2ep2tp2"])
def test_tokens_go_to_their_experts_while_there_is_room(mesh: str, capacity: float | None, slots: int) -> None:
    """A group is a device's part of a sequence: 6 tokens, of one that is as long, or of two parts."""
    parts = 2 if mesh.startswith("cp2") else 1
    x = np.random.default_rng(1).standard_normal((4, 6 * parts, MODEL.embed))
    moe = with_weights(layout(mesh, seq=6 * parts, capacity=capacity))
    assert moe.layout.case.expert_slots == slots
    form, state = nnx.split(moe)
    one_layer = jax.tree.map(lambda each: each[0], state)
    output = jax.jit(lambda weights, x: nnx.merge(form, weights)(x))(one_layer, jnp.asarray(x[None], jnp.float32))
    groups = [[(b, 6 * part + at) for at in range(6)] for b in range(4) for part in range(parts)]
    np.testing.assert_allclose(np.asarray(output)[0], by_hand(moe, x, groups=groups, slots=slots), atol=1e-4)


def test_in_decode_the_tokens_of_a_device_are_a_group() -> None:
    """4 sequences on ep2: 2 tokens a group, and one place at each expert: ceil(1 · 2·2/4)."""
    x = np.random.default_rng(2).standard_normal((4, 1, MODEL.embed))
    moe = with_weights(layout("ep2tp2", seq=8, phase="decode", capacity=1.0))
    form, state = nnx.split(moe)
    one_layer = jax.tree.map(lambda each: each[0], state)
    output = jax.jit(lambda weights, x: nnx.merge(form, weights)(x))(one_layer, jnp.asarray(x[None], jnp.float32))
    groups = [[(0, 0), (1, 0)], [(2, 0), (3, 0)]]
    np.testing.assert_allclose(np.asarray(output)[0], by_hand(moe, x, groups=groups, slots=1), atol=1e-4)


def test_groups_are_parts_of_sequences_the_parts_outermost() -> None:
    placed = layout("cp2ep4", seq=4)
    x = jnp.arange(16.0).reshape(1, 4, 4, 1)  # 4 sequences of 4 tokens
    groups = group_tokens(x, layout=placed)
    assert groups[0, :, :, 0].tolist() == [[0, 1], [4, 5], [8, 9], [12, 13], [2, 3], [6, 7], [10, 11], [14, 15]]
    assert ungroup_tokens(groups, layout=placed).tolist() == x.tolist()
