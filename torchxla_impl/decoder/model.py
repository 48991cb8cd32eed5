"""The decoder: embedding, layers in stages, head."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils import _pytree as tree

from torchxla_impl.decoder.attention import StepContext, Stream
from torchxla_impl.decoder.cache import Cache, Caches
from torchxla_impl.decoder.layers import Layer
from torchxla_impl.decoder.norm import Norm
from torchxla_impl.decoder.scan import scan
from torchxla_impl.sharding.layout import Layout

LastHidden = Float[Tensor, "slots stages batch parts embed"]
Scores = Float[Tensor, "slots stages batch parts vocab"]


class Embedding(nn.Module):
    """Vocabulary-parallel lookup: one all-reduce over `tp`, since each id is on one shard.

    Under SEQUENCE_PARALLEL a reduce-scatter.
    """

    def __init__(self, layout: Layout):
        super().__init__()
        self.layout = layout
        self.table = layout.param("vocab embed")

    def forward(self, tokens: Int[Tensor, "slots batch seq"]) -> Float[Tensor, "slots stages batch seq embed"]:
        with self.layout.scope("embed"):
            return self.layout.lookup(self.table, tokens)


class Head(nn.Module):
    """Scores of the vocabulary, split over `tp`.  No collective: `embed` is whole, and so is each shard's score."""

    def __init__(self, layout: Layout):
        super().__init__()
        self.layout = layout
        self.table = layout.param("embed vocab")

    def forward(self, x: LastHidden) -> Scores:
        return scores(x, self.table, layout=self.layout)


def scores(x: LastHidden, table: Float[Tensor, "embed vocab"], *, layout: Layout) -> Scores:
    """The product with the head's table, each shard for its part of the vocabulary."""
    with layout.scope("head"):
        return layout.place(torch.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts vocab")


class Decoder(nn.Module):
    """A decoder, dense or of experts; `layers` holds the weights of all layers of all stages."""

    def __init__(self, layout: Layout):
        super().__init__()
        self.layout = layout
        self.embedding = Embedding(layout)
        case = layout.case
        # In a scan one stack of all layers; unrolled each has its own weights, which XLA can fetch ahead.
        self.layers: Any = (
            Layer(layout)
            if case.loop == "scan"
            else nn.ModuleList([Layer(layout) for _ in range(case.model.layers // case.mesh.pp)])
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
        stacked = dict(self.layers.named_parameters())

        def run(
            carry: tuple[Stream, Cache], at: tuple[dict[str, Tensor], Tensor]
        ) -> tuple[tuple[Stream, Cache], tuple[()]]:
            weights, layer = at
            entry = layer * case.microbatches + context.slot
            return functional_call(self.layers, weights, carry, {"entry": entry, "context": context}), ()

        layers = torch.arange(case.model.layers // case.mesh.pp, device=carry[0].device)
        return scan(run, carry, (stacked, layers))[0]

    def logits(self, x: LastHidden) -> Scores:
        """Every stage computes them; only the last stage's are the answer."""
        x = self.norm(x)
        if self.head is None:
            return scores(x, self.embedding.table.T, layout=self.layout)
        return self.head(x)


def loop(run: Callable[[Any, Any], tuple[Any, Any]], carry: Any, along: Any, *, form: str) -> tuple[Any, Any]:
    """`torch_xla`'s scan of `run`, or the same steps written one after the other (`form` of a `Case`)."""
    if form == "scan":
        return scan(run, carry, along)
    outputs = []
    for at in range(tree.tree_leaves(along)[0].shape[0]):
        carry, output = run(carry, tree.tree_map(lambda each, at=at: each[at], along))
        outputs.append(output)
    return carry, tree.tree_map(lambda *each: torch.stack(each), *outputs)
