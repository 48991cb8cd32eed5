"""Read untrusted JSON and TOML with limits on size, depth and numbers.

Whatever a file holds, reading it takes less than 2 GiB and a few seconds, and ends in a value or in one line.
"""

import json
import math
import re
import stat
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Never

from meshes.process.errors import MeshError
from meshes.process.one_line import one_line

JSON_BYTES = 1 << 25
"""Of a JSON file.  The largest that is written here has a tenth; Python needs up to 30 bytes for one of the text."""

TOML_BYTES = 1 << 16
"""Of a TOML file: a mesh is ten lines."""

DEPTH = 64
"""Tables and lists in each other."""

LARGEST = 2**63 - 1
"""Of whole numbers, as of every other reader of JSON that keeps them whole."""

_DOTS = 100
"""In a line of TOML: a key of many parts takes time in their square."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_json(path: Path) -> Any:
    """A file's value.  `OSError` where it can't be opened, `MeshError`, one line, where it is not JSON."""
    return parse_json(_bytes(path, JSON_BYTES, "JSON"))


def parse_json(text: str | bytes) -> Any:
    """The value of a text.  The message of the `MeshError` continues `FILE is`."""
    try:
        words = text if isinstance(text, str) else text.decode("utf-8-sig")
        value = json.loads(words, parse_int=_whole, parse_float=_finite, parse_constant=_no_number)
        _check_depth(value)
        if _SURROGATE.search(words):
            json.dumps(value, ensure_ascii=False).encode()
    except MeshError:
        raise
    except RecursionError:
        raise MeshError(_too_deep()) from None
    except ValueError as error:
        raise MeshError(f"not JSON: {one_line(error, most=200)}") from None
    return value


def read_toml(path: Path) -> dict[str, Any]:
    """A file's table.  `OSError` where it can't be opened, `MeshError`, one line, where it is not TOML."""
    try:
        text = _bytes(path, TOML_BYTES, "TOML").decode()
        for number, line in enumerate(text.splitlines(), start=1):
            if line.count(".") > _DOTS:
                raise MeshError(
                    f"not TOML that can be read: line {number} has more than {_DOTS} dots; a key has one or two parts"
                )
        table = tomllib.loads(text)
        _check_depth(table)
    except MeshError:
        raise
    except RecursionError:
        raise MeshError(_too_deep()) from None
    except ValueError as error:
        raise MeshError(f"not TOML: {one_line(error, most=200)}") from None
    return table


def _bytes(path: Path, most: int, kind: str) -> bytes:
    """At most `most` bytes, of a regular file: a pipe might never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise MeshError(f"no file; a {kind} file was expected")
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise MeshError(f"larger than {most:,} bytes, which is the most that is read as {kind}")
    return data


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH + 1):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level = [each for values in inner for each in values if isinstance(each, dict | list)]
        if not level:
            return
    raise MeshError(_too_deep())


def _too_deep() -> str:
    return f"nested deeper than {DEPTH} tables and lists, which is the most that is read"


def _whole(digits: str) -> int:
    if len(digits) > 20 or not -LARGEST - 1 <= int(digits) <= LARGEST:
        raise MeshError(
            f"not JSON that can be read: the whole number {one_line(digits, most=200)} is too large; 64 bits are read"
        )
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise MeshError(f"not JSON that can be read: the number {one_line(digits, most=200)} is too large")
    return value


def _no_number(word: str) -> Never:
    raise MeshError(f"not JSON: {word} is none of its numbers")


def name_unknown_key(key: str, known: Sequence[str], place: str = "") -> str:
    """`time.hop: unknown key, nearest is hop_s; known are …`: the line for a key that a table may not have."""
    from difflib import get_close_matches  # only for what is wrong

    near = get_close_matches(key[:100], known, n=1, cutoff=0.7)
    nearest = f", nearest is {near[0]}" if near else ""
    return f"{place}{one_line(key, most=200)}: unknown key{nearest}; known are {', '.join(known)}"
