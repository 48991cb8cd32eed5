"""A prompt on a mesh: what is prefilled, what is decoded, where it ends, what is printed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from meshes.case import Case
from meshes.models import model
from meshes.process.errors import MeshError
from meshes.twins.greedy import Ids, choose_tokens
from meshes.twins.prompts import (
    Answer,
    Request,
    build_case,
    decode_answer,
    encode_prompt,
    format_json,
    format_text,
    read_end_ids,
    read_tokenizer,
)


def request(mesh: str, *more: str) -> Request:
    return Request.read("jax_impl", ["--checkpoint", "DIR", "--prompt", "words", "--mesh", mesh, *more])


def case(mesh: str, *, num_tokens: int, model_name: str = "tiny", count: int = 32) -> Case:
    options = request(mesh, "--max-new-tokens", str(count))
    return build_case(options, model=model(model_name), num_tokens=num_tokens)


@dataclass
class Counting:
    """A session whose answer is the last token + 1, and which keeps what it was fed."""

    fed: list[tuple[int | None, list[int]]] = field(default_factory=list)
    broken: int | None = -1
    """The position whose step gives what is no number; none is the prefill."""
    scores: np.ndarray = field(default_factory=lambda: np.zeros((1, 2), np.float32))

    def prefill(self, tokens: Ids) -> Ids:
        return self._next(None, tokens)

    def decode(self, tokens: Ids, *, position: int) -> Ids:
        return self._next(position, tokens)

    def _next(self, position: int | None, tokens: Ids) -> Ids:
        assert (tokens == tokens[0]).all()
        self.fed.append((position, tokens[0].tolist()))
        self.scores = np.array([[0, np.nan if position == self.broken else 0]], np.float32)
        return tokens[:, -1] + 1


class Letters:
    """A tokenizer of letters that eats spaces at the beginning."""

    def encode(self, sequence: str) -> SimpleNamespace:
        return SimpleNamespace(ids=[ord(letter) for letter in sequence])

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids)).lstrip(" ")


@pytest.mark.parametrize(
    ("mesh", "num_tokens", "batch", "seq", "room"),
    [
        ("tp8", 13, 1, 13, 31),
        ("dp2tp4", 13, 2, 13, 31),
        ("tp4pp2", 13, 4, 13, 31),
        ("dp2pp2tp2", 13, 8, 13, 31),
        ("cp4tp2", 13, 1, 12, 32),
        ("tp8+sp", 13, 1, 8, 36),
        ("cp2tp4+sp", 31, 1, 24, 38),
        ("tp8+sp", 5, 1, 8, 28),
    ],
)
def test_a_mesh_takes_a_copy_for_each_sequence_and_the_tokens_that_it_can_split(
    mesh: str, num_tokens: int, batch: int, seq: int, room: int
) -> None:
    decoded = case(mesh, num_tokens=num_tokens)
    assert (decoded.batch, decoded.seq, decoded.room) == (batch, seq, room)


def test_experts_drop_nothing_and_split_the_batch() -> None:
    decoded = case("dp2ep4", num_tokens=13, model_name="tiny-moe")
    assert (decoded.capacity, decoded.batch) == (None, 8)


def test_a_prompt_with_fewer_tokens_than_parts_is_refused() -> None:
    with pytest.raises(MeshError, match="has 1 token, and mesh cp4tp2"):
        case("cp4tp2", num_tokens=1)
    with pytest.raises(MeshError, match="has 3 tokens, and mesh cp4tp2 splits it into 4 parts"):
        case("cp4tp2", num_tokens=3)


@pytest.mark.parametrize(
    ("mesh", "prompt", "fed"),
    [
        ("tp8", [5, 6, 7], [(None, [5, 6, 7]), (3, [8]), (4, [9])]),
        ("cp2tp4", [5, 6, 7], [(None, [5, 6]), (2, [7]), (3, [8]), (4, [9])]),
        ("tp4pp2+sp", [5, 6], [(0, [5]), (1, [6]), (2, [7]), (3, [8])]),
    ],
)
def test_what_a_mesh_cannot_split_is_decoded_one_by_one(
    mesh: str, prompt: list[int], fed: list[tuple[int | None, list[int]]]
) -> None:
    session, needed = Counting(), case(mesh, num_tokens=len(prompt), count=3)
    tokens = choose_tokens(session, prompt, case=needed, count=3, ends=frozenset())
    assert tokens == [prompt[-1] + 1, prompt[-1] + 2, prompt[-1] + 3]
    assert session.fed == fed
    last = max(position or 0 for position, _ in fed)
    assert last < needed.seq + needed.room


def test_an_answer_ends_where_the_model_says() -> None:
    needed = case("tp8", num_tokens=3)
    assert choose_tokens(Counting(), [5, 6, 7], case=needed, count=32, ends=frozenset({1, 10})) == [8, 9, 10]


@pytest.mark.parametrize(("broken", "step"), [(None, "the prefill"), (4, "the decode step at position 4")])
def test_an_answer_of_no_numbers_is_refused_by_its_step(broken: int | None, step: str) -> None:
    with pytest.raises(MeshError, match=f"the logits of {step} are not finite numbers; the weights are damaged"):
        choose_tokens(Counting(broken=broken), [5, 6, 7], case=case("tp8", num_tokens=3), count=4, ends=frozenset())


def test_no_more_tokens_are_asked_for_than_the_model_has_positions() -> None:
    options, known = request("tp8", "--max-new-tokens", "4"), model("tiny")
    assert build_case(options, model=known, num_tokens=12, positions=16).seq == 12
    for num_tokens, right in ((13, "ask for at most 3 with --max-new-tokens"), (16, "write a shorter prompt")):
        says = rf"has {num_tokens} tokens, and 4 more are asked for, but the model knows 16 positions .*; {right}"
        with pytest.raises(MeshError, match=says):
            build_case(options, model=known, num_tokens=num_tokens, positions=16)


def test_a_prompt_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(MeshError, match=r"the prompt is not UTF-8 \(character 2 is '\\udcff'\)"):
        encode_prompt(Letters(), "a\udcff")


def test_text_keeps_the_space_that_a_tokenizer_eats_at_the_beginning() -> None:
    words = Letters()
    assert decode_answer(words, encode_prompt(words, "two"), encode_prompt(words, " words")) == " words"


def test_a_prompt_of_nothing_is_refused() -> None:
    with pytest.raises(MeshError, match="has no tokens"):
        encode_prompt(Letters(), "")


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({"generation_config.json": '{"eos_token_id": [3, 4]}', "config.json": '{"eos_token_id": 2}'}, {3, 4}),
        ({"generation_config.json": "{}", "config.json": '{"eos_token_id": 2}'}, {2}),
        ({"config.json": "{}"}, set()),
    ],
)
def test_the_ends_are_those_of_the_generation_or_else_of_the_model(
    files: dict[str, str], ends: set[int], tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert read_end_ids(tmp_path) == ends


@pytest.mark.parametrize("text", ["[", "[1]", '{"eos_token_id": "</s>"}'])
def test_ends_that_are_none_are_refused_by_the_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(MeshError, match=r"config\.json"):
        read_end_ids(tmp_path)


def test_a_folder_without_a_tokenizer_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match=r"has no tokenizer\.json"):
        read_tokenizer(tmp_path, load=lambda path: Letters())


@pytest.mark.parametrize("words", [["--mesh", "tp8"], ["--max-new-tokens", "0"], ["--dtype", "f16"]])
def test_a_wrong_option_is_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        Request.read("jax_impl", words)
    assert stopped.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_json_says_what_was_read_and_what_was_chosen() -> None:
    answer = Answer(text=" b", tokens=(2,), prompt_tokens=(1,), case=case("tp8", num_tokens=1), seconds={"load": 1.5})
    assert json.loads(format_json(answer)) == {
        "text": " b",
        "tokens": [2],
        "prompt_tokens": [1],
        "mesh": "tp8",
        "dtype": "bf16",
        "seconds": {"load": 1.5},
    }


def test_what_would_steer_a_terminal_is_written_out() -> None:
    answer = Answer(text="é\n\x1b[2J", tokens=(), prompt_tokens=(), case=case("tp2", num_tokens=4), seconds={})
    assert format_text(answer) == "é\n\\x1b[2J"
