"""The decoder: embedding, layers in stages, head."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, Int

from jax_impl.decoder.attention import StepContext, Stream
from jax_impl.decoder.cache import Caches
from jax_impl.decoder.layers import Layer
from jax_impl.decoder.norm import Norm
from jax_impl.sharding.layout import Layout, Weights

LastHidden = Float[Array, "slots stages batch parts embed"]
Scores = Float[Array, "slots stages batch parts vocab"]


class Embedding(nnx.Module):
    """Vocabulary-parallel lookup: one all-reduce over `tp`, since each id is on one shard.

    Under SEQUENCE_PARALLEL a reduce-scatter.
    """

    def __init__(self, layout: Layout):
        self.layout = layout
        self.table = layout.param("vocab embed")

    def __call__(self, tokens: Int[Array, "slots batch seq"]) -> Float[Array, "slots stages batch seq embed"]:
        with self.layout.scope("embed"):
            return self.layout.lookup(self.table[...], tokens)


class Head(nnx.Module):
    """Scores of the vocabulary, split over `tp`.  No collective: `embed` is whole, and so is each shard's score."""

    def __init__(self, layout: Layout):
        self.layout = layout
        self.table = layout.param("embed vocab")

    def __call__(self, x: LastHidden) -> Scores:
        return scores(x, self.table[...], layout=self.layout)


def scores(x: LastHidden, table: Float[Array, "embed vocab"], *, layout: Layout) -> Scores:
    """The product with the head's table, each shard for its part of the vocabulary."""
    with layout.scope("head"):
        return layout.place(jnp.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts vocab")


class Decoder(nnx.Module):
    """A decoder, dense or of experts; `layers` holds the weights of all layers of all stages."""

    def __init__(self, layout: Layout):
        self.layout = layout
        self.embedding = Embedding(layout)
        case = layout.case
        # In a scan one stack of all layers; unrolled each has its own weights, which XLA can fetch ahead.
        self.layers: Any = (
            Layer(layout)
            if case.loop == "scan"
            else nnx.List([Layer(layout) for _ in range(case.model.layers // case.mesh.pp)])
        )
        self.norm = Norm(layout, dims="embed")
        # A tied head is the embedding transposed: one weight, two uses.
        self.head = None if layout.case.model.tied else Head(layout)

    def run_layers(self, carry: tuple[Stream, Caches], *, context: StepContext) -> tuple[Stream, Caches]:
        """The layers of one stage, on all stages at once: of the stream and the cache."""
        case = self.layout.case
        if case.loop == "unrolled":
            x, caches = carry
            changed = []
            for layer, cache in zip(self.layers, caches, strict=True):
                x, cache = layer(x, cache, entry=context.slot, context=context)
                changed.append(cache)
            return x, tuple(changed)
        form, stacked = nnx.split(self.layers)

        def run(carry: tuple[Stream, Caches], at: tuple[Weights, Array]) -> tuple[tuple[Stream, Caches], None]:
            weights, layer = at
            entry = layer * case.microbatches + context.slot
            return nnx.merge(form, weights)(*carry, entry=entry, context=context), None

        return jax.lax.scan(run, carry, (stacked, jnp.arange(case.model.layers // case.mesh.pp)))[0]

    def logits(self, x: LastHidden) -> Scores:
        """Every stage computes them; only the last stage's are the answer."""
        x = self.norm(x)
        if self.head is None:
            return scores(x, self.embedding.table[...].T, layout=self.layout)
        return self.head(x)


def loop(run: Callable[[Any, Any], tuple[Any, Any]], carry: Any, along: Any, *, form: str) -> tuple[Any, Any]:
    """`jax.lax.scan(run, carry, along)`, or the same steps written one after the other (`form` of a `Case`)."""
    if form == "scan":
        return jax.lax.scan(run, carry, along)
    outputs = []
    for at in range(jax.tree.leaves(along)[0].shape[0]):
        carry, output = run(carry, jax.tree.map(lambda each, at=at: each[at], along))
        outputs.append(output)
    return carry, jax.tree.map(lambda *each: jnp.stack(each), *outputs)
