"""Defects of what a step does: doubled sums, extra ticks and hops, wider types, another call.

The numbers: as of `weights`.  tp4pp2: 4 microbatches of 2 sequences of 128 tokens, 5 ticks, 2 layers a stage; a permute
from one of 2 stages has the factor 1/2.  cp2tp4: 8 sequences, 64 of their 128 tokens a device, 2 KV heads a device.
"""

from tests.planted.defect import CP_TP, EP_TP, TP_PP, Defect, Row, Site
from tests.planted.pins import SAMPLED_JAX
from tests.planted.weights import DOWN_JAX, DOWN_TORCH

SHIFT_JAX = ("decoder/pipeline.py", "state = layout.shift(state, embedded[slot], tick=at)")
RING_JAX = ("decoder/attention.py", "k, v = hop(k), hop(v)")

_TICKS = "A sixth tick: layers run 12 times where 8 are required; the loop does not have 5 ticks, so none is a bubble."

_EXTRA_TICK = (
    Row("pipeline.shift", "collective-permute@pp", "6", "1/2·2·128·256·2",
        {"inherent": "4·1/2·2·128·256·2", "inflated bubble": "2·1/2·2·128·256·2"}),
    Row("layer.attention.out", "all-reduce@tp", "12", "3/2·2·128·256·2",
        {"inherent": "8·3/2·2·128·256·2", "inflated other": "4·3/2·2·128·256·2"}),
    Row("layer.mlp.down", "all-reduce@tp", "12", "3/2·2·128·256·2",
        {"inherent": "8·3/2·2·128·256·2", "inflated other": "4·3/2·2·128·256·2"}),
    # Values and ids of 10 sequences, where 8 are chosen: half of it on the stage that chooses, of that 4/5 asked for.
    Row("sample", "all-gather@tp", "2", "1/2·3/4·4·10·6",
        {"inherent": "1/2·3/4·4·8·6", "inflated replicated": "1/2·3/4·4·10·6", "inflated other": "1/2·3/4·4·2·6"}),
    Row("pipeline.collect", "all-reduce@pp", "1", "10·4",
        {"inherent": "1/2·8·4", "inflated replicated": "1/2·10·4 + 1/2·2·4"}),
)  # fmt: skip

