"""One inference step as a function of tensors: weights, cache, tokens in; chosen ids, cache out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from meshes.weights import weights
from torchxla_impl.cache import CACHE_DIMS, Cache, cache_shape
from torchxla_impl.layout import Layout
from torchxla_impl.model import Decoder
from torchxla_impl.pipeline import run_pipeline

Ids = Int[Tensor, "sequences"]
Tokens = Int[Tensor, "sequences seq"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """A tensor that a step takes or gives: what it is, and its shape."""

    name: str
    role: str
    """`weight`, `cache`, `input` or `output`."""
    dims: str
    shape: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The step of one case: `prefill` reads `seq` tokens of each sequence, `decode` one."""

    layout: Layout
    model: Decoder

    @classmethod
    def of(cls, layout: Layout) -> Self:
        """Made from shapes alone: no weight is allocated."""
        return cls(layout=layout, model=Decoder(layout))

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """Weights, cache, tokens, and in `decode` the position."""
        case, dtype = self.layout.case, self.layout.dtype
        rows = [(each.name, "weight", each.dims, each.shape, dtype) for each in weights(case)]
        rows += [(name, "cache", CACHE_DIMS, cache_shape(case), dtype) for name in ("cache.k", "cache.v")]
        if case.phase == "prefill":
            rows += [("tokens", "input", "batch seq", (case.batch, case.seq), torch.int32)]
        else:
            rows += [("tokens", "input", "batch _", (case.batch, 1), torch.int32)]
            rows += [("position", "input", "", (), torch.int32)]
        return tuple(Argument(name=n, role=r, dims=d, shape=s, dtype=t) for n, r, d, s, t in rows)

    def placeholders(self) -> dict[str, Shaped[Tensor, "..."]]:
        """The arguments as parameters without data."""
        return {each.name: self.layout.placeholder(each.shape, each.dtype) for each in self.arguments}

    def __call__(self, arguments: Mapping[str, Shaped[Tensor, "..."]]) -> tuple[Ids, Cache]:
        """The phase's step on tensors by the names of `arguments`."""
        given = dict(arguments)
        cache = Cache(given.pop("cache.k"), given.pop("cache.v"))
        inputs = [given.pop(name) for name in ("tokens", "position") if name in given]
        self.load(given)
        return self.run(cache, *inputs)

    def load(self, weights: Mapping[str, Shaped[Tensor, "..."]]) -> None:
        """Give the model its weights, by their names; a tied head has none."""
        self.model.load_state_dict(dict(weights), assign=True)

    @property
    def run(self) -> Callable[..., tuple[Ids, Cache]]:
        """The function of this phase."""
        return {"prefill": self.prefill, "decode": self.decode}[self.layout.case.phase]

    def prefill(self, cache: Cache, tokens: Tokens) -> tuple[Ids, Cache]:
        """The next token of every sequence, and the cache with the keys and values of its prompt."""
        ids, _, cache = self.watch(cache, tokens)
        return ids, cache

    def decode(self, cache: Cache, tokens: Tokens, position: Int[Tensor, ""]) -> tuple[Ids, Cache]:
        """The next token of every sequence, and the cache with this one's keys and values at `position`."""
        ids, _, cache = self.watch(cache, tokens, position)
        return ids, cache

    def watch(
        self, cache: Cache, tokens: Tokens, position: Int[Tensor, ""] | int = 0
    ) -> tuple[Ids, Float[Tensor, "slots stages batch vocab"], Cache]:
        """The step with its logits, those of every stage."""
        layout, model = self.layout, self.model
        embedded = model.embedding(microbatches(tokens, slots=layout.case.microbatches))
        last, cache = run_pipeline(model, embedded, cache, position=position)
        logits = model.logits(last)
        ids = layout.collect(layout.sample(logits))
        return layout.place(sequences(ids), "batch"), logits, cache


def microbatches(tokens: Tokens, *, slots: int) -> Int[Tensor, "slots batch seq"]:
    """Sequence b · slots + i is row b of microbatch i.  No collective.

    They are dealt out like cards, not cut: each data-parallel shard holds its part of every microbatch.
    """
    return tokens.reshape(-1, slots, tokens.shape[1]).transpose(0, 1)


def sequences(ids: Int[Tensor, "slots batch"]) -> Ids:
    """Back in the order of the tokens."""
    return ids.T.reshape(-1)
