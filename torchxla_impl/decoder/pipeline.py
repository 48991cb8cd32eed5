"""The shifting-buffer pipeline in GPipe order: every stage works in every tick, on its own microbatch."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchxla_impl.decoder.attention import Stream, Turn
from torchxla_impl.decoder.cache import Cache
from torchxla_impl.decoder.model import Decoder, loop
from torchxla_impl.sharding.layout import STREAM


def run_pipeline(
    model: Decoder,
    embedded: Float[Tensor, "slots stages batch seq embed"],
    cache: Cache,
    *,
    position: Int[Tensor, ""],
) -> tuple[Float[Tensor, "slots stages stream_batch stream_seq embed"], Cache]:
    """The state of the last token of each device's part after all layers, of every microbatch.

    Only the last stage's is the answer, and of its parts of a sequence the last one's.

    m + pp − 1 ticks, each with one collective-permute over `pp`; the ticks in which a stage holds nothing new are the
    bubble.  The state is [stages, batch, seq, embed]: stage s holds microbatch tick − s.
    """
    layout = model.layout
    stages, slots = layout.case.mesh.pp, layout.case.microbatches

    def tick(carry: tuple[Stream, Cache], at: tuple[Tensor, Tensor]) -> tuple[tuple[Stream, Cache], Tensor]:
        (state, cache), (taken, slot) = carry, at
        state = layout.shift(state, taken)
        state, cache = model.run_layers(state, cache, turn=Turn(position, slot))
        state = layout.place(state, STREAM)
        return (state, cache), layout.place(ends(state, shards=layout.ways("stream_seq")), STREAM)

    # Microbatches come again in the bubble.  What a stage then keeps it has kept before, in the same slot; and what it
    # keeps before the first one comes is overwritten when that slot's own does.  So no tick needs a mask.
    ticks = slots + stages - 1
    rounds = -(-ticks // slots)
    along = (
        torch.cat([embedded] * rounds)[:ticks],
        torch.arange(slots, device=embedded.device).repeat(rounds)[:ticks],
    )
    zeros = torch.zeros(embedded.shape[1:], dtype=embedded.dtype, device=embedded.device)
    empty = layout.place(zeros, STREAM)
    (_, cache), last = loop(tick, (empty, cache), along, form=layout.case.loop)
    return layout.place(last[stages - 1 :], "slots stages stream_batch stream_seq embed"), cache


def ends(state: Stream, *, shards: int) -> Float[Tensor, "stages batch shards embed"]:
    """The last token of each shard's part of a sequence.  No collective."""
    return state.unflatten(2, (shards, -1))[:, :, :, -1]
