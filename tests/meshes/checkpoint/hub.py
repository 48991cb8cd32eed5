"""Checkpoints as they are published, written by hand: config.json, names and shapes of tensors, and what they mean.

No table of wirediff is used here.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

from meshes.case import Case
from meshes.checkpoint.config import model_of
from meshes.mesh_argument import read_mesh
from meshes.models import Model

State = dict[str, np.ndarray]

WIDTHS: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "intermediate_size": 16,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10_000.0,
    "hidden_act": "silu",
    "torch_dtype": "bfloat16",
    "max_position_embeddings": 128,
}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen3": {},
    "phi3": {},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "norm_topk_prob": True},
    "qwen2_moe": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 8,
        "shared_expert_intermediate_size": 12,
    },
}


def config_of(family: str, **changes: Any) -> dict[str, Any]:
    return {"model_type": family, **WIDTHS, **CONFIGS[family], **changes}


def state_of(config: dict[str, Any]) -> State:
    """Random tensors."""
    random = np.random.default_rng(7)
    return {name: random.standard_normal(shape, dtype=np.float32) for name, shape in shapes_of(config).items()}


def shapes_of(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of tensors as in the published checkpoints of a family."""
    family, embed, layers = config["model_type"], config["hidden_size"], config["num_hidden_layers"]
    wide, narrow = (config[f"num_{which}_heads"] * config["head_dim"] for which in ("attention", "key_value"))
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config["vocab_size"], embed)}
    for layer in range(layers):
        at = f"model.layers.{layer}"
        shapes |= {f"{at}.input_layernorm.weight": (embed,), f"{at}.post_attention_layernorm.weight": (embed,)}
        shapes |= {f"{at}.self_attn.o_proj.weight": (embed, wide)}
        if family == "phi3":
            shapes |= {f"{at}.self_attn.qkv_proj.weight": (wide + 2 * narrow, embed)}
        else:
            shapes |= {
                f"{at}.self_attn.{name}_proj.weight": (rows, embed)
                for name, rows in (("q", wide), ("k", narrow), ("v", narrow))
            }
        if family.startswith("qwen3"):
            shapes |= {f"{at}.self_attn.{name}_norm.weight": (config["head_dim"],) for name in "qk"}
        if family == "qwen2_moe":
            shapes |= {
                f"{at}.self_attn.{name}_proj.bias": (rows,)
                for name, rows in (("q", wide), ("k", narrow), ("v", narrow))
            }
        shapes |= _feed_forward(config, at)
    shapes |= {"model.norm.weight": (embed,)}
    if not config.get("tie_word_embeddings"):
        shapes |= {"lm_head.weight": (config["vocab_size"], embed)}
    return shapes


def _feed_forward(config: dict[str, Any], at: str) -> dict[str, tuple[int, ...]]:
    family, embed, ffn = config["model_type"], config["hidden_size"], config["intermediate_size"]
    if family == "phi3":
        return {f"{at}.mlp.gate_up_proj.weight": (2 * ffn, embed), f"{at}.mlp.down_proj.weight": (embed, ffn)}
    if family == "mixtral":
        return {f"{at}.block_sparse_moe.gate.weight": (4, embed)} | {
            f"{at}.block_sparse_moe.experts.{expert}.{name}.weight": (embed, ffn) if name == "w2" else (ffn, embed)
            for expert in range(4)
            for name in ("w1", "w2", "w3")
        }
    if family in ("llama", "qwen3"):
        return _gated(f"{at}.mlp", ffn, embed)
    tensors: dict[str, tuple[int, ...]] = {f"{at}.mlp.gate.weight": (4, embed)}
    for expert in range(4):
        tensors |= _gated(f"{at}.mlp.experts.{expert}", config["moe_intermediate_size"], embed)
    if family == "qwen2_moe":
        tensors |= _gated(f"{at}.mlp.shared_expert", config["shared_expert_intermediate_size"], embed)
        tensors |= {f"{at}.mlp.shared_expert_gate.weight": (1, embed)}
    return tensors


def _gated(at: str, ffn: int, embed: int) -> dict[str, tuple[int, ...]]:
    return {
        f"{at}.gate_proj.weight": (ffn, embed),
        f"{at}.up_proj.weight": (ffn, embed),
        f"{at}.down_proj.weight": (embed, ffn),
    }


