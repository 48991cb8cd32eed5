"""The closed list of the parts of a model that can cause communication."""

SCOPES = (
    "embed",
    "layer.attention.qkv",
    "layer.attention.core",
    "layer.attention.out",
    "layer.mlp.up",
    "layer.mlp.down",
    "layer.moe.route",
    "layer.moe.dispatch",
    "layer.moe.experts",
    "layer.moe.combine",
    "pipeline.shift",
    "pipeline.collect",
    "norm",
    "head",
    "sample",
)
"""The same words in the contract, in both twins and in every report."""
