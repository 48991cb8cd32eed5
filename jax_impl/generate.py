"""Run the model on this machine's CPU devices: `python -m jax_impl.generate CASE.json OUTDIR`.

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
    import jax

    from jax_impl.layout import Layout
    from jax_impl.step import WATCH_DIMS, Step

    jax.config.update("jax_use_shardy_partitioner", case.partitioner == "native")
    prefill, decode = (Step.of(Layout.on_devices(case.at(phases=(phase,)))) for phase in ("prefill", "decode"))
    weights = load(prefill, folder / "weights.npz")
    shapes = prefill.arguments[1]
    cache = jax.tree.map(lambda kept: jax.device_put(np.zeros(kept.shape, kept.dtype), kept.sharding), shapes)
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


def load(step: Any, path: Path) -> Any:
    """The weights of a file, each on the devices that its layout names."""
    import jax
    from flax import nnx

    with np.load(path) as file:
        flat = [
            (at, one.replace(jax.device_put(file[".".join(at)].astype(one.dtype), one.sharding)))
            for at, one in nnx.to_flat_state(step.arguments[0])
        ]
    return nnx.from_flat_state(flat)


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m jax_impl.generate CASE.json OUTDIR", file=sys.stderr)
        return 2
    try:
        case = Case.from_json(Path(argv[0]).read_text(encoding="utf-8"))
        # Before JAX starts its backend: as many CPU devices as the mesh has.
        os.environ["JAX_NUM_CPU_DEVICES"] = str(case.mesh.num_devices)
        generate(case, Path(argv[1]))
    except MeshError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
