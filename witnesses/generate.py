"""What a witness answers: `python -m witnesses.generate CASE.json OUTDIR NAME`.

The protocol of a twin's `generate` as the worker of a case: it reads OUTDIR/weights.npz (as `meshes.weights` names
them) and OUTDIR/prompt.npy, s32 [batch, seq], and writes OUTDIR/logits.npy, f32 [9, batch, vocab], and
OUTDIR/tokens.npy, s32 [9, batch]: of the prefill, then of eight decode steps, on virtual CPU devices.
"""

import os
import sys
from pathlib import Path

import numpy as np

from meshes.case import Case
from meshes.process.errors import NotOfferedError
from meshes.process.last_word import claim_stderr
from meshes.twins.greedy import save_scores
from meshes.twins.worker import serve
from witnesses.catalog import witness
from witnesses.lower import DOORS, witness_title
from witnesses.witness import check, resolve


def generate(case: Case, folder: Path, name: str) -> None:
    """Prefill the prompt, then decode."""
    row = witness(name)
    check(row, case)
    if row.rope_theta and (case.model.rope_theta != row.rope_theta or case.model.rope_scaling):
        raise NotOfferedError(
            f"{name} turns queries and keys by theta={row.rope_theta:,.0f}, unscaled, whatever its config says; "
            f"{case.model.name} asks for theta={case.model.rope_theta:,.0f}{', scaled' * bool(case.model.rope_scaling)}"
        )
    with np.load(folder / "weights.npz") as file:
        session = resolve(f"{DOORS[row.door]}:Session")(row, case, lambda weight: file[weight])
    save_scores(folder, session, case=case)


def main(argv: list[str]) -> int:
    return serve(
        generate, argv, usage="python -m witnesses.generate CASE.json OUTDIR NAME", framework=witness_title(argv)
    )


if __name__ == "__main__":
    claim_stderr()
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # taking torch_xla down again would cost more than a second
