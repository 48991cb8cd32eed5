"""What transformers answers on plain CPU: `python transformers_answers.py OUT FAMILY…`.

For each family and each rotary embedding, its `own` and `plain` (theta 1,000,000 without scaling), it writes in
OUT/FAMILY-ROPE: case.json, weights.npz (by the names of `meshes.weights`), prompt.npy, and what is right: right.npz,
logits and tokens of a prefill and eight steps.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from meshes.case import Case
from meshes.checkpoint import from_huggingface
from meshes.checkpoint.config import model_of
from tests.twins.reference import BATCH, FAMILIES, SEQ, STEPS, answers, build_model, prompts


@torch.no_grad()
def main(out: Path, family: str, rope: str) -> None:
    seed = FAMILIES[family][1]
    net = build_model(family, seed=seed)
    model = model_of(json.loads(net.config.to_json_string()), name=f"tiny-{family}")
    if rope == "plain":
        model = replace(model, rope_theta=1e6, rope_scaling=None)
        config = type(net.config)(
            **net.config.to_dict() | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
        )
        plain = type(net)(config).eval().float()
        plain.load_state_dict(net.state_dict())
        net = plain
    tokens = prompts(seed=seed)
    logits, chosen = answers(net, tokens)
    case = Case.read("dp2tp4", shapes=model, dtype="f32", batch=BATCH, seq=SEQ, room=STEPS)
    out.mkdir(parents=True)
    (out / "case.json").write_text(case.to_json())
    np.savez(
        out / "weights.npz",
        **from_huggingface({name: each.numpy() for name, each in net.state_dict().items()}, case=case),
    )
    np.save(out / "prompt.npy", tokens.numpy().astype(np.int32))
    np.savez(out / "right.npz", logits=logits, tokens=chosen)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        for kind in ("own", "plain"):
            main(Path(sys.argv[1]) / f"{name}-{kind}", name, kind)
