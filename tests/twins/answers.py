"""What one arm answers, many cases in one process: `python answers.py ARM REFERENCE OUT CASES`.

CASES is JSON, a list of {"mesh", "family"} and words of a `Case`, all on 8 devices.  Of case number n it writes
OUT/n.npz, logits and tokens of a prefill and eight decode steps; or OUT/n.txt, why there are none.  With {"text": true}
it answers a prompt in words instead, by the arm's command line: OUT/n.json.
"""

import io
import json
import os
import sys
import traceback
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.checkpoint import read_model
from meshes.twins.greedy import DECODE_STEPS, score_steps

NEW_TOKENS = 32


def score(arm: str, folder: Path, *, mesh: str, **words: Any) -> dict[str, np.ndarray]:
    """Logits and tokens of each step, from the checkpoint; no expert drops a token."""
    generate, model = import_module(f"{arm}.generate"), read_model(folder / "checkpoint")
    prompt = np.load(folder / "prompt.npy")
    batch, seq = prompt.shape
    full: dict[str, Any] = {"capacity": None} if model.experts else {}
    full["variants"] = tuple(words.pop("variants", ()))
    case = Case.read(mesh, shapes=model, dtype="f32", batch=batch, seq=seq, room=DECODE_STEPS, **full, **words)
    load = generate.open_weights(folder / "checkpoint")
    import_module(f"{arm}.process.start").start(num_devices=case.mesh.num_devices)
    session = generate.Session(case, load)
    return dict(zip(("logits", "tokens"), score_steps(session, prompt, case=case), strict=True))


def answer_prompt(arm: str, checkpoint: Path, *, mesh: str, prompt: str) -> dict[str, Any]:
    """The answer to a prompt in words, by the command line."""
    printed = io.StringIO()
    argv = [
        "--checkpoint",
        str(checkpoint),
        "--prompt",
        prompt,
        "--mesh",
        mesh,
        "--dtype",
        "f32",
        "--json",
        "--max-new-tokens",
        str(NEW_TOKENS),
    ]
    with redirect_stdout(printed):
        status = import_module(f"{arm}.generate").main(argv)
    assert status == 0, status
    return json.loads(printed.getvalue())


def answer(arm: str, reference: Path, out: Path, *, family: str, **words: Any) -> None:
    """Write what the arm answers to one case."""
    if not words.pop("text", False):
        np.savez(out.with_suffix(".npz"), **score(arm, reference / family, **words))
        return
    request = json.loads((reference / family / "text.json").read_text())
    checkpoint = reference / family / words.pop("form", "checkpoint")
    out.with_suffix(".json").write_text(json.dumps(answer_prompt(arm, checkpoint, prompt=request["prompt"], **words)))


def main(arm: str, reference: Path, out: Path, cases: list[dict[str, Any]]) -> None:
    for number, words in enumerate(cases):
        try:
            answer(arm, reference, out / str(number), **words)
        except BaseException:
            (out / f"{number}.txt").write_text(traceback.format_exc())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4]))
    sys.stdout.flush()
    os._exit(0)  # taking torch_xla down again would cost more than a second
