"""A converted folder is what its table tells, by shapes, by sizes and by checksums; anything else is one line."""

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from meshes.checkpoint import read_model
from meshes.checkpoint.converted import ConvertedCheckpoint, Weight, files_of, is_converted, write_table
from meshes.process.errors import MeshError
from meshes.weights import weights
from tests.meshes.checkpoint.hub import case_on, config_of

UP = "layers.mlp.up"
DATA = Path("weights", UP, "ocdbt.process_0", "d", "numbers")


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `jax_impl.convert` writes it, but for the numbers."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "config.json").write_text(json.dumps(config_of("llama")))
    files = {}
    for spec in weights(case_on("tp1", read_model(folder), dtype="f32")):
        path = folder / "weights" / spec.name
        (path / "ocdbt.process_0" / "d").mkdir(parents=True)
        (path / "ocdbt.process_0" / "d" / "numbers").write_bytes(spec.name.encode() * 9)
        (path / "_METADATA").write_text("{}")
        files[spec.name] = Weight(spec.shape, files_of(path))
    write_table(folder, dtype="f32", table=files)
    return folder


def change(path: Path, change: Callable[[Any], object]) -> None:
    read = json.loads(path.read_text())
    change(read)
    path.write_text(json.dumps(read))


def swap(folder: Path) -> None:
    shutil.rmtree(folder / "weights" / UP)
    shutil.copytree(folder / "weights" / "layers.mlp.gate", folder / "weights" / UP)


def open_error(folder: Path) -> None:
    is_converted(folder)
    ConvertedCheckpoint.open(folder).check(UP)


def flip(path: Path) -> None:
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])


def test_what_was_written_is_whole(complete: Path) -> None:
    converted = ConvertedCheckpoint.open(complete)
    assert is_converted(complete)
    for name, weight in converted.weights.items():
        data = name.encode() * 9
        assert converted.check(name) == complete / "weights" / name
        assert weight.files == {
            "_METADATA": (2, zlib.crc32(b"{}")),
            "ocdbt.process_0/d/numbers": (len(data), zlib.crc32(data)),
        }


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda f: (f / DATA).unlink(), rf"cannot restore .*{UP}: ocdbt.process_0/d/numbers is missing; convert"),
        (lambda f: (f / DATA).write_bytes(b"layers"), rf"{UP}: .*numbers has 6 bytes instead of 117; convert the"),
        (lambda f: flip(f / DATA), rf"{UP}: .*numbers is not what was written; convert the checkpoint again"),
        (lambda f: shutil.rmtree(f / "weights" / UP), rf"cannot restore .*{UP}: _METADATA is missing"),
        (swap, rf"cannot restore .*{UP}: .*numbers has 135 bytes instead of 117"),
        (
            lambda f: change(f / "config.json", lambda c: c.update(num_hidden_layers=2)),
            r"converted.json tells of .* \[4, 1, .*\], and config.json of .* \[2, 1, .*\]; one of them was changed",
        ),
        (
            lambda f: change(f / "config.json", lambda c: c.update(tie_word_embeddings=True)),
            r"converted.json tells of head.table \[24, 40\], and config.json of no head.table",
        ),
        (
            lambda f: change(f / "converted.json", lambda t: t["weights"].pop(UP)),
            rf"tells of no {UP}, and config.json of {UP} \[4, 1, 24, 16\]",
        ),
        (
            lambda f: change(f / "converted.json", lambda t: t.update(weights={UP: [4, 1, 24, 16]})),
            "converted.json is not the table .* it is cut, or of an earlier version: convert the checkpoint again",
        ),
        (lambda f: (f / "converted.json").write_bytes((f / "converted.json").read_bytes()[:-9]), "it is cut, or of an"),
        (
            lambda f: change(f / "converted.json", lambda t: t["weights"][UP]["files"].update({"d" * 3000: [1, 1]})),
            f"{UP}: d+ … d+ is missing; convert",
        ),
        (lambda f: (f / "converted.json").unlink(), "is a conversion that was interrupted"),
    ],
)
def test_what_is_not_whole_is_told_in_one_line(
    damage: Callable[[Path], object], says: str, complete: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(complete, tmp_path / "made"))
    damage(folder)
    with pytest.raises(MeshError, match=says) as raised:
        open_error(folder)
    assert "\n" not in str(raised.value)
