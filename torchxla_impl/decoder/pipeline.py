"""The shifting-buffer pipeline in GPipe order: every stage works in every tick, on its own microbatch."""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchxla_impl.decoder.attention import StepContext, Stream
from torchxla_impl.decoder.cache import Caches
from torchxla_impl.decoder.model import Decoder, loop
from torchxla_impl.sharding.layout import STREAM


def run_pipeline(
    model: Decoder,
    embedded: Float[Tensor, "slots stages batch seq embed"],
    cache: Caches,
    *,
    position: Int[Tensor, ""],
) -> tuple[Float[Tensor, "slots stages stream_batch stream_seq embed"], Caches]:
    """The state, after all layers, of the last token of each device's part, for every microbatch.

    The answer is the last stage's, of the last part of each sequence.

    m + pp − 1 ticks, each with one collective-permute over `pp`; the ticks in which a stage holds nothing new are the
    bubble.  The state is [stages, batch, seq, embed]: stage s holds microbatch tick − s.
    """
    layout = model.layout

    def tick(carry: tuple[Stream, Caches], at: tuple[Stream, Int[Tensor, ""]]) -> tuple[tuple[Stream, Caches], Tensor]:
        (state, cache), (taken, number) = carry, at
        state = layout.shift(state, taken, tick=number)
        run = partial(model.run_layers, context=StepContext(position, layout.cache_slot(number)))
        state, cache = layout.on_active_stages(run, (state, cache), tick=number)
        state = layout.place(state, STREAM)
        return (state, cache), layout.place(take_last_tokens(state, shards=layout.num_parts("stream_seq")), STREAM)

    # A scan hands each tick its rows; an index inside it would be a gather.  In the bubble microbatches repeat.
    ticks = layout.ticks
    embedded_at = torch.cat([embedded] * -(-len(ticks) // len(embedded)))[: len(ticks)]
    zeros = torch.zeros(embedded.shape[1:], dtype=embedded.dtype, device=embedded.device)
    empty = layout.place(zeros, STREAM)
    (_, cache), last = loop(tick, (empty, cache), (embedded_at, ticks), form=layout.tick_form)
    first = layout.case.mesh.pp - 1
    return layout.place(last[first:], "slots stages stream_batch stream_seq embed"), cache


def take_last_tokens(state: Stream, *, shards: int) -> Float[Tensor, "stages batch shards embed"]:
    """The last token of each shard's part of a sequence.  No collective."""
    return state.unflatten(2, (shards, -1))[:, :, :, -1]
