"""One inference step as a pure function of arrays: weights, cache, tokens in; chosen ids, cache out."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from jax_impl.decoder.cache import CACHE_DIMS, Caches, cache_shape, make_caches
from jax_impl.decoder.model import Decoder
from jax_impl.decoder.pipeline import run_pipeline
from jax_impl.sharding.layout import Layout, Weights
from jax_impl.sharding.lowering import abstract_array, abstract_weights

Ids = Int[Array, "sequences"]
Tokens = Int[Array, "sequences seq"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The step of one case: `prefill` reads `seq` tokens of each sequence, `decode` one."""

    layout: Layout
    form: nnx.GraphDef[Decoder]
    arguments: tuple[Any, ...]
    """Shapes with shardings: weights (as the module's state), cache, tokens, and in `decode` the position."""

    @classmethod
    def of(cls, layout: Layout) -> "Step":
        """Built from shapes alone: no weight is allocated."""
        case, abstract = layout.case, partial(abstract_array, layout)
        form, weights = nnx.split(nnx.eval_shape(lambda: Decoder(layout)))
        kv = abstract(cache_shape(case), layout.dtype, CACHE_DIMS)
        if case.phase == "prefill":
            inputs = [abstract((case.batch, case.seq), jnp.int32, "batch positions")]
        else:
            inputs = [abstract((case.batch, 1), jnp.int32, "batch _"), abstract((), jnp.int32, "")]
        return cls(
            layout=layout,
            form=form,
            arguments=(abstract_weights(layout, weights), make_caches(case, lambda _: kv), *inputs),
        )

    @property
    def run(self) -> Callable[..., tuple[Ids, Caches]]:
        """The pure function of this phase."""
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

    def prefill(self, weights: Weights, cache: Caches, tokens: Tokens) -> tuple[Ids, Caches]:
        """The next token of every sequence, and the cache with the keys and values of its prompt."""
        ids, _, cache = self.watch(weights, cache, tokens)
        return ids, cache

    def decode(self, weights: Weights, cache: Caches, tokens: Tokens, position: Int[Array, ""]) -> tuple[Ids, Caches]:
        """The next token of every sequence, and the cache with this one's keys and values at `position`."""
        ids, _, cache = self.watch(weights, cache, tokens, position)
        return ids, cache

    def watch(
        self, weights: Weights, cache: Caches, tokens: Tokens, position: Int[Array, ""] | None = None
    ) -> tuple[Ids, Float[Array, "slots stages batch parts vocab"], Caches]:
        """The step with its logits, those of every stage."""
        arguments = (weights, cache, tokens, *([] if position is None else [position]))
        return self.layout.as_global(self._watch, takes=self.arguments, gives=self.watch_dims)(*arguments)

    def _watch(
        self, weights: Weights, cache: Caches, tokens: Tokens, position: Int[Array, ""] | None = None
    ) -> tuple[Ids, Float[Array, "slots stages batch parts vocab"], Caches]:
        layout, model = self.layout, nnx.merge(self.form, weights)

        def choose(last_hidden: Array) -> tuple[Array, Array]:
            logits = model.logits(last_hidden)
            return logits, layout.sample(logits)

        embedded = layout.on_first_stage(model.embedding, split_microbatches(tokens, slots=layout.case.microbatches))
        first = jnp.int32(0 if position is None else position)
        last, cache = run_pipeline(model, embedded, cache, position=first)
        logits, token_ids = layout.on_last_stage(choose, layout.last_tokens(last))
        return layout.place(merge_microbatches(layout.collect(token_ids)), "batch"), logits, cache


def split_microbatches(tokens: Tokens, *, slots: int) -> Int[Array, "slots batch seq"]:
    """Sequence b · slots + i is row b of microbatch i.  No collective.

    They are dealt out round robin, not cut: each data-parallel shard holds its part of every microbatch.
    """
    return jnp.swapaxes(tokens.reshape(-1, slots, tokens.shape[1]), 0, 1)


def merge_microbatches(ids: Int[Array, "slots batch"]) -> Ids:
    """Back in the order of the tokens."""
    return ids.T.reshape(-1)