def weights_of(config: dict[str, Any], state: State, case: Case) -> State:
    """The same numbers as the twins name and stack them: [layers of a stage, stages, ...]."""
    family, stages, layers = config["model_type"], case.mesh.pp, config["num_hidden_layers"]
    heads, narrow, size = config["num_attention_heads"], config["num_key_value_heads"], config["head_dim"]
    copies = case.kv_heads // narrow

    def stacked(each: Callable[[str], np.ndarray]) -> np.ndarray:
        rows = [each(f"model.layers.{layer}.") for layer in range(layers)]
        return np.stack([np.stack(rows[at :: layers // stages]) for at in range(layers // stages)])

    def split(kernel: np.ndarray, count: int) -> np.ndarray:  # [count * size, embed] or [count * size]
        heads = kernel.reshape(count, size, *kernel.shape[1:])
        return np.swapaxes(heads, 1, 2) if kernel.ndim > 1 else heads  # [count, embed, size] or [count, size]

    def part(at: str, name: str, kind: str = "weight") -> np.ndarray:
        if family != "phi3":
            return state[f"{at}self_attn.{name}_proj.{kind}"]
        ends = np.cumsum([0, heads * size, narrow * size, narrow * size])
        return state[f"{at}self_attn.qkv_proj.weight"][ends["qkv".index(name)] : ends["qkv".index(name) + 1]]

    tensors = {
        "embedding.table": state["model.embed_tokens.weight"],
        "norm.scale": state["model.norm.weight"],
        "layers.attention_norm.scale": stacked(lambda at: state[f"{at}input_layernorm.weight"]),
        "layers.mlp_norm.scale": stacked(lambda at: state[f"{at}post_attention_layernorm.weight"]),
        "layers.attention.q": stacked(lambda at: split(part(at, "q"), heads)),
        "layers.attention.o": stacked(lambda at: state[f"{at}self_attn.o_proj.weight"].T.reshape(heads, size, -1)),
    }
    for name in "kv":
        tensors[f"layers.attention.{name}"] = stacked(
            lambda at, name=name: np.repeat(split(part(at, name), narrow), copies, axis=0)
        )
    if family == "qwen2_moe":
        tensors["layers.attention.q_bias"] = stacked(lambda at: split(part(at, "q", "bias"), heads))
        for name in "kv":
            tensors[f"layers.attention.{name}_bias"] = stacked(
                lambda at, name=name: np.repeat(split(part(at, name, "bias"), narrow), copies, axis=0)
            )
    if family.startswith("qwen3"):
        for name in "qk":
            tensors[f"layers.attention.{name}_norm.scale"] = stacked(
                lambda at, name=name: state[f"{at}self_attn.{name}_norm.weight"]
            )
    if not config.get("tie_word_embeddings"):
        tensors["head.table"] = state["lm_head.weight"].T
    return tensors | _feed_forward_weights(config, state, stacked)


def _feed_forward_weights(
    config: dict[str, Any], state: State, stacked: Callable[[Callable[[str], np.ndarray]], np.ndarray]
) -> State:
    family, ffn = config["model_type"], config["intermediate_size"]
    if family == "phi3":
        return {
            "layers.mlp.gate": stacked(lambda at: state[f"{at}mlp.gate_up_proj.weight"][:ffn].T),
            "layers.mlp.up": stacked(lambda at: state[f"{at}mlp.gate_up_proj.weight"][ffn:].T),
            "layers.mlp.down": stacked(lambda at: state[f"{at}mlp.down_proj.weight"].T),
        }
    spelled = {"gate": "gate_proj", "up": "up_proj", "down": "down_proj"}
    if family in ("llama", "qwen3"):
        return {
            f"layers.mlp.{ours}": stacked(lambda at, theirs=theirs: state[f"{at}mlp.{theirs}.weight"].T)
            for ours, theirs in spelled.items()
        }
    room = "block_sparse_moe" if family == "mixtral" else "mlp"
    each = {"gate": "w1", "up": "w3", "down": "w2"} if family == "mixtral" else spelled
    tensors = {"layers.moe.router": stacked(lambda at: state[f"{at}{room}.gate.weight"].T)}
    for ours, theirs in each.items():
        tensors[f"layers.moe.{ours}"] = stacked(
            lambda at, theirs=theirs: np.stack([state[f"{at}{room}.experts.{n}.{theirs}.weight"].T for n in range(4)])
        )
    if family == "qwen2_moe":
        tensors["layers.shared_gate"] = stacked(lambda at: state[f"{at}mlp.shared_expert_gate.weight"][0])
        for ours, theirs in spelled.items():
            tensors[f"layers.shared.{ours}"] = stacked(
                lambda at, theirs=theirs: state[f"{at}mlp.shared_expert.{theirs}.weight"].T
            )
    return tensors


def write(folder: Path, config: dict[str, Any], state: State, *, dtype: str = "f32", files: int = 1) -> Path:
    """A folder as the hub has it: one file, or several with an index."""
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    kind = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[dtype]
    kept = {name: np.ascontiguousarray(array.astype(kind)) for name, array in state.items()}
    names = sorted(kept)
    if files == 1:
        save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
        return folder
    weight_map = {}
    for at in range(files):
        file = f"model-{at + 1:05}-of-{files:05}.safetensors"
        part = {name: kept[name] for name in names[at::files]}
        save_file(part, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    index = {"metadata": {"total_size": sum(each.nbytes for each in kept.values())}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def some_model(config: dict[str, Any]) -> Model:
    return model_of(config, name="some")


def case_on(mesh: str, model: Model, **words: Any) -> Case:
    plan = read_mesh(mesh)
    return Case(plan=plan, model=model, microbatches=2 if plan.mesh.pp > 1 else 1, **words)
