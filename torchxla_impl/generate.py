"""The greedy answer to a prompt: `python -m torchxla_impl.generate --checkpoint DIR --prompt "…" --mesh tp4pp2`.

The checkpoint is Hugging Face's folder.  It runs on virtual CPU devices, or on this machine's TPUs.  `--help` tells the
other options.

As the worker of a case, `python -m torchxla_impl.generate CASE.json OUTDIR` reads OUTDIR/weights.npz (as
`meshes.weights` names them) and OUTDIR/prompt.npy, s32 [batch, seq], and writes OUTDIR/logits.npy, f32
[9, batch, vocab], and OUTDIR/tokens.npy, s32 [9, batch]: of the prefill, then of eight decode steps, each of which
reads the token before.  The case's phases are not looked at.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.checkpoint import Checkpoint, read_model, read_positions
from meshes.process.last_word import alone
from meshes.prompts import (
    Answer,
    Ids,
    Progress,
    Request,
    case_of,
    chosen,
    decoded,
    encoded,
    read_ends,
    read_words,
    respond,
)
from meshes.twins.worker import serve
from torchxla_impl.process.start import start

DECODE_STEPS = 8


class Session:
    """Both programs of a case and its weights, on this machine's devices, with the cache between them."""

    def __init__(self, case: Case, load: Callable[[Any], Any]):
        """`load` makes the weights, given a `Step`."""
        from torchxla_impl.decoder.step import Step
        from torchxla_impl.process.loading import empty_cache
        from torchxla_impl.sharding.create import layout_on_devices

        self.steps = {phase: Step.of(layout_on_devices(case.at(phases=(phase,)))) for phase in ("prefill", "decode")}
        self.weights, self.cache = load(self.steps["prefill"]), empty_cache(self.steps["prefill"])
        self.logits: Any = None
        """Of the last step, [slots, stages, batch of a microbatch, parts, vocab]."""

    def prefill(self, tokens: Ids) -> Ids:
        return self._run("prefill", tokens)

    def decode(self, tokens: Ids, *, position: int) -> Ids:
        return self._run("decode", tokens, np.array(position, dtype=np.int32))

    def _run(self, phase: str, *given: Ids) -> Ids:
        import torch
        import torch_xla

        step = self.steps[phase]
        dims = [each.dims for each in step.arguments if each.role == "input"]
        inputs = [
            step.layout.shard(torch.from_numpy(np.array(each)), names) for each, names in zip(given, dims, strict=True)
        ]
        ids, self.logits, self.cache = step.watch(self.weights, self.cache, *inputs)
        torch_xla.sync()
        return ids.cpu().numpy()

    @property
    def scores(self) -> np.ndarray[Any, np.dtype[np.float32]]:
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
    logits, tokens = watched(session, np.load(folder / "prompt.npy").astype(np.int32), case=case)
    np.save(folder / "logits.npy", logits)
    np.save(folder / "tokens.npy", tokens)


def watched(session: Session, prompt: Ids, *, case: Case) -> tuple[np.ndarray[Any, np.dtype[np.float32]], Ids]:
    """Logits [steps, batch, vocab] and tokens [steps, batch] of a prefill and the decode steps after it."""
    tokens, scores = [session.prefill(prompt)], [session.scores]
    for position in range(case.seq, case.seq + DECODE_STEPS):
        tokens.append(session.decode(tokens[-1][:, None], position=position))
        scores.append(session.scores)
    return np.stack(scores), np.stack(tokens)


def answer(request: Request) -> Answer:
    """Load the checkpoint, piece by piece, and answer the prompt."""
    from tokenizers import Tokenizer

    progress, load = Progress(), source(request.checkpoint)
    words = read_words(request.checkpoint, load=Tokenizer.from_file)
    prompt, ends = encoded(words, request.prompt), read_ends(request.checkpoint)
    model, positions = read_model(request.checkpoint), read_positions(request.checkpoint)
    case = case_of(request, model=model, num_tokens=len(prompt), positions=positions)
    start(num_devices=case.mesh.num_devices, platform=request.platform)
    progress.begin("load")
    session = Session(case, load)
    progress.begin("generate")
    made = chosen(session, prompt, case=case, count=request.max_new_tokens, ends=ends)
    return Answer(
        text=decoded(words, prompt, made),
        tokens=tuple(made),
        prompt_tokens=tuple(prompt),
        case=case,
        seconds=progress.seconds(),
    )


def source(folder: Path) -> Callable[[Any], Any]:
    """What loads the weights of this folder."""
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
    alone()
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(status)
