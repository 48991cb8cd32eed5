"""Safetensors files: their headers, and slices of their tensors.

A file is a length (8 bytes, little-endian), so many bytes of JSON, and the numbers of each tensor, row-major.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from meshes.checkpoint.slices import BLOCK_BYTES, Array
from meshes.process.documents import JSON_BYTES, parse_json
from meshes.process.errors import MeshError
from meshes.process.one_line import one_line, quote

DTYPES: Mapping[str, np.dtype[Any]] = MappingProxyType(
    {
        "BF16": np.dtype("<u2"),
        "F16": np.dtype("<f2"),
        "F32": np.dtype("<f4"),
    }
)
"""safetensors' name of a dtype -> numpy's; bf16 is kept as its bits."""

OF_CASE: Mapping[str, str] = MappingProxyType({"bf16": "BF16", "f32": "F32"})
"""By the `dtype` of a `Case`."""

LARGEST_HEADER = JSON_BYTES
"""Bytes.  The format allows three times as many; 60,000 tensors take a quarter."""

LFS_POINTER = b"version https://git-lfs"
"""What a file begins with where Git LFS has not fetched it."""

PAGE = 4096
"""Bytes of a row from which a partial read pays; below it full rows are read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """The location of one tensor."""

    path: Path
    dtype: str
    """BF16, F16 or F32."""
    shape: tuple[int, ...]
    start: int
    """Bytes into the file."""


@dataclass(frozen=True, slots=True)
class Files:
    """The tensors of one or several files."""

    entries: dict[str, Entry]
    wanted: str
    """The dtype of the result, like BF16 (as bits, uint16)."""

    def shape(self, name: str) -> tuple[int, ...]:
        return self.entries[name].shape

    def matrix(self, name: str, *, lead: tuple[int, ...], rows: range, columns: range) -> Array:
        entry = self.entries[name]
        return convert_dtype(_read(entry, lead, rows, columns), kept=entry.dtype, wanted=self.wanted)


def _read(entry: Entry, lead: tuple[int, ...], rows: range, columns: range) -> Array:
    """Rows and columns of a matrix in the file's dtype: partial rows where that saves much, else full rows."""
    width, dtype = entry.shape[-1], DTYPES[entry.dtype]
    first = sum(at * prod(entry.shape[dim + 1 :]) for dim, at in enumerate(lead)) + rows.start * width
    start = entry.start + first * dtype.itemsize
    apart = len(columns) < width and len(columns) * dtype.itemsize >= PAGE
    step = 1 if apart else max(BLOCK_BYTES // (width * dtype.itemsize), 1)
    out = np.empty((len(rows), len(columns)), dtype)
    with entry.path.open("rb", buffering=0) as file:
        for at in range(0, len(rows), step):
            part = out[at : at + step]
            rows_block = part if apart or len(columns) == width else np.empty((len(part), width), dtype)
            file.seek(start + (at * width + (columns.start if apart else 0)) * dtype.itemsize)
            _read_into(file, rows_block, entry.path)
            if rows_block is not part:
                part[...] = rows_block[:, columns.start : columns.stop]
    return out


def _read_into(file: Any, out: Array, path: Path) -> None:
    view = out.data.cast("B")
    while len(view):
        count = file.readinto(view)
        if not count:
            raise MeshError(f"{path} ends before its tensors do; it was cut while it was read")
        view = view[count:]


def entries(path: Path) -> dict[str, Entry]:
    """The tensors of a file by name.  Raises `MeshError`, one line, for a file of another format or a truncated one."""
    header, begin = _header(path)
    size = path.stat().st_size
    table = {name: _entry(name, row, path=path, begin=begin) for name, row in header.items() if name != "__metadata__"}
    ends = [entry.start + prod(entry.shape) * DTYPES[entry.dtype].itemsize for entry in table.values()]
    if max(ends, default=begin) != size:
        raise MeshError(
            f"{path} has {size} bytes, but its header tells of {max(ends, default=begin)}; it is cut or damaged: "
            f"fetch it again"
        )
    return table


def _header(path: Path) -> tuple[dict[str, Any], int]:
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            text = file.read(length) if length <= LARGEST_HEADER else b""
    except OSError as error:
        raise MeshError(f"cannot read {path}: {error.strerror}") from None
    if length.to_bytes(8, "little") == LFS_POINTER[:8]:
        raise MeshError(f"{path} is a Git LFS pointer, without the tensors; fetch them by `git lfs pull`")
    if len(text) < max(length, 2):
        raise MeshError(f"{path} is cut, or no safetensors file: its header is not whole; fetch it again")
    try:
        header = parse_json(text)
    except MeshError as error:
        raise MeshError(f"{path} is no safetensors file: its header is {error}; fetch it again") from None
    if not isinstance(header, dict):
        raise MeshError(f"{path} is no safetensors file: its header is no JSON table; fetch it again")
    return header, 8 + length


def _entry(name: str, row: Any, *, path: Path, begin: int) -> Entry:
    try:
        dtype, shape, (start, end) = row["dtype"], _sizes(row["shape"]), _sizes(row["data_offsets"])
    except (KeyError, TypeError, ValueError):
        raise MeshError(f"{path} is damaged: its header tells of {quote(name)} {json.dumps(row)[:80]}") from None
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise MeshError(
            f"tensor {quote(name)} of {path} is of dtype {one_line(dtype, most=200)}; read are {', '.join(DTYPES)}"
        )
    if end - start != prod(shape) * DTYPES[dtype].itemsize:
        raise MeshError(
            f"{path} is damaged: {quote(name)} has {end - start} bytes, but {dtype}{quote(list(shape))} has "
            f"{prod(shape) * DTYPES[dtype].itemsize}"
        )
    return Entry(path, dtype, shape, begin + start)


def _sizes(value: Any) -> tuple[int, ...]:
    """Whole numbers from 0; `ValueError` for anything else, like Infinity."""
    if not isinstance(value, list) or not all(type(each) is int and each >= 0 for each in value):
        raise ValueError(value)
    return tuple(value)


def convert_dtype(block: Array, *, kept: str, wanted: str) -> Array:
    """Convert between dtypes, rounding to nearest, ties to even, as both frameworks do."""
    if kept == wanted:
        return block
    single = widen_bf16(block) if kept == "BF16" else block.astype(np.float32)
    return {"F32": single, "BF16": round_to_bf16(single)}[wanted] if wanted != "F32" else single


def widen_bf16(bits: Array) -> Array:
    """bf16 as float32, exactly: its bits are the upper half."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def round_to_bf16(single: Array) -> Array:
    """float32 as the bits of bf16; NaN stays NaN."""
    bits = np.ascontiguousarray(single).view(np.uint32)
    upper = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(single), (bits >> 16) | 0x40, upper).astype(np.uint16)
