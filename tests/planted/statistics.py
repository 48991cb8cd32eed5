"""Statistics over the axis of a row, in its scope, which a reader may take for a part of what the row moves.

The numbers: 4 sequences of 128 tokens a device, embed 256, 2 layers; in decode 4 of one token; of Llama-3.2-1B 4 of one
token, and 16 layers.  Over tp = 4 an all-reduce has the factor 3/2, over ep = 4, too, over 2 stages or ranks 1.  In no
case is anything of the row gone: it stands as in the twin as it is, and the statistic beside it.
"""

from tests.planted.defect import CP_TP, DP_TP_SP, EP_TP, LLAMA_1B, TP_PP, Defect, Row, Site
from tests.planted.pins import SAMPLED_JAX
from tests.planted.steps import SHIFT_JAX
from tests.planted.weights import DOWN_JAX, DOWN_SUM_JAX, DOWN_TORCH, OUT_JAX, OUT_TORCH

_GATHERED = "return self.place(self.place(x, STREAM), TOKENS)"
_MEAN = "jnp.mean(hidden.astype(jnp.float32), -1, keepdims=True).astype(hidden.dtype)"
_MAXIMUM_JAX = Site(
    *DOWN_JAX, DOWN_JAX[1].replace("hidden, self", "hidden / jnp.max(jnp.abs(hidden), -1, keepdims=True), self")
)
_SCALE_JAX = "jnp.max(jnp.abs(self.down[...]), 1, keepdims=True)"
_SCALE_TORCH = "self.down.abs().amax(1, keepdim=True)"
_RING_JAX = (
    "return layout.ring(partial(_ring, layout.case.mesh.cp), takes=(HEADS, KV_HEADS, KV_HEADS), gives=HEADS)(q, k, v)"
)
_NO_PART = "It adds up what no product has made, and too little of it: the row's own sum serves the row."

