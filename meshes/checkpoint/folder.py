"""A checkpoint's folder: its model, and slices of its weights."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from meshes.case import Case
from meshes.checkpoint.config import read_model
from meshes.checkpoint.converted import is_converted
from meshes.checkpoint.safetensors import DTYPES, OF_CASE, Entry, Files, entries
from meshes.checkpoint.slices import HEAD, Array, Index, check_shapes, check_tied, ranges, read_slice
from meshes.checkpoint.tables import Source, sources
from meshes.models import Model
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.weights import WeightSpec

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A Hugging Face folder: config.json, and model.safetensors or several files with an index."""

    folder: Path
    model: Model
    entries: dict[str, Entry]
    sources: dict[str, Source]
    """Weight -> the tensor that holds it."""

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Read the folder's tables, and no tensor, unless a tied head is stored separately.

        Raises `MeshError`, one line, if a file is missing or truncated, a tensor is missing, unknown, or of another
        dtype or shape, a tied head differs from the embedding, or config.json requests what is not implemented here.
        """
        path, model = Path(folder), read_model(folder)
        entries = _entries(path)
        try:
            where = sources(model, names=frozenset(entries))
            tensors = Files(entries, "F32")
            check_shapes(where.values(), tensors=tensors, model=model)
            if model.tied and HEAD in entries:
                check_tied(tensors)
        except MeshError as error:
            raise MeshError(f"{path}: {error}") from None
        return cls(path, model, entries, where)

    def read(self, spec: WeightSpec, index: Index, case: Case) -> Array:
        """The slice `index` of a stacked weight, in the case's dtype: float32, or bf16 as its bits (uint16).

        Reads what the slice needs and no more, and holds a few MB beside the result.  KV heads come with their copies.
        """
        dtype = OF_CASE[case.dtype]
        shape = [len(taken) for taken in ranges(index, shape=spec.shape)]
        out = np.empty(shape, DTYPES[dtype])
        read_slice(
            spec, source=self.sources[spec.row], tensors=Files(self.entries, dtype), case=case, index=index, out=out
        )
        return out


def _entries(path: Path) -> dict[str, Entry]:
    """Every tensor of the folder: of the files that the index names, or of the single file."""
    if not (path / INDEX).exists():
        if not (path / SINGLE).exists():
            present = ", ".join(sorted(file.name for file in path.iterdir() if file.suffix in (".safetensors", ".bin")))
            if is_converted(path):
                raise MeshError(f"{path} is an Orbax folder of jax_impl.convert; give the Hugging Face folder")
            raise MeshError(
                f"{path} has neither {SINGLE} nor {INDEX}, but {present or 'no weights'}; both are Hugging Face's names"
            )
        return entries(path / SINGLE)
    weight_map = _weight_map(path / INDEX)
    files = {name: entries(path / name) for name in sorted(set(weight_map.values())) if _there(path / name)}
    for tensor, name in weight_map.items():
        if tensor not in files[name]:
            raise MeshError(f"{path / INDEX} says that {tensor!r} is in {name}, but it is not")
    return {tensor: files[name][tensor] for tensor, name in weight_map.items()}


def _there(path: Path) -> bool:
    if not path.is_file():
        raise MeshError(f"{path.parent} has no {path.name}, which its index names; fetch it")
    return True


def _weight_map(path: Path) -> dict[str, str]:
    try:
        read: Any = read_json(path)
    except OSError as error:
        raise MeshError(f"cannot read {path}: {error.strerror}") from None
    except MeshError as error:
        raise MeshError(f"{path} is no index of safetensors files: it is {error}") from None
    weight_map = read.get("weight_map") if isinstance(read, dict) else None
    if not isinstance(weight_map, dict):
        raise MeshError(f"{path} is no index of safetensors files: it has no table weight_map of files by tensor")
    for tensor, name in weight_map.items():
        if not _plain(name):
            raise MeshError(
                f"{path} is no index of safetensors files: it says that {tensor!r} is in {json.dumps(name)[:80]}; it "
                f"must be a file of the same folder"
            )
    return weight_map


def _plain(name: Any) -> bool:
    """Whether this names a file of the same folder."""
    return isinstance(name, str) and Path(name).name == name and name not in ("", "..") and "\0" not in name
