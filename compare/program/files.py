"""HLO text in files, gzipped or not, and what else they turn out to hold."""

import gzip
import sys
import zlib
from pathlib import Path

from compare.program.errors import HloError
from compare.program.text import Module, read

_GZIP = b"\x1f\x8b"
_MLIR_BYTECODE = b"ML\xefR"


def read_file(path: str | Path) -> Module:
    """Read one file, or `-`: standard input.

    `OSError` where it can't be opened, `HloError` where it holds no HLO text; either names it.
    """
    data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    try:
        return read(_decode(unzipped(data)))
    except HloError as error:
        raise HloError(f"{'standard input' if str(path) == '-' else path}: {error}") from None


def unzipped(data: bytes) -> bytes:
    """What is in a gzip file; of anything else the thing itself."""
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error):
        raise HloError("the gzip file is cut or damaged") from None


def text_of(data: bytes) -> str | None:
    """The text that these bytes are; None where they are none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _decode(data: bytes) -> str:
    if data.startswith(_MLIR_BYTECODE):
        raise HloError("this is StableHLO bytecode, the program before the compiler; give the compiled HLO text")
    text = text_of(data)
    if text is None:
        raise HloError("a binary file, where HLO text was expected (as compiled.as_text() writes it)")
    return text
