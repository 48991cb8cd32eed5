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
        return read(_decode(data))
    except HloError as error:
        raise HloError(f"{'standard input' if str(path) == '-' else path}: {error}") from None


def _decode(data: bytes) -> str:
    if data.startswith(_GZIP):
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error):
            raise HloError("the gzip file is cut or damaged") from None
    if data.startswith(_MLIR_BYTECODE):
        raise HloError("this is StableHLO bytecode, the program before the compiler; give the compiled HLO text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HloError("a binary file, where HLO text was expected (as compiled.as_text() writes it)") from None
    if "\0" in text:
        raise HloError("a binary file, where HLO text was expected (as compiled.as_text() writes it)")
    return text
