"""A mixture of experts over `ep`: each token to the experts that it chooses, and back (GShard, arXiv 2006.16668).

Shapes are static: a group's tokens share `expert_slots` slots at each expert, and later ones are dropped.  Which
token has which slot is a table of ones, [stages groups tokens experts slots]; dispatch and combine are products with
it.
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float

from jax_impl.sharding.layout import TOKENS, Layout
from jax_impl.sharding.typed import out_sharding

Tokens = Float[Array, "stages batch seq embed"]
Groups = Float[Array, "stages groups tokens embed"]
Table = Float[Array, "stages groups tokens experts slots"]
Sent = Float[Array, "stages experts groups slots embed"]
Partial = Float[Array, "stages experts routed shards embed"]


class Moe(nnx.Module):
    """Experts over `ep`, each a SwiGLU feed-forward split over `tp`.

    Two all-to-alls over `ep`, of all experts' slots, filled or not; one all-reduce over `tp`, of the tokens.
    Under SEQUENCE_PARALLEL: an all-gather over `tp` before the router and a reduce-scatter at the end.
    """

    def __init__(self, layout: Layout):
        self.layout = layout
        self.router = layout.param("layers stages embed choices")
        self.gate = layout.param("layers stages experts embed expert_ffn")
        self.up = layout.param("layers stages experts embed expert_ffn")
        self.down = layout.param("layers stages experts expert_ffn embed")

    def __call__(self, x: Tokens) -> Tokens:
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
            return self.combine(partial, table * gates[..., None].astype(x.dtype))

    def route(self, tokens: Groups) -> Float[Array, "stages groups tokens experts"]:
        """Each token's gate for each expert, in float32; 0 for those that it does not choose.  No collective."""
        model = self.layout.case.model
        logits = jnp.einsum("zgtd,zde->zgte", tokens, self.router[...])
        best, expert_ids = jax.lax.top_k(jax.nn.softmax(logits.astype(jnp.float32), axis=-1), model.experts_per_token)
        if model.renormalized:
            best = best / jnp.sum(best, axis=-1, keepdims=True)
        gates = jnp.sum(jax.nn.one_hot(expert_ids, model.experts) * best[..., None], axis=-2)
        return self.layout.place(gates, "stages groups _ choices")

    def assign_slots(self, gates: Float[Array, "stages groups tokens experts"]) -> Table:
        """1 where a token has a slot at an expert, filled in the order of the tokens.  No collective."""
        takes = (gates > 0).astype(jnp.int32)
        place = jnp.cumsum(takes, axis=2) - takes
        seats = (place[..., None] == jnp.arange(self.layout.case.expert_slots)) & (takes[..., None] > 0)
        return self.layout.place(seats.astype(self.layout.dtype), "stages groups _ choices _")

    def dispatch(self, tokens: Groups, table: Table) -> Sent:
        """Every group's tokens in the slots of every expert, then to each expert: one all-to-all over `ep`."""
        return self.layout.to_experts(jnp.einsum("zgtec,zgtd->zegcd", table, tokens))

    def experts(self, sent: Sent) -> Partial:
        """The partial sums of each shard of each expert.  No collective: `combine` sums them.

        There the sum is over tokens, each once; here it would be over slots, of which a token has several.
        """
        place, shards = self.layout.place, self.layout.num_parts("shards")
        gate, up = (jnp.einsum("zegcd,zedf->zegcf", sent, weight[...]) for weight in (self.gate, self.up))
        hidden = place(jax.nn.silu(gate) * up, "stages experts routed _ expert_ffn")
        stages, experts, groups, slots, ffn = hidden.shape
        # [stages experts groups·slots shards ffn/shards]: a partial sum for each shard.
        split = out_sharding(self.layout, "stages experts routed shards _")
        hidden = jnp.reshape(hidden, (stages, experts, groups * slots, shards, ffn // shards), out_sharding=split)
        hidden = place(hidden, "stages experts routed shards _")
        down = self.down[...].reshape(stages, experts, shards, ffn // shards, -1)
        return place(jnp.einsum("zensf,zesfd->zensd", hidden, down), "stages experts routed shards embed")

    def combine(self, partial: Partial, table: Table) -> Tokens:
        """Back to the tokens' groups, one all-to-all over `ep`; summed by gate, then over `tp`: one all-reduce."""
        layout, back = self.layout, self.layout.from_experts(partial)
        stages, experts, _, shards, embed = back.shape
        # [stages experts groups slots shards embed]
        back = back.reshape(stages, experts, table.shape[1], -1, shards, embed)
        expert_out = layout.place(jnp.einsum("zgtec,zegcsd->zgtsd", table, back), "stages groups _ shards embed")
        return layout.reduce_output(ungroup_tokens(jnp.sum(expert_out, axis=3), layout=layout), over="expert_ffn")


def group_tokens(x: Tokens, *, layout: Layout) -> Groups:
    """Tokens that share an expert's slots side by side.  No collective: a group lies on one device."""
    stages, batch, seq, embed = x.shape
    if layout.case.phase == "decode":
        grouped = out_sharding(layout, "stages groups _ embed")
        return jnp.reshape(x, (stages, -1, layout.case.group_tokens, embed), out_sharding=grouped)
    parts = layout.num_parts("parts")
    cut = x.reshape(stages, batch, parts, seq // parts, embed)
    return jnp.swapaxes(cut, 1, 2).reshape(stages, parts * batch, seq // parts, embed)


def ungroup_tokens(x: Groups, *, layout: Layout) -> Tokens:
    """Back in the order of the stream.  No collective."""
    stages, groups, tokens, embed = x.shape
    if layout.case.phase == "decode":
        return jnp.reshape(x, (stages, groups * tokens, 1, embed), out_sharding=out_sharding(layout, TOKENS))
    parts = layout.num_parts("parts")
    cut = x.reshape(stages, parts, groups // parts, tokens, embed)
    return jnp.swapaxes(cut, 1, 2).reshape(stages, groups // parts, parts * tokens, embed)