DEFECTS = (
    Defect(
        name="feed-forward-twice",
        chapter="Sums, ticks and hops",
        what="a layer runs its feed-forward twice: a doubled sum",
        sites={
            "jax": Site(
                "decoder/layers.py",
                "return x + self.feed_forward(self.mlp_norm(x)), cache",
                "return (y := x + self.feed_forward(self.mlp_norm(x))) + self.feed_forward(self.mlp_norm(y)), cache",
                reported=DOWN_JAX,
            ),
            "torchxla": Site(
                "decoder/layers.py",
                "return x + self.feed_forward(self.mlp_norm(x)), cache",
                "return (y := x + self.feed_forward(self.mlp_norm(x))) + self.feed_forward(self.mlp_norm(y)), cache",
                reported=DOWN_TORCH,
            ),
        },
        rows=(
            Row(
                "layer.mlp.down",
                "all-reduce@tp",
                "4",
                "3/2·4·128·256·2",
                {"inherent": "2·3/2·4·128·256·2", "inflated other": "2·3/2·4·128·256·2"},
            ),
        ),
        why="It serves the row, which the first two fill.",
    ),
    Defect(
        name="places-twice",
        chapter="Sums, ticks and hops",
        what="experts have twice the places",
        setting=EP_TP,
        sites={
            "jax": Site(
                "decoder/moe.py",
                "seats = (place[..., None] == jnp.arange(self.layout.case.expert_slots)) & (takes[..., None] > 0)",
                "seats = (place[..., None] == jnp.arange(2 * self.layout.case.expert_slots)) & (takes[..., None] > 0)",
                reported=(
                    "decoder/moe.py",
                    'return self.layout.to_experts(jnp.einsum("zgtec,zgtd->zegcd", table, tokens))',
                ),
            ),
            "torchxla": Site(
                "decoder/moe.py",
                "slots = torch.arange(self.layout.case.expert_slots, device=takes.device)",
                "slots = torch.arange(2 * self.layout.case.expert_slots, device=takes.device)",
                reported=(
                    "sharding/layout.py",
                    'return self.place(self.place(x, "stages _ groups _ embed"), "stages experts routed _ embed")',
                ),
            ),
        },
        rows=(
            Row(
                "layer.moe.dispatch",
                "all-to-all@ep",
                "2",
                "3/4·2·8·80·256·2",
                {"inherent": "2·3/4·2·8·40·256·2", "inflated other": "2·3/4·2·8·40·256·2"},
            ),
            Row(
                "layer.moe.combine",
                "all-to-all@ep",
                "2",
                "3/4·2·8·80·256·2",
                {"inherent": "2·3/4·2·8·40·256·2", "inflated other": "2·3/4·2·8·40·256·2"},
            ),
        ),
        why="Places travel, full or empty; the row has 40 for each expert.",
    ),
    Defect(
        name="extra-tick",
        chapter="Sums, ticks and hops",
        what="the pipeline runs a tick too many",
        setting=TP_PP,
        sites={
            "jax": Site(
                "sharding/layout.py",
                "return jnp.asarray(np.arange(slots + stages - 1) % slots)",
                "return jnp.asarray(np.arange(slots + stages) % slots)",
                reported=DOWN_JAX,
            ),
            "torchxla": Site(
                "sharding/layout.py", "ticks = slots + stages - 1", "ticks = slots + stages", reported=DOWN_TORCH
            ),
        },
        rows=_EXTRA_TICK,
        why=_TICKS,
    ),
    Defect(
        name="rolled-shift",
        chapter="Sums, ticks and hops",
        what="the pipeline shifts by a roll",
        setting=TP_PP,
        sites={
            "jax": Site(
                "sharding/layout.py",
                "moved = jnp.pad(state, [(1, 0)] + [(0, 0)] * (state.ndim - 1))[:stages]",
                "moved = jnp.roll(state, 1, axis=0)",
                reported=SHIFT_JAX,
            )
        },
        rows=(
            Row(
                "pipeline.shift",
                "collective-permute@pp",
                "5",
                "2·128·256·2",
                {
                    "inherent": "4·1/2·2·128·256·2",
                    "inflated wrap": "5·1/2·2·128·256·2",
                    "inflated bubble": "1/2·2·128·256·2",
                },
            ),
        ),
        why="Half of what is sent closes the ring; of the rest the last of 5 ticks is idle.",
    ),
    Defect(
        name="rolled-shift-torch",
        chapter="Sums, ticks and hops",
        what="the pipeline shifts by `torch.roll`",
        setting=TP_PP,
        sites={
            "torchxla": Site(
                "sharding/layout.py",
                "moved = F.pad(state, (0, 0) * (state.ndim - 1) + (1, 0))[:stages]",
                "moved = torch.roll(state, 1, 0)",
            )
        },
        rows=(
            # A permute forward and one back, in each tick.
            Row(
                "pipeline.shift",
                "collective-permute@pp",
                "10",
                "1/2·2·128·256·2",
                {
                    "inherent": "4·1/2·2·128·256·2",
                    "inflated wrap": "5·1/2·2·128·256·2",
                    "inflated bubble": "1/2·2·128·256·2",
                },
            ),
        ),
        why="The same in two permutes.",
    ),
    Defect(
        name="stages-swapped",
        chapter="Sums, ticks and hops",
        what="the mesh has its last stage on the devices of the first",
        setting=TP_PP,
        sites={
            "torchxla": Site(
                "sharding/create.py",
                "return _class_of(case)(case, xs.Mesh(np.arange(needed), tuple(sizes.values()), tuple(sizes)))",
                "return _class_of(case)(case, xs.Mesh(np.arange(needed).reshape(2, 4)[::-1].ravel(), "
                "tuple(sizes.values()), tuple(sizes)))",
                reported=(
                    "sharding/layout.py",
                    "moved = F.pad(state, (0, 0) * (state.ndim - 1) + (1, 0))[:stages]",
                ),
            )
        },
        rows=(Row("pipeline.shift", "collective-permute@pp", "5", "1/2·2·128·256·2", "inflated wrap"),),
        unserved={"pipeline.shift collective-permute@pp": "4·1/2·2·128·256·2"},
        why="Ids are row-major over the axes: what goes from the last four to the first four closes a ring.",
    ),
    Defect(
        name="extra-hop",
        chapter="Sums, ticks and hops",
        what="keys and values go all the way around the ring",
        setting=CP_TP,
        sites={
            "jax": Site(
                "decoder/attention.py", "for step in range(ranks):", "for step in range(ranks + 1):", reported=RING_JAX
            )
        },
        rows=(
            Row(
                "layer.attention.core",
                "collective-permute@cp",
                "8",
                "8·64·2·32·2",
                {"inherent": "4·8·64·2·32·2", "inflated wrap": "4·8·64·2·32·2"},
            ),
        ),
        why="The second hop of 2 ranks brings each its own again.",
    ),
    Defect(
        name="wide-cap",
        chapter="Sums, ticks and hops",
        what="the sum of a block is made and capped in float32",
        sites={
            "jax": Site(
                "decoder/layers.py",
                DOWN_JAX[1],
                'return jnp.tanh(layout.reduce_output(jnp.einsum("zbsf,zfd->zbsd", hidden, self.down[...], '
                "preferred_element_type=jnp.float32), over=self.ffn)).astype(x.dtype)",
            ),
            "torchxla": Site(
                "decoder/layers.py",
                DOWN_TORCH[1],
                'return torch.tanh(layout.reduce_output(torch.einsum("zbsf,zfd->zbsd", hidden.float(), '
                "self.down.float()), over=self.ffn)).to(x.dtype)",
            ),
        },
        rows=(
            Row(
                "layer.mlp.down",
                "all-reduce@tp",
                "2",
                "3/2·4·128·256·4",
                {"inherent": "2·3/2·4·128·256·2", "inflated dtype": "2·3/2·4·128·256·2"},
            ),
        ),
        why="Four bytes where the model's elements have two.",
    ),
    Defect(
        name="wide-winners",
        chapter="Sums, ticks and hops",
        what="the winners are chosen in float32",
        sites={
            "jax": Site(
                "sharding/layout.py",
                'return self.place(jnp.argmax(logits, axis=-1).astype(jnp.int32), "slots stages batch parts")',
                "return self.place(jnp.argmax(logits.astype(jnp.float32), axis=-1).astype(jnp.int32), "
                '"slots stages batch parts")',
                reported=SAMPLED_JAX,
            ),
            "torchxla": Site(
                "sharding/layout.py",
                'return self.place(torch.argmax(logits, dim=-1).int(), "slots stages batch parts")',
                'return self.place(torch.argmax(logits.float(), dim=-1).int(), "slots stages batch parts")',
            ),
        },
        rows=(
            Row(
                "sample",
                "all-gather@tp",
                "2",
                "1/2·3/4·4·4·4 + 1/2·3/4·4·4·4",
                {"inherent": "3/4·4·4·2 + 3/4·4·4·4", "inflated dtype": "3/4·4·4·2"},
            ),
        ),
        why="Half of the bytes of the values.",
    ),
    Defect(
        name="sdpa",
        chapter="Another call",
        what="attention is PyTorch's own call, in a prompt",
        sites={
            "torchxla": Site(
                "decoder/attention.py",
                '("einsum", "prefill"): grouped_attention,',
                '("einsum", "prefill"): causal_attention,',
                reported=(
                    "decoder/attention.py",
                    "return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(2, 3)",
                ),
            )
        },
        rows=(
            # q and the repeated k have 16 heads, v has 8.
            Row("layer.attention.core", "all-gather@tp", "6", "1/3·3/4·4·128·40·32·2", "induced activation-gather"),
        ),
        why="`bmm` merges batch and heads, and only one of the two stays split.",
    ),
    Defect(
        name="sdpa-decode",
        chapter="Another call",
        what="attention is PyTorch's own call, with a cache",
        phase="decode",
        sites={
            "torchxla": Site(
                "decoder/attention.py",
                '("einsum", "decode"): grouped_attention,',
                '("einsum", "decode"): cached_attention,',
                reported=(
                    "decoder/attention.py",
                    "return F.scaled_dot_product_attention(packed, k, v, attn_mask=mask)"
                    ".reshape(q.shape).transpose(2, 3)",
                ),
            )
        },
        rows=(
            Row(
                "layer.attention.core",
                "all-gather@tp",
                "6",
                "1/3·3/4·4·16·32·2 + 1/3·3/4·4·256·8·32·2 + 1/3·3/4·4·256·8·32·2",
                {
                    "induced activation-gather": "2·3/4·4·16·32·2 + 2·3/4·4·256·8·32·2",
                    "induced cache-gather": "2·3/4·4·256·8·32·2",
                },
            ),
        ),
        why="As in a prompt. The keys are scaled before they are gathered, so they are not cache; the values are.",
    ),
)
