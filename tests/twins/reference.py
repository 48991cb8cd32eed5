"""Hugging Face transformers' own models, on plain CPU: `python reference.py OUTDIR FAMILY…`.

For each family it writes OUTDIR/FAMILY: a checkpoint as the hub keeps them (config.json, sharded safetensors with their
index, tokenizer.json), a prompt of ids, and what transformers answers: logits and tokens of the prefill and of eight
cached decode steps; and the greedy answer to a prompt in words.  No wirediff code at all.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

BATCH, SEQ, STEPS, NEW_TOKENS = 8, 48, 8, 32
VOCAB = 512
TEXT = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8")
PROMPT = "The quick brown fox jumps over the lazy dog, and the License shall be governed by the laws of"

_COMMON = {
    "vocab_size": VOCAB,
    "num_hidden_layers": 4,
    "max_position_embeddings": 4096,
    "initializer_range": 0.1,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 1,
}
_DENSE = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 16}
_EXPERTS = {"hidden_size": 64, "num_attention_heads": 16, "num_experts_per_tok": 2}

FAMILIES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "llama": ("Llama", 27, _DENSE | {
        "num_key_value_heads": 8, "head_dim": 16,
        "rope_parameters": {"rope_type": "llama3", "rope_theta": 500_000.0, "factor": 8.0, "low_freq_factor": 1.0,
                            "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
    }),
    "qwen3": ("Qwen3", 27, _DENSE | {"num_key_value_heads": 4, "head_dim": 24, "tie_word_embeddings": True}),
    # 6 KV heads on tp4 and tp8: shards do not hold whole sets of copies.
    "phi3": ("Phi3", 36, {"hidden_size": 192, "intermediate_size": 256, "num_attention_heads": 24,
                         "num_key_value_heads": 6, "sliding_window": None}),
    "mixtral": ("Mixtral", 71, _EXPERTS | {"num_key_value_heads": 8, "intermediate_size": 64, "num_local_experts": 8,
                                          "sliding_window": None}),
    "qwen3_moe": ("Qwen3Moe", 98, _EXPERTS | {"num_key_value_heads": 4, "head_dim": 8, "moe_intermediate_size": 32,
                                             "num_experts": 16, "norm_topk_prob": True}),
    "qwen2_moe": ("Qwen2Moe", 16, _EXPERTS | {"num_key_value_heads": 8, "moe_intermediate_size": 32, "num_experts": 8,
                                             "shared_expert_intermediate_size": 64, "norm_topk_prob": False,
                                             "sliding_window": None}),
}  # fmt: skip
"""The class, a seed of 100 whose winners lead clearly, and the config's own words."""


def build_model(family: str, *, seed: int) -> Any:
    name, _, words = FAMILIES[family]
    torch.manual_seed(seed)
    config = getattr(transformers, f"{name}Config")(**_COMMON, **words)
    net = getattr(transformers, f"{name}ForCausalLM")(config).eval().float()
    for name, weight in net.named_parameters():
        if "norm" in name:  # ones would hide a norm that is left out
            weight.copy_(1 + 0.2 * torch.randn_like(weight))
        if name.endswith("bias"):  # so would zeros
            weight.copy_(0.2 * torch.randn_like(weight))
    return net


def tokenizer() -> Tokenizer:
    """A byte-pair tokenizer of `VOCAB` tokens, which puts <s> before a text, as Llama's does."""
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet, show_progress=False
    )
    built.train_from_iterator([TEXT], trainer)
    built.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return built


def prompts(*, seed: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(2, VOCAB, (BATCH, SEQ)))


def answers(net: Any, tokens: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Logits and tokens of the prefill and of the decode steps."""
    past, scored, chosen = None, [], []
    for _ in range(1 + STEPS):
        result = net(tokens, past_key_values=past, use_cache=True)
        past = result.past_key_values
        scored.append(result.logits[:, -1])
        chosen.append(scored[-1].argmax(-1))
        tokens = chosen[-1][:, None]
    return torch.stack(scored).numpy(), torch.stack(chosen).numpy().astype(np.int32)


def text_answer(net: Any, words: Tokenizer) -> dict[str, Any]:
    """What `generate` of transformers says behind `PROMPT`."""
    ids = words.encode(PROMPT).ids
    generated = net.generate(
        torch.tensor([ids]),
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
    )
    tokens = generated.sequences[0].tolist()
    text = words.decode(tokens).removeprefix(words.decode(ids))
    leads = [
        float((best[0] - best[1]) / score.abs().max()) for score in generated.scores for best in score.topk(2).values
    ]
    return {"prompt": PROMPT, "prompt_tokens": ids, "tokens": tokens[len(ids) :], "text": text, "lead": min(leads)}


@torch.no_grad()
def main(out: Path, family: str) -> None:
    seed = FAMILIES[family][1]
    net, words = build_model(family, seed=seed), tokenizer()
    folder = out / family / "checkpoint"
    net.save_pretrained(folder, max_shard_size="200KB")
    words.save(str(folder / "tokenizer.json"))
    tokens = prompts(seed=seed)
    logits, chosen = answers(net, tokens)
    np.save(out / family / "prompt.npy", tokens.numpy().astype(np.int32))
    np.save(out / family / "logits.npy", logits)
    np.save(out / family / "tokens.npy", chosen)
    (out / family / "text.json").write_text(json.dumps(text_answer(net, words)))


if __name__ == "__main__":
    for requested in sys.argv[2:] or FAMILIES:
        main(Path(sys.argv[1]), requested)
