"""The greedy answer to a prompt: `python -m torchxla_impl.generate --checkpoint DIR --prompt "…" --mesh tp4pp2`.

The checkpoint is Hugging Face's folder.  It runs on virtual CPU devices, or on this machine's TPUs.  `--help` lists the
options.

As the worker of a case, `python -m torchxla_impl.generate CASE.json OUTDIR` reads OUTDIR/weights.npz (as
`meshes.weights` names them) and OUTDIR/prompt.npy, s32 [batch, seq], and writes OUTDIR/logits.npy, f32
[9, batch, vocab], and OUTDIR/tokens.npy, s32 [9, batch]: of the prefill, then of eight decode steps, each of which
reads the token before.  The case's phases are ignored.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.checkpoint import Checkpoint
from meshes.process.last_word import claim_stderr
from meshes.twins.greedy import Ids, LoadWeights, Logits, save_scores
from meshes.twins.prompts import Answer, Request, answer_prompt, respond
from meshes.twins.worker import serve
from torchxla_impl.process.start import start


class Session:
    """Both programs of a case and its weights, on this machine's devices, with the cache between them."""

    def __init__(self, case: Case, load_weights: LoadWeights):
        from torchxla_impl.decoder.step import Step
        from torchxla_impl.process.loading import empty_cache
        from torchxla_impl.sharding.create import layout_on_devices

        self.steps = {phase: Step.of(layout_on_devices(case.at(phases=(phase,)))) for phase in ("prefill", "decode")}
        self.weights, self.cache = load_weights(self.steps["prefill"]), empty_cache(self.steps["prefill"])
        self.logits: Any = None
        """Of the last step, [slots, stages, batch of a microbatch, parts, vocab]."""

    def prefill(self, tokens: Ids) -> Ids:
        return self._run("prefill", tokens)

    def decode(self, tokens: Ids, *, position: int) -> Ids:
        return self._run("decode", tokens, np.array(position, dtype=np.int32))

    def _run(self, phase: str, *given: Ids) -> Ids:
        import torch
        import torch_xla

        from torchxla_impl.sharding.lowering import shard

        step = self.steps[phase]
        dims = [each.dims for each in step.arguments if each.role == "input"]
        inputs = [
            shard(step.layout, torch.from_numpy(np.array(each)), names) for each, names in zip(given, dims, strict=True)
        ]
        ids, self.logits, self.cache = step.watch(self.weights, self.cache, *inputs)
        torch_xla.sync()
        return ids.cpu().numpy()

    @property
    def scores(self) -> Logits:
        """The last step's logits of each sequence, [batch, vocab]: those of the last stage and of the last part."""
        answer = self.logits.cpu().float().numpy()[:, -1, :, -1]
        # Sequences were dealt out to the microbatches.
        return answer.swapaxes(0, 1).reshape(-1, answer.shape[-1])


def generate(case: Case, folder: Path) -> None:
    """Prefill the prompt, then decode."""
    start(num_devices=case.mesh.num_devices)
    from torchxla_impl.process.loading import load_weights

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
    """How to load the weights of this folder: given a `Step`, onto its devices."""
    read = Checkpoint.open(folder).read

    def load(step: Any) -> Any:
        from torchxla_impl.process.loading import read_weights

        return read_weights(step, read)

    return load


def main(argv: list[str]) -> int:
    if len(argv) == 2 and not argv[0].startswith("-"):
        return serve(generate, argv, usage="python -m torchxla_impl.generate CASE.json OUTDIR", framework="PyTorch/XLA")
    return respond("torchxla_impl", argv, answer=answer)


if __name__ == "__main__":
    claim_stderr()
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(status)
