"""Run the model on this machine's CPU devices: `python -m torchxla_impl.generate CASE.json OUTDIR`.

Reads OUTDIR/weights.npz (as `meshes.weights` names them) and OUTDIR/prompt.npy, s32 [batch, seq].  Writes
OUTDIR/logits.npy, f32 [9, batch, vocab], and OUTDIR/tokens.npy, s32 [9, batch]: of the prefill, then of eight decode
steps, each of which reads the token before.  The case's phases are not looked at.
"""

import os
import sys
from pathlib import Path

import numpy as np

from meshes.case import Case
from torchxla_impl.start import start
from torchxla_impl.worker import serve

DECODE_STEPS = 8


def generate(case: Case, folder: Path) -> None:
    """Prefill the prompt, then decode."""
    start(num_devices=case.mesh.num_devices)
    import torch
    import torch_xla

    from torchxla_impl.layout import Layout
    from torchxla_impl.loading import load_cache, load_weights
    from torchxla_impl.step import Step

    prefill, decode = (Step.of(Layout.on_devices(case.at(phases=(phase,)))) for phase in ("prefill", "decode"))
    with np.load(folder / "weights.npz") as file:
        weights = load_weights(prefill, lambda name, _: file[name])
    cache = load_cache(prefill, lambda *_: np.zeros(1))
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


def main(argv: list[str]) -> int:
    return serve(generate, argv, usage="python -m torchxla_impl.generate CASE.json OUTDIR")


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(status)
