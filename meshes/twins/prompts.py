"""The command line of `generate`, the same in both twins: a prompt in, its greedy answer out."""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, Self

from meshes.case import Case, default_microbatches
from meshes.checkpoint import read_model, read_positions
from meshes.choices import CAPACITY, CHOICES
from meshes.dims import is_sequence_parallel
from meshes.mesh_argument import read_mesh
from meshes.models import Model
from meshes.process.command_line import Parser, run_to_status, whole_number
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.twins.greedy import LoadWeights, Session, choose_tokens

PLATFORMS = ("cpu", "tpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of the command line."""

    checkpoint: Path
    prompt: str
    mesh: str
    max_new_tokens: int
    dtype: str
    attention: str
    platform: str
    format: Callable[["Answer"], str]
    """Text or JSON."""

    @classmethod
    def read(cls, arm: str, argv: Sequence[str]) -> Self:
        """Parse the options; a wrong one exits with status 2 and one line."""
        return cls(**vars(_parser(arm).parse_args(argv)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The model's continuation of a prompt."""

    text: str
    tokens: tuple[int, ...]
    """The chosen ids, with the one that ends the text."""
    prompt_tokens: tuple[int, ...]
    case: Case
    seconds: dict[str, float]


class Progress:
    """Seconds of each stage; each is named on stderr as it begins."""

    def __init__(self) -> None:
        self._begun: list[tuple[str, float]] = []

    def begin(self, stage: str) -> None:
        self._begun.append((stage, monotonic()))
        print(f"{stage} …", file=sys.stderr, flush=True)

    def seconds(self) -> dict[str, float]:
        ends = [*(begun for _, begun in self._begun[1:]), monotonic()]
        return {stage: round(end - begun, 3) for (stage, begun), end in zip(self._begun, ends, strict=True)}


class Tokenizer(Protocol):
    """A tokenizer of the `tokenizers` library."""

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
        help="Hugging Face checkpoint folder: "
        "config.json, *.safetensors, tokenizer.json (jax_impl.generate also reads what jax_impl.convert wrote)",
    )
    add("--prompt", metavar="TEXT", required=True, help="the text to continue")
    add(
        "--mesh",
        metavar="NAME",
        required=True,
        help="axis+size pairs in any order, like tp4pp2; +sp adds sequence parallelism",
    )
    add(
        "--max-new-tokens",
        metavar="N",
        type=whole_number,
        default=32,
        help="stops earlier at an end-of-sequence token (default: 32)",
    )
    rounding = (
        "bf16 rounding differs by mesh and can change the chosen token where two score nearly the same; f32 rarely"
    )
    add("--dtype", choices=CHOICES["dtype"], default=CHOICES["dtype"][0], help=f"{rounding} (default: %(default)s)")
    add(
        "--attention",
        choices=CHOICES["attention"],
        default=CHOICES["attention"][0],
        help="the framework's own attention call, or written out as einsums (default: %(default)s)",
    )
    add(
        "--platform",
        choices=PLATFORMS,
        default=PLATFORMS[0],
        help="virtual CPU devices, or this machine's TPUs (default: %(default)s)",
    )
    add(
        "--json",
        dest="format",
        action="store_const",
        const=format_json,
        default=format_text,
        help="print one JSON object: text, tokens, mesh, seconds",
    )
    return parser


def format_text(answer: Answer) -> str:
    """The text with control characters escaped; `--json` prints it unchanged."""
    return "".join(word if word.isprintable() or word in "\n\t" else ascii(word)[1:-1] for word in answer.text)


def format_json(answer: Answer) -> str:
    fields = {
        "text": answer.text,
        "tokens": answer.tokens,
        "prompt_tokens": answer.prompt_tokens,
        "mesh": answer.case.plan.name,
        "dtype": answer.case.dtype,
        "seconds": answer.seconds,
    }
    return json.dumps(fields)


def build_case(request: Request, *, model: Model, num_tokens: int, positions: int | None = None) -> Case:
    """The case for a prompt of this many tokens; every sequence of the batch is a copy of the prompt.

    positions: of the model (max_position_embeddings), `None` if unlimited.  Raises `MeshError` where prompt and new
    tokens need more.

    No expert drops a token.  Where `cp`, or sequence parallelism, cannot split all tokens evenly, the prefill
    reads the most that they can, and the rest are decoded, one by one.
    """
    _check_positions(num_tokens, request.max_new_tokens, positions)
    plan = read_mesh(request.mesh)
    mesh, microbatches = plan.mesh, default_microbatches(plan.mesh)
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


def read_tokenizer(folder: Path, *, load: Callable[[str], Tokenizer]) -> Tokenizer:
    """The tokenizer of a checkpoint; `load` is the `tokenizers` library's own function."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise MeshError(f"{folder} has no tokenizer.json; save the model's fast tokenizer there")
    try:
        return load(str(path))
    except Exception as error:
        if type(error) is not Exception:  # Rust's errors have no class of their own
            raise
        raise MeshError(f"{path} is no tokenizer: {error}") from None


def encode_prompt(tokenizer: Tokenizer, prompt: str) -> list[int]:
    """The ids of a prompt, with the special tokens that the tokenizer adds."""
    try:
        prompt.encode()
    except UnicodeEncodeError as error:
        raise MeshError(
            f"the prompt is not UTF-8 (character {error.start + 1} is {prompt[error.start]!a}); write it in UTF-8"
        ) from None
    ids = list(tokenizer.encode(prompt).ids)
    if not ids:
        raise MeshError(f"the prompt {prompt!r} has no tokens; write a longer one")
    return ids


def decode_answer(tokenizer: Tokenizer, prompt: Sequence[int], answer: Sequence[int]) -> str:
    """The text after the prompt: decoded with it, since some tokenizers drop a leading space."""
    before, full = tokenizer.decode(list(prompt)), tokenizer.decode([*prompt, *answer])
    return full.removeprefix(before) if full.startswith(before) else tokenizer.decode(list(answer))


def read_end_ids(folder: Path) -> frozenset[int]:
    """The end-of-sequence ids of generation_config.json, or else of config.json."""
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
        if (ids := table.get("eos_token_id")) is not None:
            return _read_ids(ids, path)
    return frozenset()


def _read_ids(value: Any, path: Path) -> frozenset[int]:
    ids = value if isinstance(value, list) else [value]
    if not all(type(each) is int for each in ids):
        raise MeshError(
            f"eos_token_id of {path} is {json.dumps(value)[:80]}; a whole number, or a list of them, would be right"
        )
    return frozenset(ids)


def answer_prompt(
    request: Request,
    *,
    load_tokenizer: Callable[[str], Tokenizer],
    open_weights: Callable[[Path], LoadWeights],
    start: Callable[..., None],
    open_session: Callable[[Case, LoadWeights], Session],
) -> Answer:
    """Load the checkpoint, shard by shard, and answer the prompt.

    All that can be refused is, before the devices are brought up by `start`.
    """
    progress, load_weights = Progress(), open_weights(request.checkpoint)
    tokenizer = read_tokenizer(request.checkpoint, load=load_tokenizer)
    prompt, ends = encode_prompt(tokenizer, request.prompt), read_end_ids(request.checkpoint)
    model, positions = read_model(request.checkpoint), read_positions(request.checkpoint)
    case = build_case(request, model=model, num_tokens=len(prompt), positions=positions)
    start(num_devices=case.mesh.num_devices, platform=request.platform)
    progress.begin("load")
    session = open_session(case, load_weights)
    progress.begin("generate")
    tokens = choose_tokens(session, prompt, case=case, count=request.max_new_tokens, ends=ends)
    return Answer(
        text=decode_answer(tokenizer, prompt, tokens),
        tokens=tuple(tokens),
        prompt_tokens=tuple(prompt),
        case=case,
        seconds=progress.seconds(),
    )


def respond(arm: str, argv: Sequence[str], *, answer: Callable[[Request], Answer]) -> int:
    """Answer the prompt of the command line on stdout; returns the exit status."""
    request = Request.read(arm, argv)
    return print_result(lambda: request.format(answer(request)))


def print_result(work: Callable[[], str]) -> int:
    """Print the result of `work`; returns the exit status: 2, after one line on stderr, if it is refused."""

    def run() -> int:
        print(work(), flush=True)
        return 0

    return run_to_status(run)
