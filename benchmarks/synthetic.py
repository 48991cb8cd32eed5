"""A checkpoint of several gigabytes, made here: real widths, few layers, numbers that mean nothing."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from meshes.checkpoint.tables import TABLES
from meshes.models import Model, model
from meshes.weights import dims_of

FILE_BYTES = 10**9
"""Of one file, about; Hugging Face splits at 5 GB."""

ONES = 0x3F80
"""bf16's 1; what is written is this with random lower bits."""


def write(folder: Path, *, name: str, layers: int) -> Model:
    """The folder of a preset with so many layers, bf16."""
    some = replace(model(name), layers=layers)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(_config(some)))
    shapes = {
        tensor: source[0].shape(some)
        for source in (TABLES[some.family][weight] for weight in dims_of(some))
        for tensor in source[0].each(some)
    }
    groups: list[dict[str, tuple[int, ...]]] = [{}]
    for tensor, shape in shapes.items():
        if sum(map(prod, groups[-1].values())) * 2 > FILE_BYTES:
            groups.append({})
        groups[-1][tensor] = shape
    files = {f"model-{at + 1:05}-of-{len(groups):05}.safetensors": group for at, group in enumerate(groups)}
    for file, group in files.items():
        _write_file(folder / file, group)
    weight_map = {tensor: file for file, group in files.items() for tensor in group}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    return some


def _config(some: Model) -> dict[str, Any]:
    config: dict[str, Any] = {
        "model_type": some.family,
        "vocab_size": some.vocab,
        "hidden_size": some.embed,
        "intermediate_size": some.ffn or some.expert_ffn,
        "num_hidden_layers": some.layers,
        "num_attention_heads": some.heads,
        "num_key_value_heads": some.kv_heads,
        "head_dim": some.head_dim,
        "rms_norm_eps": some.norm_eps,
        "rope_theta": some.rope_theta,
        "tie_word_embeddings": some.tied,
    }
    if some.rope_scaling:
        scaling = asdict(some.rope_scaling)
        longest = scaling.pop("original_seq")
        config["rope_scaling"] = {"rope_type": "llama3", "original_max_position_embeddings": longest, **scaling}
    if some.experts:
        config |= {
            "num_local_experts": some.experts,
            "num_experts_per_tok": some.experts_per_token,
            "moe_intermediate_size": some.expert_ffn,
            "norm_topk_prob": some.renormalized,
        }
    return config


def _write_file(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    header, end = {}, 0
    for tensor, shape in shapes.items():
        header[tensor] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + 2 * prod(shape)]}
        end += 2 * prod(shape)
    text = json.dumps(header).encode()
    block = (ONES + np.random.default_rng(0).integers(0, 2**7, 2**23)).astype(np.uint16).tobytes()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for start in range(0, end, len(block)):
            file.write(block[: end - start])
