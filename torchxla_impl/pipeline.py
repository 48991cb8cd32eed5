"""The shifting-buffer pipeline in GPipe order: every stage works in every tick, on its own microbatch."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from torchxla_impl.cache import Cache
from torchxla_impl.layers import Stream, Turn
from torchxla_impl.model import Decoder, loop


def run_pipeline(
    model: Decoder,
    embedded: Float[Tensor, "slots batch seq embed"],
    cache: Cache,
    *,
    position: Int[Tensor, ""],
) -> tuple[Float[Tensor, "slots stages batch embed"], Cache]:
    """The last token's state after all layers, of every microbatch; only the last stage's is the answer.

    m + pp − 1 ticks, each with one collective-permute over `pp`; the ticks in which a stage holds nothing are the
    bubble.  The state is [stages, batch, seq, embed]: stage s holds microbatch tick − s.
    """
    layout = model.layout
    stages, slots = layout.case.mesh.pp, layout.case.microbatches
    ticks = torch.arange(slots + stages - 1, device=embedded.device)
    stage = torch.arange(stages, device=embedded.device)

    def tick(carry: tuple[Stream, Cache], at: tuple[Tensor, Tensor, Tensor]) -> tuple[tuple[Stream, Cache], Tensor]:
        state, cache = carry
        taken, slot, now = at
        held = now - stage
        state = layout.shift(state, taken)
        state, cache = model.run_layers(state, cache, turn=Turn(position, slot, (held >= 0) & (held < slots)))
        state = layout.place(state, "stages batch seq embed")
        return (state, cache), layout.place(state[:, :, -1], "stages batch embed")

    along = (
        # In the bubble the first stage takes the last microbatch again: what comes of it is never read.
        torch.cat([embedded, *[embedded[-1:]] * (stages - 1)]),
        torch.arange(slots, device=embedded.device).repeat(stages)[: len(ticks)],
        ticks,
    )
    zeros = torch.zeros((stages, *embedded.shape[1:]), dtype=embedded.dtype, device=embedded.device)
    empty = layout.place(zeros, "stages batch seq embed")
    (_, cache), last = loop(tick, (empty, cache), along, form=layout.case.loop)
    return layout.place(last[stages - 1 :], "slots stages batch embed"), cache
