"""Hugging Face transformers' own Llama, on plain CPU: `python reference.py OUTDIR`.

Writes its random weights (hf.npz), a prompt, and what it answers: logits and tokens of the prefill and of eight
cached decode steps.  No wirediff code but the preset's numbers.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from meshes.models import model

BATCH, SEQ, STEPS = 8, 48, 8
SEED = 1
"""Of 80 seeds the one whose winners lead most: by 0.8 % of the largest logit at least."""


def llama() -> LlamaForCausalLM:
    tiny = model("tiny")
    scaling = tiny.rope_scaling
    assert scaling is not None
    config = LlamaConfig(
        vocab_size=tiny.vocab,
        hidden_size=tiny.embed,
        intermediate_size=tiny.ffn,
        num_hidden_layers=tiny.layers,
        num_attention_heads=tiny.heads,
        num_key_value_heads=tiny.kv_heads,
        head_dim=tiny.head_dim,
        rms_norm_eps=tiny.norm_eps,
        tie_word_embeddings=tiny.tied,
        max_position_embeddings=4096,
        initializer_range=0.1,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": tiny.rope_theta,
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_seq,
        },
    )
    net = LlamaForCausalLM(config).eval().float()
    for name, weight in net.named_parameters():
        if "norm" in name:  # ones would hide a norm that is left out
            weight.copy_(1 + 0.2 * torch.randn_like(weight))
    return net


@torch.no_grad()
def main(out: Path) -> None:
    torch.manual_seed(SEED)
    net = llama()
    tokens = torch.randint(0, net.config.vocab_size, (BATCH, SEQ))
    np.savez(out / "hf.npz", **{name: weight.numpy() for name, weight in net.state_dict().items()})
    np.save(out / "prompt.npy", tokens.numpy().astype(np.int32))
    past, scored, chosen = None, [], []
    for _ in range(1 + STEPS):
        found = net(tokens, past_key_values=past, use_cache=True)
        past = found.past_key_values
        scored.append(found.logits[:, -1])
        chosen.append(scored[-1].argmax(-1))
        tokens = chosen[-1][:, None]
    np.save(out / "logits.npy", torch.stack(scored).numpy())
    np.save(out / "tokens.npy", torch.stack(chosen).numpy().astype(np.int32))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
