"""One inference step as a pure function of arrays: weights, cache, tokens in; chosen ids, cache out."""

from dataclasses import dataclass
from typing import Self

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from jax_impl.cache import CACHE_DIMS, Cache, cache_shape
from jax_impl.layout import Layout
from jax_impl.model import Decoder
from jax_impl.pipeline import run_pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The step of one case.  `prefill` reads `seq` tokens of each sequence, `decode` one."""

    layout: Layout
    form: nnx.GraphDef
    weights: nnx.State
    """Shapes, with shardings."""
    cache: Cache
    """Shapes, with shardings; the same in both phases."""
    tokens: jax.ShapeDtypeStruct
    position: jax.ShapeDtypeStruct

    @classmethod
    def of(cls, layout: Layout) -> Self:
        """Made from shapes alone: no weight is allocated."""
        case = layout.case
        form, weights = nnx.split(nnx.eval_shape(lambda: Decoder(layout)))
        kept = jax.ShapeDtypeStruct(cache_shape(case), layout.dtype, sharding=layout.sharding(CACHE_DIMS))
        seq = case.seq if case.phase == "prefill" else 1
        return cls(
            layout=layout,
            form=form,
            weights=jax.tree.map(
                lambda each: each.replace(
                    jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=layout.sharding(each.get_metadata("dims")))
                ),
                weights,
                is_leaf=lambda each: isinstance(each, nnx.Variable),
            ),
            cache=Cache(kept, kept),
            tokens=jax.ShapeDtypeStruct((case.batch, seq), jnp.int32, sharding=layout.sharding("batch _")),
            position=jax.ShapeDtypeStruct((), jnp.int32, sharding=layout.sharding("")),
        )

    def run(
        self, weights: nnx.State, cache: Cache, tokens: Int[Array, "sequences seq"], position: Int[Array, ""]
    ) -> tuple[Int[Array, "sequences"], Cache]:
        """The next token of every sequence, and the cache with this step's keys and values."""
        ids, _, cache = self.watch(weights, cache, tokens, position)
        return ids, cache

    def watch(
        self, weights: nnx.State, cache: Cache, tokens: Int[Array, "sequences seq"], position: Int[Array, ""]
    ) -> tuple[Int[Array, "sequences"], Float[Array, "slots stages batch vocab"], Cache]:
        """`run`, with the logits of every stage."""
        layout, model = self.layout, nnx.merge(self.form, weights)
        embedded = model.embedding(microbatches(tokens, slots=layout.case.microbatches))
        last, cache = run_pipeline(model, embedded, cache, position=position)
        logits = model.logits(last)
        ids = layout.collect(layout.sample(logits))
        return layout.place(ids.T.reshape(-1), "batch"), logits, cache


def microbatches(tokens: Int[Array, "sequences seq"], *, slots: int) -> Int[Array, "slots batch seq"]:
    """Sequence b · slots + i is row b of microbatch i.

    Microbatches are dealt out like cards, not cut: each data-parallel shard then holds its part of every one, and
    nothing moves.
    """
    return jnp.swapaxes(tokens.reshape(-1, slots, tokens.shape[1]), 0, 1)
