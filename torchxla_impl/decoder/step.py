"""One inference step as a function of tensors: weights, cache, tokens in; chosen ids, cache out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from torchxla_impl.decoder.arguments import Argument, arguments
from torchxla_impl.decoder.cache import CACHE_DIMS, Caches, make_caches
from torchxla_impl.decoder.model import Decoder
from torchxla_impl.decoder.pipeline import run_pipeline
from torchxla_impl.sharding.layout import Layout

Ids = Int[Tensor, "sequences"]
Tokens = Int[Tensor, "sequences seq"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The step of one case: `prefill` reads `seq` tokens of each sequence, `decode` one."""

    layout: Layout
    model: Decoder
    arguments: tuple[Argument, ...]
    """Shapes with dims: weights (of the module), cache, tokens, and in `decode` the position."""

    @classmethod
    def of(cls, layout: Layout) -> "Step":
        """Built from shapes alone: no weight is allocated."""
        return cls(layout=layout, model=Decoder(layout), arguments=arguments(layout))

    @property
    def run(self) -> Callable[..., tuple[Ids, Caches]]:
        """The function of this phase."""
        return self.prefill if self.layout.case.phase == "prefill" else self.decode

    @property
    def output_dims(self) -> tuple[str, Caches]:
        """Of ids and cache."""
        return "batch", make_caches(self.layout.case, lambda _: CACHE_DIMS)

    @property
    def watch_dims(self) -> tuple[str, str, Caches]:
        """Of ids, logits and cache."""
        ids, cache = self.output_dims
        return ids, "slots stages batch parts vocab", cache

    def prefill(
        self, weights: Mapping[str, Shaped[Tensor, "..."]], cache: Caches, tokens: Tokens
    ) -> tuple[Ids, Caches]:
        """The next token of every sequence, and the cache with the keys and values of its prompt."""
        ids, _, cache = self.watch(weights, cache, tokens)
        return ids, cache

    def decode(
        self, weights: Mapping[str, Shaped[Tensor, "..."]], cache: Caches, tokens: Tokens, position: Int[Tensor, ""]
    ) -> tuple[Ids, Caches]:
        """The next token of every sequence, and the cache with this one's keys and values at `position`."""
        ids, _, cache = self.watch(weights, cache, tokens, position)
        return ids, cache

    def watch(
        self,
        weights: Mapping[str, Shaped[Tensor, "..."]],
        cache: Caches,
        tokens: Tokens,
        position: Int[Tensor, ""] | None = None,
    ) -> tuple[Ids, Float[Tensor, "slots stages batch parts vocab"], Caches]:
        """The step with its logits, those of every stage."""
        takes: tuple[Any, ...] = (
            {each.name: each.dims for each in self.arguments if each.role == "weight"},
            self.output_dims[1],
            *(each.dims for each in self.arguments if each.role == "input"),
        )
        arguments = (dict(weights), cache, tokens, *([] if position is None else [position]))
        return self.layout.as_global(self._watch, takes=takes, gives=self.watch_dims)(*arguments)

    def _watch(
        self,
        weights: Mapping[str, Shaped[Tensor, "..."]],
        cache: Caches,
        tokens: Tokens,
        position: Int[Tensor, ""] | None = None,
    ) -> tuple[Ids, Float[Tensor, "slots stages batch parts vocab"], Caches]:
        layout, model = self.layout, self.model
        # The module was made without memory; `assign` gives it these tensors themselves.
        model.load_state_dict(dict(weights), assign=True)

        def choose(last_hidden: Tensor) -> tuple[Tensor, Tensor]:
            logits = model.logits(last_hidden)
            return logits, layout.sample(logits)

        embedded = layout.on_first_stage(model.embedding, split_microbatches(tokens, slots=layout.case.microbatches))
        first = torch.zeros((), dtype=torch.int32, device=tokens.device) if position is None else position
        last, cache = run_pipeline(model, embedded, cache, position=first)
        logits, token_ids = layout.on_last_stage(choose, layout.last_tokens(last))
        ids = layout.collect(token_ids)
        # A tensor that is still alive when the program runs would be one more of its results.
        model.to("meta")
        return layout.place(merge_microbatches(ids), "batch"), logits, cache


def split_microbatches(tokens: Tokens, *, slots: int) -> Int[Tensor, "slots batch seq"]:
    """Sequence b · slots + i is row b of microbatch i.  No collective.

    They are dealt out round robin, not cut: each data-parallel shard holds its part of every microbatch.
    """
    return tokens.reshape(-1, slots, tokens.shape[1]).transpose(0, 1)


def merge_microbatches(ids: Int[Tensor, "slots batch"]) -> Ids:
    """Back in the order of the tokens."""
    return ids.T.reshape(-1)
