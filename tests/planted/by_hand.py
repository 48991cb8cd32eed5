"""Defects of collectives that are written by hand, in JAX's step of style `explicit`, which sends the plan and no more.

The numbers: 4·128·256·2 is what one sum of dp2tp4 carries, 8·64·2·32·2 the keys (or the values) of a device of cp2tp4,
2·8·40·256·2 the places of ep4tp2.
"""

from dataclasses import replace

from tests.planted.defect import CP_TP, DP_TP, DP_TP_SP, EP_TP, Defect, Row, Setting, Site
from tests.planted.weights import DOWN_SUM_JAX


def _explicit(setting: Setting) -> Setting:
    return replace(setting, style="explicit")


_EXPLICIT = "sharding/explicit.py"
_SUM = "return self._guarded(lambda x: self._summed(x, dim=self._scattered), x) if split else x"

DEFECTS = (
    Defect(
        name="exchanged-sum",
        chapter="By hand",
        what="the parts of the sum of `mlp.down` are exchanged, added up where they come, and gathered",
        setting=_explicit(DP_TP),
        sites={
            "jax": Site(
                _EXPLICIT,
                _SUM,
                "return (jax.lax.all_gather(jnp.sum(jax.lax.all_to_all(jnp.stack(jnp.split(x, 4, axis=2)), SHARDS, 0, "
                "0, tiled=True), axis=0), SHARDS, axis=2, tiled=True) if over == 'ffn' else self._summed(x, dim=None))",
            )
        },
        rows=(
            Row("layer.mlp.down", "all-to-all@tp", "2", "3/4·4·128·256·2", "inherent"),
            Row("layer.mlp.down", "all-gather@tp", "2", "3/4·4·128·256·2", "inherent"),
        ),
        gone=(("layer.mlp.down", "all-reduce@tp"),),
        why="A scatter in another form, and the gather that completes it: the two halves of the all-reduce.",
    ),
    Defect(
        name="sum-of-one-replica",
        chapter="By hand",
        what="only the first replica adds up what `mlp.down` gives",
        setting=_explicit(DP_TP),
        sites={
            "jax": Site(
                _EXPLICIT,
                _SUM,
                "return (jax.lax.cond(jax.lax.axis_index('dp') == 0, lambda x: self._summed(x, dim=None), lambda x: x, "
                "x) if over == 'ffn' else self._summed(x, dim=None))",
            )
        },
        rows=(Row("layer.mlp.down", "all-reduce@tp", "2", "1/2·3/2·4·128·256·2", "inherent"),),
        unserved={"layer.mlp.down all-reduce@tp": "2·1/2·3/2·4·128·256·2"},
        why="The branch is known of each device: four of eight send, and the other half of the row is missing.",
    ),
    Defect(
        name="sum-in-f8",
        chapter="By hand",
        what="the sum of `mlp.down` is added up in 8 bits",
        setting=_explicit(DP_TP),
        sites={
            "jax": Site(
                _EXPLICIT,
                _SUM,
                "return (jax.lax.psum(x.astype(jnp.float8_e4m3fn), 'tp').astype(x.dtype) if over == 'ffn' else "
                "self._summed(x, dim=None))",
            )
        },
        rows=(Row("layer.mlp.down", "all-reduce@tp", "2", "3/2·4·128·256", "inherent"),),
        unserved={"layer.mlp.down all-reduce@tp": "2·3/2·4·128·256"},
        why="libtpu packs four of them in a number of 32 bits, which its reduction takes apart: they are floats. Half "
        "of the bytes of the plan's bf16 are not sent.",
    ),
    Defect(
        name="sum-in-s8",
        chapter="By hand",
        what="the sum of `mlp.down` is added up in integers of 8 bits",
        setting=_explicit(DP_TP),
        sites={
            "jax": Site(
                _EXPLICIT,
                _SUM,
                "return (jax.lax.psum(x.astype(jnp.int8), 'tp').astype(x.dtype) if over == 'ffn' else "
                "self._summed(x, dim=None))",
            )
        },
        rows=(Row("layer.mlp.down", "all-reduce@tp", "2", "3/2·4·128·256", "inherent"),),
        unserved={"layer.mlp.down all-reduce@tp": "2·3/2·4·128·256"},
        why="libtpu packs four of them in a number of 32 bits. Integers of exactly the row's elements are its numbers, "
        "quantized: no ids have as many. Half of the bytes of the plan's bf16 are not sent.",
    ),
    Defect(
        name="gathered-sum",
        chapter="By hand",
        what="the parts of the sum of `mlp.down` are gathered, and added up where they come",
        setting=_explicit(DP_TP),
        sites={
            "jax": Site(
                _EXPLICIT,
                _SUM,
                "return (jnp.sum(jax.lax.all_gather(x, SHARDS), axis=0) if over == 'ffn' else "
                "self._summed(x, dim=None))",
                reported=DOWN_SUM_JAX,
            )
        },
        rows=(
            Row(
                "layer.mlp.down", "all-gather@tp", "2", "3/4·4·4·128·256·2",
                {
                    "inherent": "2·3/2·4·128·256·2",
                    "inflated replicated": "2·3/4·4·4·128·256·2 − 2·3/2·4·128·256·2",
                },
            ),
        ),
        gone=(("layer.mlp.down", "all-reduce@tp"),),
        why="Every device gets the parts of all four, where their sum would do.",
    ),
    Defect(
        name="exchange-by-permutes",
        chapter="By hand",
        what="places go to their experts, and back, by a permute to each other device",
        setting=_explicit(EP_TP),
        sites={
            "jax": Site(
                _EXPLICIT,
                "sent = functools.partial(jax.lax.all_to_all, axis_name=EXPERTS, split_axis=cut, concat_axis=joined, "
                "tiled=True)",
                "sent = lambda x: jnp.concatenate([jax.lax.ppermute(part, EXPERTS, [(at, (at + far) % 4) for at in "
                "range(4)]) if far else part for far, part in ((far, jax.lax.dynamic_slice_in_dim(x, "
                "(jax.lax.axis_index(EXPERTS) + far) % 4 * (x.shape[cut] // 4), x.shape[cut] // 4, cut)) for far in "
                "range(4))], axis=joined)",
            )
        },
        rows=(
            Row("layer.moe.dispatch", "collective-permute@ep", "6", "1/4·2·8·40·256·2", "inherent"),
            Row("layer.moe.combine", "collective-permute@ep", "6", "1/4·2·8·40·256·2", "inherent"),
        ),
        gone=(("layer.moe.dispatch", "all-to-all@ep"), ("layer.moe.combine", "all-to-all@ep")),
        why="Three permutes to three others, each with a fourth of the places: what an all-to-all sends.",
    ),
    Defect(
        name="weights-for-tokens",
        chapter="By hand",
        what="a block gathers its scaled weights, where the plan gathers tokens",
        setting=_explicit(DP_TP_SP),
        sites={
            "jax": Site(
                "decoder/layers.py",
                "x = layout.gather_sequence(x)",
                'return layout.reduce_output(jnp.einsum("zbsf,zfd->zbsd", jnp.einsum("zbsd,zdf->zbsf", x, '
                'jax.lax.all_gather(self.up[...] * 1.5, "tp", axis=2, tiled=True)).reshape(1, 4, 128, 256), '
                "self.down[...]), over=self.ffn)",
            )
        },
        rows=(
            Row("layer.mlp.up", "all-gather@tp", "2", "3/4·256·1024·2", "induced weight-gather"),
            Row("layer.mlp.up", "reduce-scatter@tp", "2", "3/4·4·128·256·2", "induced activation-gather"),
        ),
        gone=(("layer.mlp.down", "reduce-scatter@tp"),),
        unserved={
            "layer.mlp.up all-gather@tp": "2·3/4·4·128·256·2",
            "layer.mlp.down reduce-scatter@tp": "2·3/4·4·128·256·2",
        },
        why="A value that is computed from weights alone is a weight, and serves no row of tokens. The sum is in the "
        "scope of `mlp.up`, which has none.",
    ),
    Defect(
        name="keys-sent-twice",
        chapter="By hand",
        what="each hop of the ring sends the keys a second time",
        setting=_explicit(CP_TP),
        sites={
            "jax": Site("decoder/attention.py", "k, v = hop(k), hop(v)", "k, v = hop(k) * 2 - hop(jnp.tanh(k)), hop(v)")
        },
        rows=(
            Row(
                "layer.attention.core", "collective-permute@cp", "6", "8·64·2·32·2",
                {"inherent": "4·8·64·2·32·2", "inflated other": "2·8·64·2·32·2"},
            ),
        ),
        why="The loop of 2 trips is that over the layers, not the ring's: what keys and values need is served. What is "
        "sent again has been to no other rank: it closes no ring.",
    ),
    Defect(
        name="places-summed",
        chapter="By hand",
        what="the experts' partial sums are added up place by place, before they are combined",
        setting=_explicit(EP_TP),
        sites={
            "jax": Site(
                "decoder/moe.py",
                "layout, back = self.layout, self.layout.from_experts(partial)",
                'layout, back = self.layout, self.layout.from_experts(jax.lax.psum(partial, "tp") / 2)',
            )
        },
        rows=(
            Row(
                "layer.moe.combine", "all-reduce@tp", "4", "1/2·2·8·40·256·2 + 1/2·2·128·256·2",
                {"inherent": "2·2·128·256·2", "inflated other": "2·2·8·40·256·2"},
            ),
        ),
        why="A token has several places; the plan adds up tokens.",
    ),
    Defect(
        name="exchanged-without-a-sum",
        chapter="By hand",
        what="the sum of `mlp.down` is left out, and its parts are exchanged and exchanged back",
        setting=_explicit(DP_TP),
        sites={
            "jax": Site(
                _EXPLICIT,
                _SUM,
                "return (jax.lax.all_to_all(jnp.tanh(jax.lax.all_to_all(x, 'tp', 2, 3, tiled=True)), 'tp', 3, 2, "
                "tiled=True) if over == 'ffn' else self._summed(x, dim=None))",
                reported=DOWN_SUM_JAX,
            )
        },
        rows=(Row("layer.mlp.down", "all-to-all@tp", "4", "3/4·4·128·256·2", "induced layout-change"),),
        gone=(("layer.mlp.down", "all-reduce@tp"),),
        unserved={"layer.mlp.down all-reduce@tp": "2·3/2·4·128·256·2"},
        why="Two exchanges send what the sum would, and add nothing up: they serve no row.",
    ),
    Defect(
        name="scatter-by-permutes",
        chapter="By hand",
        what="the parts of the sum of `mlp.down` go to each other device by a permute, and are added up there",
        setting=_explicit(DP_TP_SP),
        sites={
            "jax": Site(
                _EXPLICIT,
                _SUM,
                "return ((lambda parts, at: sum(jax.lax.ppermute(jax.lax.dynamic_index_in_dim(parts, (at + far) % 4, "
                "keepdims=False), 'tp', [(each, (each + far) % 4) for each in range(4)]) if far else "
                "jax.lax.dynamic_index_in_dim(parts, at, keepdims=False) for far in range(4)))(jnp.stack(jnp.split(x, "
                "4, axis=2)), jax.lax.axis_index('tp')) if over == 'ffn' else self._summed(x, dim=self._scattered))",
            )
        },
        rows=(Row("layer.mlp.down", "collective-permute@tp", "6", "1/4·4·128·256·2", "inherent"),),
        gone=(("layer.mlp.down", "reduce-scatter@tp"),),
        why="An all-to-all in three permutes; of partial sums that are added up where they come it is a scatter.",
    ),
    Defect(
        name="sum-in-two-dtypes",
        chapter="By hand",
        what="the sum of `mlp.down` is made a second time, in float32",
        setting=_explicit(DP_TP),
        sites={
            "jax": Site(
                _EXPLICIT,
                _SUM,
                "return (jax.lax.psum(x, 'tp') * jnp.tanh(jax.lax.psum(x.astype(jnp.float32) * 3, "
                "'tp')).astype(x.dtype) if over == 'ffn' else self._summed(x, dim=None))",
                reported=DOWN_SUM_JAX,
            )
        },
        rows=(
            Row(
                "layer.mlp.down", "all-reduce@tp", "4", "1/2·3/2·4·128·256·2 + 1/2·3/2·4·128·256·4",
                {
                    "inherent": "2·3/2·4·128·256·2", "inflated dtype": "2·3/2·4·128·256·2",
                    "inflated other": "2·3/2·4·128·256·2",
                },
            ),
        ),
        why="Half of the bytes in float32 are of its width; what is left are two sums, of which the row has one.",
    ),
    Defect(
        name="places-gathered",
        chapter="By hand",
        what="each expert gathers the places of all, and keeps its own; so do the tokens",
        setting=_explicit(EP_TP),
        phase="decode",
        sites={
            "jax": Site(
                _EXPLICIT,
                "sent = functools.partial(jax.lax.all_to_all, axis_name=EXPERTS, split_axis=cut, concat_axis=joined, "
                "tiled=True)",
                "sent = lambda x: (lambda all: jax.lax.dynamic_slice_in_dim(all, jax.lax.axis_index(EXPERTS) * "
                "(all.shape[cut] // 4), all.shape[cut] // 4, cut))(jax.lax.all_gather(x, EXPERTS, axis=joined, "
                "tiled=True))",
                reported=(
                    "decoder/moe.py",
                    'return self.layout.to_experts(jnp.einsum("zgtec,zgtd->zegcd", table, tokens))',
                ),
            )
        },
        # A group of 2 tokens, which has C = ⌈1.25·2·2/8⌉ = 1 place at each of 8 experts.
        rows=tuple(
            Row(
                f"layer.moe.{part}", "all-gather@ep", "2", "3/4·4·8·256·2",
                {"inherent": "2·3/4·8·256·2", "inflated replicated": "3·2·3/4·8·256·2"},
            )
            for part in ("dispatch", "combine")
        ),
        gone=(("layer.moe.dispatch", "all-to-all@ep"), ("layer.moe.combine", "all-to-all@ep")),
        why="Each of four devices gets what the four have, where its own part would do.",
    ),
)  # fmt: skip
