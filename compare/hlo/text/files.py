"""Read files of HLO text or protos, gzipped or not, with limits on their size."""

import gzip
import io
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

from compare.hlo.text.errors import COMPILED, HloError
from compare.hlo.text.module import Module, read

_GZIP = b"\x1f\x8b"
_MLIR_BYTECODE = b"ML\xefR"
MOST_BYTES = 1 << 28
"""Limit for one unpacked program: 20 times the largest seen; reading takes five times its size in memory."""


def read_file(path: str | Path, *, binary: Callable[[bytes], str] | None = None) -> Module:
    """Read one file, or `-`: standard input.

    binary: writes the text of a serialized module; without it, text alone is read.
    `OSError` where it can't be opened, `HloError` where it holds no HLO, or is too large; either names it.
    """
    try:
        return read(_decode(decompress(read_bytes(path)), binary))
    except HloError as error:
        raise HloError(f"{'standard input' if str(path) == '-' else path}: {error}") from None


def read_bytes(path: str | Path, *, most: int = MOST_BYTES) -> bytes:
    """All bytes of a file, or of standard input (`-`).  `HloError` where it has more than `most` bytes."""
    if str(path) == "-":
        data = sys.stdin.buffer.read(most + 1)
    else:
        with Path(path).open("rb") as file:
            data = file.read(most + 1)
    return _checked(data, "the file", most)


def decompress(data: bytes, *, most: int = MOST_BYTES) -> bytes:
    """The content of gzipped data; any other data unchanged.  `HloError` beyond `most` bytes."""
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _checked(file.read(most + 1), "the gzip file, unpacked,", most)
    except (EOFError, OSError, zlib.error):
        raise HloError("the gzip file is cut or damaged") from None


def _checked(data: bytes, what: str, most: int) -> bytes:
    if len(data) > most:
        raise HloError(f"{what} is larger than {most >> 20} MiB, which is the most that is read")
    return data


def decode_text(data: bytes) -> str | None:
    """The bytes decoded as text; None where they are no text."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _decode(data: bytes, binary: Callable[[bytes], str] | None) -> str:
    if data.startswith(_MLIR_BYTECODE):
        raise HloError(f"this is StableHLO bytecode, the program before the compiler; {COMPILED}")
    text = decode_text(data)
    if text is None and binary is not None:
        return binary(data)
    if text is None:
        raise HloError("a binary file, where HLO text was expected (as compiled.as_text() writes it)")
    return text
