"""Defects of pins that are missing, and missed: the partitioner then finds another way.

The numbers: as of `weights`; where tp splits the stream, 32 of a sequence's 128 tokens are a device's.  With experts 2
sequences of 128 tokens a device, 8 experts with 40 places each; ep = 4: an exchange or a gather has the factor 3/4.
"""

from tests.planted.defect import DP_TP_SP, EP_TP, Defect, Row, Site
from tests.planted.weights import QKV_JAX, QKV_TORCH

_TOKENS = "return self.place(self.place(x, STREAM), TOKENS)"
_PLACES = 'return self.place(self.place(x, "stages _ groups _ embed"), "stages experts routed _ embed")'

DEFECTS = (
    Defect(
        name="no-pin-of-tokens",
        chapter="Missing pins",
        what="the tokens that a block gathers are not pinned",
        setting=DP_TP_SP,
        sites={
            "jax": Site("sharding/layout.py", _TOKENS, "return x", reported=QKV_JAX),
            "torchxla": Site("sharding/layout.py", _TOKENS, "return x", reported=QKV_TORCH),
        },
        rows=(
            # The tokens for v; the weights of q (16 heads) and of k (8).
            Row(
                "layer.attention.qkv",
                "all-gather@tp",
                "6",
                "1/3·3/4·4·128·256·2 + 1/3·3/4·256·24·32·2",
                {"inherent": "2·3/4·4·128·256·2", "induced weight-gather": "2·3/4·256·24·32·2"},
            ),
            # q and k, in the two halves that rope makes, from split tokens to split heads.
            Row(
                "layer.attention.qkv",
                "all-to-all@tp",
                "8",
                "1/2·3/4·4·32·16·16·2 + 1/2·3/4·4·32·8·16·2",
                "induced layout-change",
            ),
        ),
        why="The row is served by one gather of the tokens; the weights travel, and what they make, besides.",
    ),
    Defect(
        name="no-pin-of-places",
        chapter="Missing pins",
        what="the experts' places are pinned after they are sent, and not before",
        setting=EP_TP,
        sites={
            "jax": Site(
                "sharding/layout.py",
                _PLACES,
                'return self.place(x, "stages experts routed _ embed")',
                reported=(
                    "decoder/moe.py",
                    'return self.layout.to_experts(jnp.einsum("zgtec,zgtd->zegcd", table, tokens))',
                ),
            ),
            "torchxla": Site(
                "sharding/layout.py",
                _PLACES,
                'return self.place(x, "stages experts routed _ embed")',
                reported=(
                    "decoder/moe.py",
                    'return self.layout.to_experts(torch.einsum("zgtec,zgtd->zegcd", table, tokens))',
                ),
            ),
        },
        rows=(
            # The table of who has which place, to the experts; and all tokens to all.
            Row("layer.moe.dispatch", "all-to-all@ep", "2", "3/4·2·128·8·40·2", "induced layout-change"),
            Row(
                "layer.moe.dispatch",
                "all-gather@ep",
                "2",
                "3/4·8·128·256·2",
                {
                    "inherent": "2·3/4·2·8·40·256·2",
                    "inflated replicated": "2·3/4·8·128·256·2 − 2·3/4·2·8·40·256·2",
                },
            ),
        ),
        why="All tokens, of which each expert keeps its own, stand in for their places, and are more than they. The "
        "table has half of the places' elements, and is no part of them.",
    ),
)
