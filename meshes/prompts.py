"""A prompt and its greedy answer: what a command line asks of either twin, and how tokens are fed to a mesh."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, Self

import numpy as np

from meshes.case import CAPACITY, CHOICES, Case
from meshes.dims import is_sequence_parallel
from meshes.mesh_argument import read_mesh
from meshes.models import Model
from meshes.process.command_line import Parser, ending, whole
from meshes.process.documents import read_json
from meshes.process.errors import MeshError

Ids = np.ndarray[Any, np.dtype[np.int32]]

PLATFORMS = ("cpu", "tpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked on the command line."""

    checkpoint: Path
    prompt: str
    mesh: str
    max_new_tokens: int
    dtype: str
    attention: str
    platform: str
    form: Callable[["Answer"], str]
    """How the answer is printed."""

    @classmethod
    def read(cls, arm: str, argv: Sequence[str]) -> Self:
        """Read the options; a wrong one exits with status 2 and one line."""
        asked = vars(_parser(arm).parse_args(argv))
        return cls(**asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model says behind a prompt."""

    text: str
    tokens: tuple[int, ...]
    """Those that were chosen, the one that ends the text too."""
    prompt_tokens: tuple[int, ...]
    case: Case
    seconds: dict[str, float]


class Progress:
    """Seconds of each stage, told on stderr as it begins."""

    def __init__(self) -> None:
        self._begun: list[tuple[str, float]] = []

    def begin(self, stage: str) -> None:
        self._begun.append((stage, monotonic()))
        print(f"{stage} …", file=sys.stderr, flush=True)

    def seconds(self) -> dict[str, float]:
        ends = [*(begun for _, begun in self._begun[1:]), monotonic()]
        return {stage: round(end - begun, 3) for (stage, begun), end in zip(self._begun, ends, strict=True)}


class Session(Protocol):
    """Both programs of a case, with the cache between them.  Ids are s32 [batch, tokens]; what is chosen, [batch]."""

    def prefill(self, tokens: Ids) -> Ids: ...

    def decode(self, tokens: Ids, *, position: int) -> Ids: ...

    @property
    def scores(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The logits of the last step, [batch, vocab]."""
        ...


class Words(Protocol):
    """A tokenizer, as the `tokenizers` library has them."""

    def encode(self, sequence: str) -> Any: ...

    def decode(self, ids: Sequence[int]) -> str: ...


def _parser(arm: str) -> Parser:
    parser = Parser(
        prog=f"python -m {arm}.generate",
        description="The greedy answer to a prompt, from a checkpoint on a mesh.  As the worker of a case: "
        f"python -m {arm}.generate CASE.json OUTDIR",
        epilog=f'example: python -m {arm}.generate --checkpoint DIR --prompt "Once upon a time" --mesh tp4pp2',
    )
    add = parser.add_argument
    add(
        "--checkpoint",
        metavar="DIR",
        type=Path,
        required=True,
        help="Hugging Face's folder: config.json, "
        "safetensors, tokenizer.json; what jax_impl.convert made of one is for jax_impl.generate --checkpoint",
    )
    add("--prompt", metavar="TEXT", required=True)
    add("--mesh", metavar="NAME", required=True, help="axis+size pairs in any order, with +sp if you like (tp4pp2)")
    add("--max-new-tokens", metavar="N", type=whole, default=32, help="fewer, where the model ends (default: 32)")
    near = "in bf16 rounding chooses between words that are nearly as good, on each mesh in its own way; in f32 rarely"
    add("--dtype", choices=CHOICES["dtype"], default=CHOICES["dtype"][0], help=f"{near} (default: %(default)s)")
    add("--attention", choices=CHOICES["attention"], default=CHOICES["attention"][0], help="default: %(default)s")
    add("--platform", choices=PLATFORMS, default=PLATFORMS[0], help="virtual CPU devices, or this machine's TPUs")
    add("--json", dest="form", action="store_const", const=as_json, default=as_text, help="one JSON object")
    return parser


def as_text(answer: Answer) -> str:
    """The text, with the characters that would steer a terminal written out; `--json` has it as it is."""
    return "".join(word if word.isprintable() or word in "\n\t" else ascii(word)[1:-1] for word in answer.text)


def as_json(answer: Answer) -> str:
    found = {
        "text": answer.text,
        "tokens": answer.tokens,
        "prompt_tokens": answer.prompt_tokens,
        "mesh": answer.case.plan.name,
        "dtype": answer.case.dtype,
        "seconds": answer.seconds,
    }
    return json.dumps(found)


def case_of(request: Request, *, model: Model, num_tokens: int, positions: int | None = None) -> Case:
    """The case that answers a prompt of this many tokens: a copy of it for every sequence that the mesh holds at once.

    Refused where the prompt and what is asked for have no room in the positions that the model knows (none: any).

    Nothing is dropped by an expert.  Where `cp`, or sequence parallelism, cannot split all tokens evenly, the prefill
    reads the most that they can, and the rest are decoded, one by one.
    """
    _check_positions(num_tokens, request.max_new_tokens, positions)
    plan = read_mesh(request.mesh)
    mesh, microbatches = plan.mesh, 4 if plan.mesh.pp > 1 else 1
    ways = mesh.cp * (mesh.tp if is_sequence_parallel(plan.rules) else 1)
    seq = max(num_tokens // ways, 1) * ways
    if seq > num_tokens and mesh.cp > 1:
        raise MeshError(
            f"the prompt has {_tokens(num_tokens)}, and mesh {plan.name} splits it into {ways} parts; write a longer "
            f"one, or choose a mesh of fewer"
        )
    return Case.read(
        request.mesh,
        shapes=model,
        microbatches=microbatches,
        batch=mesh.dp * mesh.ep * microbatches,
        seq=seq,
        room=max(num_tokens + request.max_new_tokens - 1 - seq, 1),
        dtype=request.dtype,
        attention=request.attention,
        capacity=None if model.experts else CAPACITY,
    )


def _check_positions(prompt: int, new: int, positions: int | None) -> None:
    if positions is None or prompt + new <= positions:
        return
    room = positions - prompt
    right = f"ask for at most {room} with --max-new-tokens" if room > 0 else "write a shorter prompt"
    raise MeshError(
        f"the prompt has {_tokens(prompt)}, and {new} more are asked for, but the model knows {positions} positions "
        f"(max_position_embeddings); {right}"
    )


def _tokens(count: int) -> str:
    return f"{count} token" if count == 1 else f"{count} tokens"


def chosen(session: Session, prompt: Sequence[int], *, case: Case, count: int, ends: frozenset[int]) -> list[int]:
    """The greedy choices behind a prompt: `count` of them, or up to one of `ends`."""

    def row(tokens: Sequence[int]) -> Ids:
        return np.tile(np.array(tokens, dtype=np.int32), (case.batch, 1))

    def first(ids: Ids, step: str) -> int:
        if not np.isfinite(session.scores).all():
            raise MeshError(
                f"the logits of {step} are not finite numbers; the weights are damaged, or too large for {case.dtype}: "
                f"fetch the checkpoint again"
            )
        return int(ids[0])

    def decode(tokens: Sequence[int], position: int) -> int:
        return first(session.decode(row(tokens), position=position), f"the decode step at position {position}")

    read = case.seq if case.seq <= len(prompt) else 0  # a prompt shorter than what can be split is decoded whole
    made = [first(session.prefill(row(prompt[:read])), "the prefill")] if read else []
    for position in range(read, len(prompt)):
        made = [decode(prompt[position : position + 1], position)]
    while len(made) < count and made[-1] not in ends:
        made.append(decode(made[-1:], len(prompt) + len(made) - 1))
    return made


def read_words(folder: Path, *, load: Callable[[str], Words]) -> Words:
    """The tokenizer of a checkpoint, read by `tokenizers`' own function."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise MeshError(f"{folder} has no tokenizer.json; save the model's fast tokenizer there")
    try:
        return load(str(path))
    except Exception as error:
        if type(error) is not Exception:  # Rust's errors have no class of their own
            raise
        raise MeshError(f"{path} is no tokenizer: {error}") from None


def encoded(words: Words, prompt: str) -> list[int]:
    """The ids of a prompt, with the tokens that the tokenizer itself puts at its ends."""
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        raise MeshError(
            f"the prompt is not UTF-8 (character {error.start + 1} is {prompt[error.start]!a}); write it in UTF-8"
        ) from None
    ids = list(words.encode(prompt).ids)
    if not ids:
        raise MeshError(f"the prompt {prompt!r} has no tokens; write a longer one")
    return ids


def decoded(words: Words, prompt: Sequence[int], made: Sequence[int]) -> str:
    """The text behind the prompt: read with it, since some tokenizers eat a space at the beginning."""
    before, whole = words.decode(list(prompt)), words.decode([*prompt, *made])
    return whole.removeprefix(before) if whole.startswith(before) else words.decode(list(made))


def read_ends(folder: Path) -> frozenset[int]:
    """The ids that end a text, as generation_config.json says, or else config.json."""
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        if not path.is_file():
            continue
        try:
            table = read_json(path)
        except MeshError as error:
            raise MeshError(f"{path} is {error}") from None
        if not isinstance(table, dict):
            raise MeshError(f"{path} is not a JSON object")
        if (found := table.get("eos_token_id")) is not None:
            return _ids(found, path)
    return frozenset()


def _ids(found: Any, path: Path) -> frozenset[int]:
    ids = found if isinstance(found, list) else [found]
    if not all(type(each) is int for each in ids):
        raise MeshError(
            f"eos_token_id of {path} is {json.dumps(found)[:80]}; a whole number, or a list of them, would be right"
        )
    return frozenset(ids)


def respond(arm: str, argv: Sequence[str], *, answer: Callable[[Request], Answer]) -> int:
    """Print the answer to what the command line asks, and return the exit status."""
    request = Request.read(arm, argv)
    return printed(lambda: request.form(answer(request)))


def printed(work: Callable[[], str]) -> int:
    """Print what `work` gives, and return the exit status: 2, with one line, if it can't be."""

    def said() -> int:
        print(work(), flush=True)
        return 0

    return ending(said)
