"""The greedy answer to a prompt: `python -m jax_impl.generate --checkpoint DIR --prompt "…" --mesh tp4pp2`.

The checkpoint is Hugging Face's folder, or what `jax_impl.convert` wrote.  It runs on virtual CPU devices, or on
this machine's TPUs.  `--help` lists the options.

As the worker of a case, `python -m jax_impl.generate CASE.json OUTDIR` reads OUTDIR/weights.npz (as `meshes.weights`
names them) and OUTDIR/prompt.npy, s32 [batch, seq], and writes OUTDIR/logits.npy, f32 [9, batch, vocab], and
OUTDIR/tokens.npy, s32 [9, batch]: of the prefill, then of eight decode steps, each of which reads the token before.
The case's phases are ignored.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from jax_impl.convert import restore_weights
from jax_impl.process.start import configure, start
from meshes.case import Case
from meshes.checkpoint import Checkpoint
from meshes.checkpoint.converted import ConvertedCheckpoint, is_converted
from meshes.process.last_word import claim_stderr
from meshes.twins.greedy import Ids, LoadWeights, Logits, save_scores
from meshes.twins.prompts import Answer, Request, answer_prompt, respond
from meshes.twins.worker import serve


class Session:
    """Both programs of a case and its weights, on this machine's devices, with the cache between them."""

    def __init__(self, case: Case, load_weights: LoadWeights):
        from jax_impl.decoder.step import Step
        from jax_impl.process.loading import empty_cache
        from jax_impl.sharding.create import layout_on_devices
        from jax_impl.sharding.lowering import jit_step

        configure(case)
        steps = {phase: Step.of(layout_on_devices(case.at(phases=(phase,)))) for phase in ("prefill", "decode")}
        self.programs = {
            phase: jit_step(step.layout, step.watch, output_dims=step.watch_dims) for phase, step in steps.items()
        }
        self.weights, self.cache = load_weights(steps["prefill"]), empty_cache(steps["prefill"])
        self.logits: Any = None
        """Of the last step, [slots, stages, batch of a microbatch, parts, vocab]."""

    def prefill(self, tokens: Ids) -> Ids:
        return self._run("prefill", tokens)

    def decode(self, tokens: Ids, *, position: int) -> Ids:
        return self._run("decode", tokens, np.int32(position))

    def _run(self, phase: str, tokens: Ids, *position: np.int32) -> Ids:
        ids, self.logits, self.cache = self.programs[phase](self.weights, self.cache, tokens, *position)
        return np.asarray(ids)

    @property
    def scores(self) -> Logits:
        """The last step's logits of each sequence, [batch, vocab]: those of the last stage and of the last part."""
        answer = np.asarray(self.logits)[:, -1, :, -1]
        # Sequences were dealt out to the microbatches.
        return answer.swapaxes(0, 1).reshape(-1, answer.shape[-1]).astype(np.float32)


def generate(case: Case, folder: Path) -> None:
    """Prefill the prompt, then decode."""
    start(num_devices=case.mesh.num_devices)
    from jax_impl.process.loading import load_weights

    with np.load(folder / "weights.npz") as file:
        session = Session(case, lambda step: load_weights(step, lambda name, _: file[name]))
    save_scores(folder, session, case=case)


def answer(request: Request) -> Answer:
    """The greedy answer to a prompt, by this twin."""
    from tokenizers import Tokenizer

    return answer_prompt(
        request, load_tokenizer=Tokenizer.from_file, open_weights=open_weights, start=start, open_session=Session
    )


def open_weights(folder: Path) -> LoadWeights:
    """How to load the weights of this folder, Hugging Face's or Orbax's: given a `Step`, onto its devices."""
    if is_converted(folder):
        converted = ConvertedCheckpoint.open(folder)
        return lambda step: restore_weights(converted, step)
    read = Checkpoint.open(folder).read

    def load(step: Any) -> Any:
        from jax_impl.process.loading import read_weights

        return read_weights(step, read)

    return load


def main(argv: list[str]) -> int:
    if len(argv) == 2 and not argv[0].startswith("-"):
        return serve(generate, argv, usage="python -m jax_impl.generate CASE.json OUTDIR", framework="JAX")
    return respond("jax_impl", argv, answer=answer)


if __name__ == "__main__":
    claim_stderr()
    sys.exit(main(sys.argv[1:]))
