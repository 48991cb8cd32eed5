"""A mixture of experts over `ep`: each token to the experts that it chooses, and back (GShard, arXiv 2006.16668).

Shapes are static: a group's tokens share `expert_slots` slots at each expert, and later ones are dropped.  Which
token has which slot is a table of ones, [stages groups tokens experts slots]; dispatch and combine are products with
it.
"""

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from torch import Tensor, nn

from torchxla_impl.sharding.layout import Layout

Tokens = Float[Tensor, "stages batch seq embed"]
Groups = Float[Tensor, "stages groups tokens embed"]
Table = Float[Tensor, "stages groups tokens experts slots"]
Sent = Float[Tensor, "stages experts groups slots embed"]
Partial = Float[Tensor, "stages experts routed shards embed"]


class Moe(nn.Module):
    """Experts over `ep`, each a SwiGLU feed-forward split over `tp`.

    Two all-to-alls over `ep`, of all experts' slots, filled or not; one all-reduce over `tp`, of the tokens.
    Under SEQUENCE_PARALLEL: an all-gather over `tp` before the router and a reduce-scatter at the end.
    """

    def __init__(self, layout: Layout):
        super().__init__()
        self.layout = layout
        self.router = layout.param("layers stages embed choices")
        self.gate = layout.param("layers stages experts embed expert_ffn")
        self.up = layout.param("layers stages experts embed expert_ffn")
        self.down = layout.param("layers stages experts expert_ffn embed")

    def forward(self, x: Tokens) -> Tokens:
        layout = self.layout
        with layout.scope("layer.moe.route"):
            tokens = layout.place(group_tokens(layout.gather_sequence(x), layout=layout), "stages groups _ embed")
            gates = self.route(tokens)
            table = self.assign_slots(gates)
        with layout.scope("layer.moe.dispatch"):
            sent = self.dispatch(tokens, table)
        with layout.scope("layer.moe.experts"):
            partial = self.experts(sent)
        with layout.scope("layer.moe.combine"):
            return self.combine(partial, table * gates[..., None].to(x.dtype))

    def route(self, tokens: Groups) -> Float[Tensor, "stages groups tokens experts"]:
        """Each token's gate for each expert, in float32; 0 for those that it does not choose.  No collective."""
        model = self.layout.case.model
        logits = torch.einsum("zgtd,zde->zgte", tokens, self.router)
        best, expert_ids = torch.topk(torch.softmax(logits.float(), dim=-1), model.experts_per_token)
        if model.renormalized:
            best = best / best.sum(-1, keepdim=True)
        hot = expert_ids[..., None] == torch.arange(model.experts, device=expert_ids.device)
        gates = torch.where(hot, best[..., None], 0.0).sum(-2)
        return self.layout.place(gates, "stages groups _ choices")

    def assign_slots(self, gates: Float[Tensor, "stages groups tokens experts"]) -> Table:
        """1 where a token has a slot at an expert, filled in the order of the tokens.  No collective."""
        takes = (gates > 0).int()
        place = takes.cumsum(2, dtype=torch.int32) - takes
        slots = torch.arange(self.layout.case.expert_slots, device=takes.device)
        seats = (place[..., None] == slots) & (takes[..., None] > 0)
        return self.layout.place(seats.to(self.layout.dtype), "stages groups _ choices _")

    def dispatch(self, tokens: Groups, table: Table) -> Sent:
        """Every group's tokens in the slots of every expert, then to each expert: one all-to-all over `ep`."""
        return self.layout.to_experts(torch.einsum("zgtec,zgtd->zegcd", table, tokens))

    def experts(self, sent: Sent) -> Partial:
        """The partial sums of each shard of each expert.  No collective: `combine` sums them.

        There the sum is over tokens, each once; here it would be over slots, of which a token has several.
        """
        place, shards = self.layout.place, self.layout.num_parts("shards")
        gate, up = (torch.einsum("zegcd,zedf->zegcf", sent, weight) for weight in (self.gate, self.up))
        hidden = place(F.silu(gate) * up, "stages experts routed _ expert_ffn")
        # [stages experts groups·slots shards ffn/shards]: a partial sum for each shard.
        hidden = place(hidden.flatten(2, 3).unflatten(3, (shards, -1)), "stages experts routed shards _")
        down = self.down.unflatten(2, (shards, -1))
        return place(torch.einsum("zensf,zesfd->zensd", hidden, down), "stages experts routed shards embed")

    def combine(self, partial: Partial, table: Table) -> Tokens:
        """Back to the tokens' groups, one all-to-all over `ep`; summed by gate, then over `tp`: one all-reduce."""
        layout = self.layout
        # [stages experts groups slots shards embed]
        back = layout.from_experts(partial).unflatten(2, (table.shape[1], -1))
        expert_out = layout.place(torch.einsum("zgtec,zegcsd->zgtsd", table, back), "stages groups _ shards embed")
        return layout.reduce_output(ungroup_tokens(expert_out.sum(3), layout=layout), over="expert_ffn")


def group_tokens(x: Tokens, *, layout: Layout) -> Groups:
    """Tokens that share an expert's slots side by side.  No collective: a group lies on one device."""
    if layout.case.phase == "decode":
        return x.reshape(x.shape[0], -1, layout.case.group_tokens, x.shape[3])
    return x.unflatten(2, (layout.num_parts("parts"), -1)).transpose(1, 2).flatten(1, 2)


def ungroup_tokens(x: Groups, *, layout: Layout) -> Tokens:
    """Back in the order of the stream.  No collective."""
    if layout.case.phase == "decode":
        return x.flatten(1, 2)[:, :, None]
    return x.unflatten(1, (layout.num_parts("parts"), -1)).transpose(1, 2).flatten(2, 3)
