"""Greedy decoding on a mesh: a session feeds prompt and answer, a few tokens a step, to both programs of a case."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from meshes.case import Case
from meshes.process.errors import MeshError

Ids = np.ndarray[Any, np.dtype[np.int32]]
Logits = np.ndarray[Any, np.dtype[np.float32]]

LoadWeights = Callable[[Any], Any]
"""Loads the weights of a twin's `Step` onto its devices."""

DECODE_STEPS = 8
"""Of `score_steps`, after the prefill."""


class Session(Protocol):
    """Both programs of a case, with the cache between them.  Ids in: s32 [batch, tokens]; next ids: s32 [batch]."""

    def prefill(self, tokens: Ids) -> Ids: ...

    def decode(self, tokens: Ids, *, position: int) -> Ids: ...

    @property
    def scores(self) -> Logits:
        """The logits of the last step, [batch, vocab]."""
        ...


def score_steps(session: Session, prompt: Ids, *, case: Case) -> tuple[Logits, Ids]:
    """Logits [steps, batch, vocab] and ids [steps, batch] of a prefill and the decode steps after it.

    prompt: s32 [batch, seq].
    """
    tokens, scores = [session.prefill(prompt)], [session.scores]
    for position in range(case.seq, case.seq + DECODE_STEPS):
        tokens.append(session.decode(tokens[-1][:, None], position=position))
        scores.append(session.scores)
    return np.stack(scores), np.stack(tokens)


def save_scores(folder: Path, session: Session, *, case: Case) -> None:
    """Run FOLDER/prompt.npy; write FOLDER/logits.npy and FOLDER/tokens.npy (see `score_steps`)."""
    logits, tokens = score_steps(session, np.load(folder / "prompt.npy").astype(np.int32), case=case)
    np.save(folder / "logits.npy", logits)
    np.save(folder / "tokens.npy", tokens)


def choose_tokens(
    session: Session, prompt: Sequence[int], *, case: Case, count: int, ends: frozenset[int]
) -> list[int]:
    """The greedy choices after a prompt: `count` of them, or fewer, up to and with the first of `ends`."""

    def batch_of(tokens: Sequence[int]) -> Ids:
        return np.tile(np.array(tokens, dtype=np.int32), (case.batch, 1))

    def first(ids: Ids, step: str) -> int:
        if not np.isfinite(session.scores).all():
            raise MeshError(
                f"the logits of {step} are not finite numbers; the weights are damaged, or too large for {case.dtype}: "
                f"fetch the checkpoint again"
            )
        return int(ids[0])

    def decode(tokens: Sequence[int], position: int) -> int:
        return first(session.decode(batch_of(tokens), position=position), f"the decode step at position {position}")

    prefilled = case.seq if case.seq <= len(prompt) else 0  # a prompt shorter than that is decoded token by token
    chosen = [first(session.prefill(batch_of(prompt[:prefilled])), "the prefill")] if prefilled else []
    for position in range(prefilled, len(prompt)):
        chosen = [decode(prompt[position : position + 1], position)]
    while len(chosen) < count and chosen[-1] not in ends:
        chosen.append(decode(chosen[-1:], len(prompt) + len(chosen) - 1))
    return chosen
