"""Small random models of transformers, as it saves them and as it holds them: `python saved.py OUTDIR`.

No wirediff code: OUTDIR/<family>/ is what `save_pretrained` wrote, OUTDIR/<family>.npz its state dict.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoModelForCausalLM

WIDTHS = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 8, "num_experts": 4}
FAMILIES = {
    "llama": {"tie_word_embeddings": True},
    "qwen3": {"head_dim": 8},
    "phi3": {},
    "mixtral": {"num_local_experts": 4},
    "qwen3_moe": {"head_dim": 8, **EXPERTS},
    "qwen2_moe": {"shared_expert_intermediate_size": 12, **EXPERTS},
}


def main(out: Path) -> None:
    torch.manual_seed(0)
    for family, more in FAMILIES.items():
        net = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **WIDTHS, **more)).float()
        for weight in net.parameters():  # norms of one and biases of nought would hide what is left out
            weight.data.normal_()
        net.save_pretrained(out / family, max_shard_size="10KB")
        np.savez(out / f"{family}.npz", **{name: weight.numpy() for name, weight in net.state_dict().items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
