"""The shifting-buffer pipeline in GPipe order: every stage works in every tick, on its own microbatch."""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jax_impl.decoder.attention import StepContext, Stream
from jax_impl.decoder.cache import Caches
from jax_impl.decoder.model import Decoder, loop
from jax_impl.sharding.layout import STREAM


def run_pipeline(
    model: Decoder,
    embedded: Float[Array, "slots stages batch seq embed"],
    cache: Caches,
    *,
    position: Int[Array, ""],
) -> tuple[Float[Array, "slots stages stream_batch stream_seq embed"], Caches]:
    """The state, after all layers, of the last token of each device's part, for every microbatch.

    The answer is the last stage's, of the last part of each sequence.

    m + pp − 1 ticks, each with one collective-permute over `pp`; the ticks in which a stage holds nothing new are the
    bubble.  The state is [stages, batch, seq, embed]: stage s holds microbatch tick − s.
    """
    layout = model.layout

    def tick(carry: tuple[Stream, Caches], at: Int[Array, ""]) -> tuple[tuple[Stream, Caches], Array]:
        (state, cache), slot = carry, layout.cache_slot(at)
        state = layout.shift(state, embedded[slot], tick=at)
        run = partial(model.run_layers, context=StepContext(position, slot))
        state, cache = layout.on_active_stages(run, (state, cache), tick=at)
        state = layout.place(state, STREAM)
        return (state, cache), layout.place(take_last_tokens(state, shards=layout.num_parts("stream_seq")), STREAM)

    empty = layout.place(jnp.zeros(embedded.shape[1:], embedded.dtype), STREAM)
    (_, cache), last = loop(tick, (empty, cache), layout.ticks, form=layout.tick_form)
    first = layout.case.mesh.pp - 1
    return layout.place(last[first:], "slots stages stream_batch stream_seq embed"), cache


def take_last_tokens(state: Stream, *, shards: int) -> Float[Array, "stages batch shards embed"]:
    """The last token of each shard's part of a sequence.  No collective."""
    stages, batch, seq, embed = state.shape
    return state.reshape(stages, batch, shards, seq // shards, embed)[:, :, :, -1]
