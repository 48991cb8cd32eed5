"""The quiz of `python -m compare.teach --quiz`: a question by its seed, an answer, and the truth, compiled."""

import secrets
import sys
from collections.abc import Mapping

from compare.judge.quiz.answers import Answer, AnswerError, read_answer, truth_of
from compare.judge.quiz.draw import draw
from compare.views.quiz_text import print_question, print_truth
from compare.views.quiz_words import Told, public_answer, public_question
from compare.work import cache
from compare.work.options import print_json
from compare.work.quiz import compiled, source_of
from meshes.doors import REFUSED
from meshes.lines import complain, plain

SEEDS = 10**6
"""Of these one is taken where none is named."""

TRIES = 3
"""How often an answer may be unreadable."""


def take(seed: int | None, words: str | None, *, as_json: bool, no_cache: bool) -> int:
    """Ask question `seed`, and tell the truth of it.

    words: the answer; without one it is read from standard input, in JSON none is.
    0: right, or nothing was answered; 1: wrong, or it could not be compiled; 2: no readable answer.
    """
    question = draw(secrets.randbelow(SEEDS) if seed is None else seed)
    source = source_of(question)
    mesh = question.lesson.mesh
    try:
        answer = None if words is None else read_answer(words, mesh)
    except AnswerError as error:
        complain(f"compare.teach: {error}")
        return REFUSED
    if as_json and words is None:
        print_json(public_question(question, source))
        return 0
    if not as_json:
        print_question(question, source)
        if words is None:
            answer = _heard(question.lesson.mesh)
    with cache.opened(bypass=no_cache) as kept:
        (made,) = compiled([question], cache=kept, tell=complain)
    told = Told(question, made)
    if as_json:
        print_json(public_question(question, source) | public_answer(told, answer))
    else:
        print_truth(told, answer)
    return 0 if made.ok and (answer is None or answer.is_right(truth_of(made))) else 1


def _heard(mesh: Mapping[str, int]) -> Answer | None:
    """What is typed; None for an empty line or the end: tell me."""
    for _ in range(TRIES):
        print("> ", end="", flush=True)
        words = sys.stdin.readline()
        if not words.strip():
            return None
        try:
            return read_answer(words.strip(), mesh)
        except AnswerError as error:
            print(plain(error))
    return None