DEFECTS = (
    Defect(
        name="hidden-by-maximum",
        chapter="Statistics",
        what="the hidden activations are divided by their maximum, before `mlp.down`",
        sites={
            "jax": _MAXIMUM_JAX,
            "torchxla": Site(
                DOWN_TORCH[0], DOWN_TORCH[1],
                DOWN_TORCH[1].replace("hidden, self", "hidden / hidden.abs().amax(-1, keepdim=True), self"),
            ),
        },
        rows=(
            Row(
                "layer.mlp.down", "all-reduce@tp", "4", "1/2·3/2·4·128·256·2 + 1/2·3/2·4·128·2",
                {"inherent": "2·3/2·4·128·256·2", "induced activation-gather": "2·3/2·4·128·2"},
            ),
        ),
        why="A maximum adds nothing up.",
    ),
    Defect(
        name="down-by-its-scale",
        chapter="Statistics",
        what="`mlp.down` is quantized as it is used: divided by the maximum of each column, and rounded",
        sites={
            "jax": Site(
                DOWN_JAX[0], DOWN_JAX[1],
                DOWN_JAX[1].replace("self.down[...]", f"jnp.round(self.down[...] / {_SCALE_JAX})")
                + f" * {_SCALE_JAX}[:, None]",
            ),
            "torchxla": Site(
                DOWN_TORCH[0], DOWN_TORCH[1],
                DOWN_TORCH[1].replace("self.down)", f"torch.round(self.down / {_SCALE_TORCH}))")
                + f" * {_SCALE_TORCH}[:, None]",
            ),
        },
        rows=(
            Row(
                "layer.mlp.down", "all-reduce@tp", "4", "1/2·3/2·4·128·256·2 + 1/2·3/2·256·2",
                {"inherent": "2·3/2·4·128·256·2", "induced weight-gather": "2·3/2·256·2"},
            ),
        ),
        why="A maximum adds nothing up, and is computed from a weight alone.",
    ),
    Defect(
        name="hidden-by-maximum-1b",
        chapter="Statistics",
        what="the same in Llama-3.2-1B",
        setting=LLAMA_1B,
        phase="decode",
        sites={"jax": _MAXIMUM_JAX},
        rows=(
            Row(
                "layer.mlp.down", "all-reduce@tp", "32", "1/2·3/2·4·2048·2 + 1/2·3/2·4·2",
                {"inherent": "16·3/2·4·2048·2", "induced activation-gather": "16·3/2·4·2"},
            ),
        ),
        why="192 bytes a step, which are none of the sum's 393,216.",
    ),
    Defect(
        name="mean-before-1b",
        chapter="Statistics",
        what="the hidden activations lose their mean in float32, before `mlp.down`, in Llama-3.2-1B",
        setting=LLAMA_1B,
        phase="decode",
        sites={"jax": Site(DOWN_JAX[0], DOWN_JAX[1], DOWN_JAX[1].replace("hidden, self", f"hidden - {_MEAN}, self"))},
        rows=(
            Row(
                "layer.mlp.down", "all-reduce@tp", "32", "1/2·3/2·4·2048·2 + 1/2·3/2·4·4",
                {"inherent": "16·3/2·4·2048·2", "induced activation-gather": "16·3/2·4·4"},
            ),
        ),
        why=_NO_PART,
    ),
    Defect(
        name="mean-after-1b",
        chapter="Statistics",
        what="what `mlp.down` gives is multiplied by the mean of the hidden activations, in Llama-3.2-1B",
        setting=LLAMA_1B,
        phase="decode",
        sites={"jax": Site(*DOWN_SUM_JAX, f"{DOWN_SUM_JAX[1]} * {_MEAN}")},
        rows=(
            Row(
                "layer.mlp.down", "all-reduce@tp", "32", "1/2·3/2·4·2048·2 + 1/2·3/2·4·4",
                {"inherent": "16·3/2·4·2048·2", "induced activation-gather": "16·3/2·4·4"},
            ),
        ),
        why=_NO_PART,
    ),
    Defect(
        name="mean-as-gate",
        chapter="Statistics",
        what="what `mlp.down` gives is multiplied by the mean of the hidden activations, in float32",
        phase="decode",
        sites={
            "jax": Site(*DOWN_SUM_JAX, f"{DOWN_SUM_JAX[1]} * {_MEAN}"),
            "torchxla": Site(
                DOWN_TORCH[0], DOWN_TORCH[1],
                f"{DOWN_TORCH[1]} * hidden.float().mean(-1, keepdim=True).to(hidden.dtype)",
            ),
        },
        rows=(
            Row(
                "layer.mlp.down", "all-reduce@tp", "4", "1/2·3/2·4·256·2 + 1/2·3/2·4·4",
                {"inherent": "2·3/2·4·256·2", "induced activation-gather": "2·3/2·4·4"},
            ),
        ),
        why=_NO_PART,
    ),
    Defect(
        name="mixed-by-maximum",
        chapter="Statistics",
        what="what attention gives is divided by its maximum over heads, where the row scatters its sum",
        setting=DP_TP_SP,
        sites={
            "jax": Site(
                OUT_JAX[0], OUT_JAX[1],
                OUT_JAX[1].replace(
                    "attn_out, self", "attn_out / jnp.max(jnp.abs(attn_out), (-2, -1), keepdims=True), self"
                ),
            ),
            "torchxla": Site(
                OUT_TORCH[0], OUT_TORCH[1],
                OUT_TORCH[1].replace("attn_out, self", "attn_out / attn_out.abs().amax((-2, -1), keepdim=True), self"),
            ),
        },
        rows=(
            Row("layer.attention.out", "all-reduce@tp", "2", "3/2·4·128·2", "induced activation-gather"),
        ),
        why="A maximum scatters nothing.",
    ),
    Defect(
        name="tokens-by-maximum",
        chapter="Statistics",
        what="the tokens are divided by their sequence's maximum before they are gathered",
        setting=DP_TP_SP,
        sites={
            "jax": Site(
                "sharding/layout.py", _GATHERED,
                _GATHERED.replace("(x, STREAM)", "(x / jnp.max(jnp.abs(x), (2, 3), keepdims=True), STREAM)"),
                reported=("decoder/attention.py",
                          "q, k, v = self.project(layout.gather_sequence(x), position=context.position)"),
            ),
            "torchxla": Site(
                "sharding/layout.py", _GATHERED,
                _GATHERED.replace("(x, STREAM)", "(x / x.abs().amax((2, 3), keepdim=True), STREAM)"),
            ),
        },
        rows=(
            Row("layer.attention.qkv", "all-reduce@tp", "2", "3/2·4·2", "induced activation-gather"),
            Row("layer.mlp.up", "all-reduce@tp", "2", "3/2·4·2", "induced activation-gather"),
        ),
        why="A sum gathers where its parts are zero elsewhere; a maximum of four numbers gathers no tokens.",
    ),
    Defect(
        name="places-less-their-mean",
        chapter="Statistics",
        what="the tokens lose the mean of all groups, in float32, before they are sent to their experts",
        setting=EP_TP,
        sites={
            "jax": Site(
                "decoder/moe.py",
                'return self.layout.to_experts(jnp.einsum("zgtec,zgtd->zegcd", table, tokens))',
                'return self.layout.to_experts(jnp.einsum("zgtec,zgtd->zegcd", table, tokens - '
                "jnp.mean(tokens.astype(jnp.float32), (1, 2), keepdims=True).astype(tokens.dtype)))",
            ),
            "torchxla": Site(
                "decoder/moe.py",
                'return self.layout.to_experts(torch.einsum("zgtec,zgtd->zegcd", table, tokens))',
                'return self.layout.to_experts(torch.einsum("zgtec,zgtd->zegcd", table, tokens - '
                "tokens.float().mean((1, 2), keepdim=True).to(tokens.dtype)))",
            ),
        },
        rows=(Row("layer.moe.dispatch", "all-reduce@ep", "2", "3/2·256·4", "induced activation-gather"),),
        why="A sum of tokens may stand in for their exchange; this one is of too few.",
    ),
    Defect(
        name="state-by-maximum",
        chapter="Statistics",
        what="the state is divided by its maximum over stages before it is shifted",
        setting=TP_PP,
        sites={
            "jax": Site(
                "sharding/layout.py",
                "moved = jnp.pad(state, [(1, 0)] + [(0, 0)] * (state.ndim - 1))[:stages]",
                "moved = jnp.pad(state / jnp.max(jnp.abs(state), (0, 3), keepdims=True), [(1, 0)] + [(0, 0)] * "
                "(state.ndim - 1))[:stages]",
                reported=SHIFT_JAX,
            ),
            "torchxla": Site(
                "sharding/layout.py",
                "moved = F.pad(state, (0, 0) * (state.ndim - 1) + (1, 0))[:stages]",
                "moved = F.pad(state / state.abs().amax((0, 3), keepdim=True), (0, 0) * (state.ndim - 1) + (1, 0))"
                "[:stages]",
            ),
        },
        rows=(Row("pipeline.shift", "all-reduce@pp", "5", "2·128·2", "induced activation-gather"),),
        why="A sum may stand in for a shift where only one stage's part is not zero.",
    ),
    Defect(
        name="state-less-its-mean",
        chapter="Statistics",
        what="the state loses its mean over stages, in float32, before it is shifted",
        setting=TP_PP,
        sites={
            "jax": Site(
                "sharding/layout.py",
                "moved = jnp.pad(state, [(1, 0)] + [(0, 0)] * (state.ndim - 1))[:stages]",
                "moved = jnp.pad(state - jnp.mean(state.astype(jnp.float32), 0, keepdims=True).astype(state.dtype), "
                "[(1, 0)] + [(0, 0)] * (state.ndim - 1))[:stages]",
                reported=SHIFT_JAX,
            )
        },
        rows=(Row("pipeline.shift", "all-reduce@pp", "5", "2·128·256·4", "induced activation-gather"),),
        why="It has as many elements as the state, and moves no stage's to the next.",
    ),
    Defect(
        name="values-by-maximum",
        chapter="Statistics",
        what="the values of a split cache are divided by their maximum over positions",
        setting=CP_TP,
        phase="decode",
        sites={
            "jax": Site(
                "decoder/attention.py",
                'return jnp.einsum("zbkgst,zbtkh->zbskgh", probs, v).reshape(q.shape)',
                'return jnp.einsum("zbkgst,zbtkh->zbskgh", probs, v / jnp.max(jnp.abs(v), (1, 2, 4), keepdims=True))'
                ".reshape(q.shape)",
            ),
            "torchxla": Site(
                "decoder/attention.py",
                'return torch.einsum("zbkgst,zbtkh->zbskgh", probs, v).reshape(q.shape)',
                'return torch.einsum("zbkgst,zbtkh->zbskgh", probs, v / v.abs().amax((1, 2, 4), keepdim=True))'
                ".reshape(q.shape)",
            ),
        },
        rows=(
            # Of 8 sequences and 4 query heads: maximum and sum in float32, the output of 32 in bf16; of 2 KV heads one
            # maximum each.
            Row(
                "layer.attention.core", "all-reduce@cp", "8", "1/4·8·4·4 + 1/4·8·4·4 + 1/4·8·4·32·2 + 1/4·2·2",
                {"inherent": "2·8·4·4 + 2·8·4·4 + 2·8·4·32·2", "induced activation-gather": "2·2·2"},
            ),
        ),
        why="The merge has a maximum of each head of each sequence; this one has none of a sequence.",
    ),
    Defect(
        name="keys-by-maximum",
        chapter="Statistics",
        what="keys are divided by their maximum over positions before they go around the ring",
        setting=CP_TP,
        sites={
            "jax": Site(
                "decoder/attention.py",
                _RING_JAX,
                _RING_JAX.replace("(q, k, v)", "(q, k / jnp.max(jnp.abs(k), (1, 2, 4), keepdims=True), v)"),
            )
        },
        rows=(Row("layer.attention.core", "all-reduce@cp", "2", "2·2", "induced activation-gather"),),
        why="A sum of parts that are zero elsewhere may stand in for the ring.",
    ),
    Defect(
        name="logits-less-their-maximum",
        chapter="Statistics",
        what="the logits lose their maximum before the choice",
        sites={
            "jax": Site(
                "sharding/layout.py",
                'return self.place(jnp.argmax(logits, axis=-1).astype(jnp.int32), "slots stages batch parts")',
                "return self.place(jnp.argmax(logits - jnp.max(logits, -1, keepdims=True), axis=-1).astype(jnp.int32), "
                '"slots stages batch parts")',
                reported=SAMPLED_JAX,
            ),
            "torchxla": Site(
                "sharding/layout.py",
                'return self.place(torch.argmax(logits, dim=-1).int(), "slots stages batch parts")',
                "return self.place(torch.argmax(logits - logits.amax(-1, keepdim=True), dim=-1).int(), "
                '"slots stages batch parts")',
            ),
        },
        rows=(Row("sample", "all-reduce@tp", "1", "3/2·4·2", "induced activation-gather"),),
        why="The winners are gathered, as the plan asks; what they are compared with is no winner.",
    ),
    Defect(
        name="state-shifted-twice",
        chapter="Sums, ticks and hops",
        what="the pipeline shifts a second state beside the first",
        setting=TP_PP,
        sites={
            "jax": Site(
                "sharding/layout.py",
                "moved = jnp.pad(state, [(1, 0)] + [(0, 0)] * (state.ndim - 1))[:stages]",
                "moved = (lambda x: jnp.pad(x, [(1, 0)] + [(0, 0)] * (x.ndim - 1))[:stages])(state) * "
                "self.place((lambda x: jnp.pad(x, [(1, 0)] + [(0, 0)] * (x.ndim - 1))[:stages])(jnp.tanh(state)), "
                "STREAM)",
                reported=SHIFT_JAX,
            ),
            "torchxla": Site(
                "sharding/layout.py",
                "moved = F.pad(state, (0, 0) * (state.ndim - 1) + (1, 0))[:stages]",
                "moved = F.pad(state, (0, 0) * (state.ndim - 1) + (1, 0))[:stages] * self.place(F.pad(torch.tanh(state)"
                ", (0, 0) * (state.ndim - 1) + (1, 0))[:stages], STREAM)",
            ),
        },
        rows=(
            Row(
                "pipeline.shift", "collective-permute@pp", "10", "1/2·2·128·256·2",
                {
                    "inherent": "4·1/2·2·128·256·2", "inflated bubble": "2·1/2·2·128·256·2",
                    "inflated other": "4·1/2·2·128·256·2",
                },
            ),
        ),
        why="The fifth tick of each is idle; the four others of the copy are in no tick that is.",
    ),
)  # fmt: skip
