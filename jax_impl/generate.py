"""Run the model on this machine's CPU devices: `python -m jax_impl.generate CASE.json OUTDIR`.

Reads OUTDIR/weights.npz (as `meshes.weights` names them) and OUTDIR/prompt.npy, s32 [batch, seq].  Writes
OUTDIR/logits.npy, f32 [9, batch, vocab], and OUTDIR/tokens.npy, s32 [9, batch]: of the prefill, then of eight decode
steps, each of which reads the token before.  The case's phases are not looked at.
"""

import sys
from pathlib import Path

import numpy as np

from jax_impl.start import configure, start
from jax_impl.worker import serve
from meshes.case import Case

DECODE_STEPS = 8


def generate(case: Case, folder: Path) -> None:
    """Prefill the prompt, then decode."""
    start(num_devices=case.mesh.num_devices)
    from jax_impl.layout import Layout
    from jax_impl.loading import load_cache, load_weights
    from jax_impl.step import WATCH_DIMS, Step

    configure(case)
    prefill, decode = (Step.of(Layout.on_devices(case.at(phases=(phase,)))) for phase in ("prefill", "decode"))
    with np.load(folder / "weights.npz") as file:
        weights = load_weights(prefill, lambda name, _: file[name])
    cache = load_cache(prefill, lambda *_: np.zeros(1))
    chosen, scored = [], []
    steps = [prefill.layout.jit(prefill.watch, output_dims=WATCH_DIMS)]
    steps += [decode.layout.jit(decode.watch, output_dims=WATCH_DIMS)] * DECODE_STEPS
    tokens = np.load(folder / "prompt.npy").astype(np.int32)
    for at, step in enumerate(steps):
        position = () if at == 0 else (np.int32(case.seq + at - 1),)
        ids, logits, cache = step(weights, cache, tokens, *position)
        chosen.append(np.asarray(ids))
        # [slots, stages, batch, vocab], of which the last stage's is the answer; microbatches were dealt out.
        scored.append(np.asarray(logits)[:, -1].swapaxes(0, 1).reshape(case.batch, -1).astype(np.float32))
        tokens = chosen[-1][:, None]
    np.save(folder / "logits.npy", np.stack(scored))
    np.save(folder / "tokens.npy", np.stack(chosen))


def main(argv: list[str]) -> int:
    return serve(generate, argv, usage="python -m jax_impl.generate CASE.json OUTDIR")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
