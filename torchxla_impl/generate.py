"""Run the model on this machine's CPU devices: `python -m torchxla_impl.generate CASE.json OUTDIR`.

Reads OUTDIR/weights.npz (as `meshes.weights` names them) and OUTDIR/prompt.npy, s32 [batch, seq].  Writes
OUTDIR/logits.npy, f32 [9, batch, vocab], and OUTDIR/tokens.npy, s32 [9, batch]: of the prefill, then of eight decode
steps, each of which reads the token before.  The case's phases are not looked at.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.errors import MeshError

DECODE_STEPS = 8


def generate(case: Case, folder: Path) -> None:
    """Prefill the prompt, then decode."""
    import torch
    import torch_xla

    from torchxla_impl.layout import Layout
    from torchxla_impl.step import Step

    prefill, decode = (Step.of(Layout.on_devices(case.at(phases=(phase,)))) for phase in ("prefill", "decode"))
    weights, cache = load(prefill, folder / "weights.npz")
    chosen, scored = [], []
    tokens = torch.from_numpy(np.load(folder / "prompt.npy").astype(np.int32))
    for at, step in enumerate([prefill] + [decode] * DECODE_STEPS):
        place = step.layout.shard
        position = () if at == 0 else (place(torch.tensor(case.seq + at - 1, dtype=torch.int32), ""),)
        ids, logits, cache = step.watch(weights, cache, place(tokens, "batch _"), *position)
        torch_xla.sync()
        chosen.append(ids.cpu().numpy())
        # [slots, stages, batch, vocab], of which the last stage's is the answer; microbatches were dealt out.
        scored.append(logits.cpu().numpy()[:, -1].swapaxes(0, 1).reshape(case.batch, -1).astype(np.float32))
        tokens = torch.from_numpy(chosen[-1][:, None])
    np.save(folder / "logits.npy", np.stack(scored))
    np.save(folder / "tokens.npy", np.stack(chosen))


def load(step: Any, path: Path) -> tuple[dict[str, Any], Any]:
    """The weights of a file and an empty cache, each on the devices that its layout names."""
    import torch

    from torchxla_impl.cache import Cache

    with np.load(path) as file:
        there = {
            each.name: step.layout.shard(torch.from_numpy(file[each.name]).to(each.dtype), each.dims)
            for each in step.arguments
            if each.role == "weight"
        }
    cache = (step.layout.shard(torch.zeros(each.shape, dtype=each.dtype), each.dims)
             for each in step.arguments if each.role == "cache")  # fmt: skip
    return there, Cache(*cache)


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m torchxla_impl.generate CASE.json OUTDIR", file=sys.stderr)
        return 2
    try:
        case = Case.from_json(Path(argv[0]).read_text(encoding="utf-8"))
        from torchxla_impl.start import start

        start(num_devices=case.mesh.num_devices)
        generate(case, Path(argv[1]))
    except MeshError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(status)
