"""The root-mean-square norm: of the stream, and of the heads of queries and keys."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from torchxla_impl.sharding.layout import Layout


class Norm(nn.Module):
    """Root-mean-square norm over the last dim, its statistics in float32.  No collective: that dim is whole."""

    def __init__(self, layout: Layout, *, dims: str):
        super().__init__()
        self.layout = layout
        self.scale = layout.param(dims)

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        with self.layout.scope("norm"):
            wide = x.float()
            mean = wide.square().mean(-1, keepdim=True)
            normed = (wide * torch.rsqrt(mean + self.layout.case.model.norm_eps)).to(x.dtype)
            # A layer's scale differs by stage, the final one doesn't: [stages, 1, …, width] or [width].
            stages = self.scale.shape[:-1]
            return normed * self.scale.reshape(*stages, *(1,) * (x.ndim - 2) * len(stages), -1)
