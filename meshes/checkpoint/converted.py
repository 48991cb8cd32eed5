"""A folder that `jax_impl.convert` wrote, by its manifest: the shape of each weight, and the files that hold it."""

import json
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self

from meshes.case import Case
from meshes.checkpoint.config import read_model
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.process.one_line import one_line
from meshes.weights import weights

MANIFEST = "converted.json"
"""Written last."""

WEIGHTS = "weights"
"""The folder that has a folder for each weight."""

BLOCK_BYTES = 2**22

AGAIN = "convert the checkpoint again"

Files = dict[str, tuple[int, int]]
"""Path in a weight's folder -> bytes and CRC-32."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One weight of the table."""

    shape: tuple[int, ...]
    files: Files


@dataclass(frozen=True, slots=True)
class ConvertedCheckpoint:
    """A folder of `jax_impl.convert`."""

    folder: Path
    weights: dict[str, Weight]

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read the table, and no weight.

        Raises `MeshError`, one line, if it is truncated, if config.json has other shapes, or if a file is missing or
        has another size.
        """
        model = read_model(folder)
        dtype, table = _table(folder / MANIFEST)
        right = {spec.name: spec.shape for spec in weights(Case.read("tp1", shapes=model, dtype=dtype))}
        shapes = {name: weight.shape for name, weight in table.items()}
        for name in sorted(set(right) | set(shapes)):
            if shapes.get(name) != right.get(name):
                raise MeshError(
                    f"{folder / MANIFEST} tells of {_told(name, shapes)}, and config.json of "
                    f"{_told(name, right)}; one of them was changed: {AGAIN}"
                )
        checkpoint = cls(folder, table)
        for name, weight in table.items():
            for file, (size, _) in weight.files.items():
                checkpoint._check_size(name, file, size)
        return checkpoint

    def check(self, name: str) -> Path:
        """The folder of a weight, after its checksums; raises `MeshError` where a file is not what was written."""
        for file, (size, crc) in self.weights[name].files.items():
            self._check_size(name, file, size)
            if checksum(self._folder(name) / file) != crc:
                raise MeshError(f"cannot restore {self._folder(name)}: {file} is not what was written; {AGAIN}")
        return self._folder(name)

    def _folder(self, name: str) -> Path:
        return self.folder / WEIGHTS / name

    def _check_size(self, name: str, file: str, size: int) -> None:
        path = self._folder(name) / file
        try:
            actual = path.stat().st_size if path.is_file() else None
        except OSError:  # of a name that no file can have
            actual = None
        if actual != size:
            problem = "is missing" if actual is None else f"has {actual} bytes instead of {size}"
            raise MeshError(f"cannot restore {self._folder(name)}: {one_line(file, most=200)} {problem}; {AGAIN}")


def is_converted(folder: Path) -> bool:
    """Whether `jax_impl.convert` wrote this folder; an incomplete one is refused."""
    if (folder / WEIGHTS).is_dir() and not (folder / MANIFEST).is_file():
        raise MeshError(f"{folder} is a conversion that was interrupted (no {MANIFEST}); {AGAIN}")
    return (folder / MANIFEST).is_file()


def files_of(folder: Path) -> Files:
    """Every file below a weight's folder."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): (path.stat().st_size, checksum(path)) for path in paths}


def write_table(folder: Path, *, dtype: str, table: dict[str, Weight]) -> None:
    rows = {name: {"shape": weight.shape, "files": weight.files} for name, weight in table.items()}
    (folder / MANIFEST).write_text(json.dumps({"dtype": dtype, "weights": rows}, indent=1) + "\n")


def checksum(path: Path) -> int:
    """CRC-32."""
    crc = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            crc = zlib.crc32(block, crc)
    return crc


def _table(path: Path) -> tuple[str, dict[str, Weight]]:
    try:
        read: Any = read_json(path)
        dtype, rows = read["dtype"], read["weights"]
        return dtype, {name: _weight(row) for name, row in rows.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise MeshError(
            f"{path} is not the table of shapes and files that jax_impl.convert writes; it is cut, or of "
            f"an earlier version: {AGAIN}"
        ) from None


def _told(name: str, shapes: dict[str, tuple[int, ...]]) -> str:
    return f"{name} {list(shapes[name])}" if name in shapes else f"no {name}"


def _weight(row: Any) -> Weight:
    files = {_inside(name): (int(size), int(crc)) for name, (size, crc) in row["files"].items()}
    return Weight(tuple(map(int, row["shape"])), files)


def _inside(name: str) -> str:
    """A path inside the weight's folder; `ValueError` for one that leads out of it."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
        raise ValueError(name)
    return name
