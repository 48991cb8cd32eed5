"""The shifting-buffer pipeline in GPipe order: every stage works in every tick, on its own microbatch."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jax_impl.cache import Cache
from jax_impl.layers import Stream, Turn
from jax_impl.model import Decoder, loop


def run_pipeline(
    model: Decoder,
    embedded: Float[Array, "slots batch seq embed"],
    cache: Cache,
    *,
    position: Int[Array, ""],
) -> tuple[Float[Array, "slots stages batch embed"], Cache]:
    """The last token's state after all layers, of every microbatch; only the last stage's is the answer.

    m + pp − 1 ticks, each with one collective-permute over `pp`; the ticks in which a stage holds nothing are the
    bubble.  The state is [stages, batch, seq, embed]: stage s holds microbatch tick − s.
    """
    layout = model.layout
    stages, slots = layout.case.mesh.pp, layout.case.microbatches
    ticks = np.arange(slots + stages - 1)
    held = ticks[:, None] - np.arange(stages)

    def tick(carry: tuple[Stream, Cache], at: tuple[Array, Array, Array]) -> tuple[tuple[Stream, Cache], Array]:
        state, cache = carry
        microbatch, slot, active = at
        state = layout.shift(state, embedded[microbatch])
        state, cache = model.run_layers(state, cache, turn=Turn(position, slot, active))
        state = layout.place(state, "stages batch seq embed")
        return (state, cache), layout.place(state[:, :, -1], "stages batch embed")

    along = (
        # In the bubble the first stage takes the last microbatch again: what comes of it is never read.
        jnp.asarray(np.minimum(ticks, slots - 1)),
        jnp.asarray(ticks % slots),
        jnp.asarray((held >= 0) & (held < slots)),
    )
    empty = layout.place(jnp.zeros((stages, *embedded.shape[1:]), embedded.dtype), "stages batch seq embed")
    (_, cache), last = loop(tick, (empty, cache), along, form=layout.case.loop)
    return layout.place(last[stages - 1 :], "slots stages batch embed"), cache
