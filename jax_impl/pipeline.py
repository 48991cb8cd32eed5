"""The shifting-buffer pipeline in GPipe order: every stage works in every tick, on its own microbatch."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jax_impl.attention import Stream, Turn
from jax_impl.cache import Cache
from jax_impl.layout import STREAM
from jax_impl.model import Decoder, loop


def run_pipeline(
    model: Decoder,
    embedded: Float[Array, "slots stages batch seq embed"],
    cache: Cache,
    *,
    position: Int[Array, ""],
) -> tuple[Float[Array, "slots stages stream_batch stream_seq embed"], Cache]:
    """The state of the last token of each device's part after all layers, of every microbatch.

    Only the last stage's is the answer, and of its parts of a sequence the last one's.

    m + pp − 1 ticks, each with one collective-permute over `pp`; the ticks in which a stage holds nothing new are the
    bubble.  The state is [stages, batch, seq, embed]: stage s holds microbatch tick − s.
    """
    layout = model.layout
    stages, slots = layout.case.mesh.pp, layout.case.microbatches

    def tick(carry: tuple[Stream, Cache], slot: Int[Array, ""]) -> tuple[tuple[Stream, Cache], Array]:
        state, cache = carry
        state = layout.shift(state, embedded[slot])
        state, cache = model.run_layers(state, cache, turn=Turn(position, slot))
        state = layout.place(state, STREAM)
        return (state, cache), layout.place(ends(state, shards=layout.ways("stream_seq")), STREAM)

    # Microbatches come again in the bubble.  What a stage then keeps it has kept before, in the same slot; and what it
    # keeps before the first one comes is overwritten when that slot's own does.  So no tick needs a mask.
    ticks = jnp.asarray(np.arange(slots + stages - 1) % slots)
    empty = layout.place(jnp.zeros(embedded.shape[1:], embedded.dtype), STREAM)
    (_, cache), last = loop(tick, (empty, cache), ticks, form=layout.case.loop)
    return layout.place(last[stages - 1 :], "slots stages stream_batch stream_seq embed"), cache


def ends(state: Stream, *, shards: int) -> Float[Array, "stages batch shards embed"]:
    """The last token of each shard's part of a sequence.  No collective."""
    stages, batch, seq, embed = state.shape
    return state.reshape(stages, batch, shards, seq // shards, embed)[:, :, :, -1]
