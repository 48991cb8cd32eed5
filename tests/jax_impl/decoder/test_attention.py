"""Attention over split sequences and split caches, against the whole one in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_impl.decoder.attention import HEADS, choose_attention, ring_attention
from jax_impl.decoder.cache import CACHE_DIMS, Cache, cache_shape, update
from jax_impl.sharding.create import layout_on_devices
from jax_impl.sharding.layout import Layout
from jax_impl.sharding.spec import named_sharding
from meshes.case import Case

BATCH, HEAD_DIM = 2, 16


def layout(mesh: str, *, phase: str, seq: int, attention: str = "idiomatic") -> Layout:
    case = Case.read(mesh, model_name="tiny", phases=(phase,), batch=BATCH, seq=seq, attention=attention, dtype="f32")
    return layout_on_devices(case)


def draw(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, first: int) -> np.ndarray:
    """Of queries at `first` and on, over keys at 0 and on: one query and head at a time."""
    out = np.zeros(q.shape)
    for b, s, h in np.ndindex(*q.shape[1:4]):
        seen, kv = first + s + 1, h * k.shape[3] // q.shape[3]
        odds = np.exp(k[0, b, :seen, kv].astype(float) @ q[0, b, s, h] / np.sqrt(HEAD_DIM))
        out[0, b, s, h] = odds @ v[0, b, :seen, kv] / odds.sum()
    return out


@pytest.mark.parametrize("mesh", ["cp4tp2", "cp8", "cp2tp4"])
def test_a_ring_attends_as_the_whole_does(mesh: str) -> None:
    placed = layout(mesh, phase="prefill", seq=16)
    q, k, v = (draw(1, BATCH, 16, heads, HEAD_DIM, seed=heads + at) for at, heads in enumerate((16, 8, 8)))
    attend = jax.jit(lambda q, k, v: ring_attention(q, k, v, position=jnp.int32(0), layout=placed))
    attended = attend(q, k, v)
    np.testing.assert_allclose(attended, whole(q, k, v, first=0), atol=1e-5)
    assert attended.sharding.is_equivalent_to(named_sharding(HEADS, case=placed.case, mesh=placed.mesh), 5)


def test_the_ring_is_for_split_prompts_alone() -> None:
    assert choose_attention(layout("cp4tp2", phase="prefill", seq=16, attention="einsum").case) is ring_attention
    for mesh, phase in (("tp8", "prefill"), ("cp4tp2", "decode")):
        assert choose_attention(layout(mesh, phase=phase, seq=16).case) is not ring_attention


@pytest.mark.parametrize("attention", ["idiomatic", "einsum"])
@pytest.mark.parametrize("mesh", ["cp4tp2", "tp8"])
def test_a_new_token_attends_to_a_split_cache_as_to_a_whole_one(mesh: str, attention: str) -> None:
    """A prompt of 16 and the tokens 17 and 18, their keys and values kept in entry 2 of 4."""
    prefill, decode = (layout(mesh, phase=phase, seq=16, attention=attention) for phase in ("prefill", "decode"))
    q, k, v = (draw(1, BATCH, 18, heads, HEAD_DIM, seed=heads + at) for at, heads in enumerate((16, 8, 8)))
    entry = jnp.int32(2)
    kept = jnp.zeros(cache_shape(prefill.case))

    def prompt(cache: Cache, k: jax.Array, v: jax.Array) -> Cache:
        return update(cache, k, v, entry=entry, position=jnp.int32(0), layout=prefill)[2]

    def token(cache: Cache, q: jax.Array, k: jax.Array, v: jax.Array, position: jax.Array) -> tuple[jax.Array, Cache]:
        keys, values, cache = update(cache, k, v, entry=entry, position=position, layout=decode)
        return choose_attention(decode.case)(q, keys, values, position=position, layout=decode), cache

    cache = jax.jit(prompt)(Cache(kept, kept), k[:, :, :16], v[:, :, :16])
    for at in (16, 17):
        slot = slice(at, at + 1)
        output, cache = jax.jit(token)(cache, q[:, :, slot], k[:, :, slot], v[:, :, slot], jnp.int32(at))
        expected = whole(q[:, :, slot], k[:, :, : at + 1], v[:, :, : at + 1], first=at)
        np.testing.assert_allclose(output, expected, atol=1e-5)
    assert cache.k.sharding.is_equivalent_to(named_sharding(CACHE_DIMS, case=decode.case, mesh=decode.mesh), 5)
    assert not np.asarray(cache.k)[[0, 1, 3]].any()


def test_each_part_of_a_prompt_is_at_the_head_of_its_part_of_the_cache() -> None:
    """16 tokens on cp4: 4 in each part of 128 places."""
    placed = layout("cp4tp2", phase="prefill", seq=16)
    k = np.broadcast_to(np.arange(1.0, 17)[None, None, :, None, None], (1, BATCH, 16, 8, HEAD_DIM))
    kept = jnp.zeros(cache_shape(placed.case))
    cache = jax.jit(
        lambda k: update(Cache(kept, kept), k, k, entry=jnp.int32(0), position=jnp.int32(0), layout=placed)[2]
    )(k)
    assert cache.k.shape == (4, 1, BATCH, 512, 8 * HEAD_DIM)
    held = {place: value for place, value in enumerate(np.asarray(cache.k)[0, 0, 0, :, 0]) if value}
    assert held == {part * 128 + at: 4 * part + at + 1 for part in range(4) for at in range(4)}
