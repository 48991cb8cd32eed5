"""Folders that are not whole, or not what they say: one line each, that names the file or the tensor."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from meshes.checkpoint import Checkpoint
from meshes.checkpoint.safetensors import entries
from meshes.process.errors import MeshError
from meshes.weights import weights
from tests.meshes.checkpoint.hub import CONFIGS, case_on, config_of, state_of, write

INDEX = "model.safetensors.index.json"
SECOND = "model-00002-of-00003.safetensors"


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = config_of("llama")
    return write(tmp_path_factory.mktemp("there") / "whole", config, state_of(config), files=3)


def rewrite(folder: Path, change: Callable[[dict[str, np.ndarray]], None]) -> None:
    """The second file, with its tensors changed and a right header."""
    tensors = load_file(folder / SECOND)
    change(tensors)
    save_file(tensors, folder / SECOND)


def cut_file(folder: Path, *, to: int) -> None:
    (folder / SECOND).write_bytes((folder / SECOND).read_bytes()[:to])


def reindex(folder: Path, change: Callable[[dict[str, str]], None]) -> None:
    index = json.loads((folder / INDEX).read_text())
    change(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))


def header(folder: Path, text: str) -> None:
    (folder / SECOND).write_bytes(len(text).to_bytes(8, "little") + text.encode() + b"\0" * 8)


NORM = "model.layers.1.input_layernorm.weight"


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: (f / SECOND).unlink(), rf"has no {SECOND}, which its index names; fetch it"),
        (lambda f: cut_file(f, to=-4), rf"{SECOND} has \d+ bytes, but its header tells of \d+; it is cut or damaged"),
        (lambda f: cut_file(f, to=100), rf"{SECOND} is cut, or no safetensors file: its header is not whole"),
        (lambda f: cut_file(f, to=5), rf"whole/{SECOND} is cut, or no safetensors file"),
        (lambda f: (f / SECOND).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"),
         rf"whole/{SECOND} is a Git LFS pointer, without the tensors; fetch them"),
        (lambda f: cut_file(f, to=0), rf"{SECOND} is cut, or no safetensors file"),
        (lambda f: header(f, "x" * 40), rf"{SECOND} is no safetensors file: its header is not JSON"),
        (lambda f: header(f, '{"a": {"dtype": "F32"}}'), rf"{SECOND} is damaged: its header tells of 'a'"),
        (lambda f: header(f, '{"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 8]}}'),
         r"damaged: 'a' has 8 bytes, but F32\[2, 2\] has 16"),
        (lambda f: header(f, '{"a": {"dtype": "F8_E4M3", "shape": [8], "data_offsets": [0, 8]}}'),
         rf"tensor 'a' of .*whole/{SECOND} is of dtype F8_E4M3; read are BF16, F16, F32"),
        (lambda f: rewrite(f, lambda t: t.update({n: np.zeros((3, 3), np.float32) for n in list(t)[:1]})),
         r"tensor '.*' of the checkpoint has shape \(3, 3\); whole needs \("),
        (lambda f: rewrite(f, lambda t: t.update({n: np.ones((), np.float32) for n in list(t)[:1]})),
         r"tensor '.*' of the checkpoint has shape \(\); whole needs"),
        (lambda f: rewrite(f, lambda t: t.update({n: t[n].astype(np.int32) for n in list(t)[:1]})),
         r"tensor '.*' of .* is of dtype I32"),
        (lambda f: rewrite(f, lambda t: t.pop(sorted(t)[0])),
         rf"{INDEX} says that '.*' is in {SECOND}, but it is not"),
        (lambda f: reindex(f, lambda m: m.pop(NORM)), rf"the checkpoint has no '{NORM}'; llama of 4 layers needs it"),
        (lambda f: reindex(f, lambda m: [m.pop(n) for n in list(m) if "layers.1." in n]),
         r"no '.*', '.*', '.*' and 6 more"),
        (lambda f: rewrite_index(f, "model.layers.4.input_layernorm.weight"),
         r"has 'model\.layers\.4\.input_layernorm\.weight', which llama of 4 layers does not have"),
        (lambda f: rewrite_index(f, "model.layers.0.self_attn.q_proj.bias"),
         r"q_proj\.bias', which llama of 4 layers"),
        (lambda f: reindex(f, lambda m: m.update({NORM: "../elsewhere.safetensors"})),
         rf"it says that '{NORM}' is in \"../elsewhere.safetensors\"; it must be a file of the same folder"),
        (lambda f: reindex(f, lambda m: m.update({NORM: None})), rf"it says that '{NORM}' is in null; it must be a"),
        (lambda f: reindex(f, lambda m: m.update({f"{NORM}s": m.pop(NORM)})), rf"says that '{NORM}s' is in .*, but"),
        (lambda f: rename(f), rf"has no '{NORM}', but '{NORM}s', which is unknown; llama of 4 layers needs it"),
        (lambda f: (f / INDEX).write_text("{"), "is no index of safetensors files: it is not JSON: Expecting"),
        (lambda f: (f / INDEX).write_text('{"weight_map": [1]}'), "is no index of safetensors files: it has no table"),
        (lambda f: (f / INDEX).write_text("[1]"), "is no index of safetensors files: it has no table weight_map"),
        (lambda f: convert(f), "is an Orbax folder of jax_impl.convert; give the Hugging Face folder"),
        (lambda f: (f / INDEX).unlink(), "has neither model.safetensors nor .*index.json, but model-00001-of-00003"),
        (lambda f: [file.unlink() for file in f.glob("*saf*")], "has neither .*, but no weights"),
    ],
)  # fmt: skip
def test_what_is_not_whole_is_told_in_one_line(
    damage: Callable[[Path], object], says: str, complete: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(complete, tmp_path / "whole"))
    damage(folder)
    with pytest.raises(MeshError, match=says) as raised:
        Checkpoint.open(folder)
    assert "\n" not in str(raised.value)
    assert str(folder) in str(raised.value) or SECOND in str(raised.value)


def rename(folder: Path) -> None:
    rows = json.loads((folder / INDEX).read_text())["weight_map"]
    tensors = load_file(folder / rows[NORM])
    tensors[f"{NORM}s"] = tensors.pop(NORM)
    save_file(tensors, folder / rows[NORM])
    reindex(folder, lambda weight_map: weight_map.update({f"{NORM}s": weight_map.pop(NORM)}))


def convert(folder: Path) -> None:
    for file in folder.glob("*saf*"):
        file.unlink()
    (folder / "converted.json").write_text("{}")


def rewrite_index(folder: Path, name: str) -> None:
    rewrite(folder, lambda tensors: tensors.update({name: np.zeros(24, np.float32)}))
    reindex(folder, lambda weight_map: weight_map.update({name: SECOND}))


def test_a_file_that_is_cut_while_it_is_read_is_told(complete: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(complete, tmp_path / "whole"))
    checkpoint = Checkpoint.open(folder)
    for file in folder.glob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:-100])
    case = case_on("tp1", checkpoint.model)
    last = {max(entries(file).items(), key=lambda row: row[1].start)[0] for file in complete.glob("*.safetensors")}
    spec = next(spec for spec in weights(case) if last & set(checkpoint.sources[spec.name].each(case.model)))
    with pytest.raises(MeshError, match="ends before its tensors do"):
        checkpoint.read(spec, (slice(None),) * len(spec.shape), case)


@pytest.mark.parametrize("family", CONFIGS)
def test_a_tied_head_is_not_read_whether_it_is_there_or_not(family: str, tmp_path: Path) -> None:
    config = config_of(family, tie_word_embeddings=True)
    state = state_of(config)
    for name, more in (("without", {}), ("with", {"lm_head.weight": state["model.embed_tokens.weight"]})):
        checkpoint = Checkpoint.open(write(tmp_path / name, config, state | more))
        assert checkpoint.model.tied
        assert "head.table" not in checkpoint.sources


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_tied_head_that_differs_is_refused(dtype: str, tmp_path: Path) -> None:
    config = config_of("llama", tie_word_embeddings=True, vocab_size=4000)
    state = state_of(config)
    head = state["model.embed_tokens.weight"].copy()
    Checkpoint.open(write(tmp_path / "same", config, state | {"lm_head.weight": head}, dtype=dtype))
    head[-1, -1] += 1
    for name, wrong in (("other", head), ("short", head[:-1])):
        folder = write(tmp_path / name, config, state | {"lm_head.weight": wrong}, dtype=dtype)
        with pytest.raises(
            MeshError, match=r"tie_word_embeddings is true, but 'lm_head.weight' differs from 'model\.em"
        ):
            Checkpoint.open(folder)


def test_old_llamas_keep_their_frequencies_beside_their_weights(tmp_path: Path) -> None:
    config = config_of("llama")
    more = {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": np.ones(3, np.float32) for layer in range(4)}
    Checkpoint.open(write(tmp_path / "old", config, state_of(config) | more))


def test_headers_are_read_as_the_library_reads_them(complete: Path) -> None:
    from safetensors import safe_open

    for path in complete.glob("*.safetensors"):
        read_entries = entries(path)
        with safe_open(path, "np") as file:
            assert set(file.keys()) == set(read_entries)
            for name in read_entries:
                part = file.get_slice(name)
                assert (tuple(part.get_shape()), part.get_dtype()) == (
                    read_entries[name].shape,
                    read_entries[name].dtype,
                )
