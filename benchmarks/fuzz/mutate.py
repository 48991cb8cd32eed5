"""Damage: what becomes of a file that is cut, edited by hand, sent through the wrong tool, or written to do harm."""

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

NUMBERS = (
    "0", "-1", "1", "7", "2147483648", "4294967296", "9223372036854775807", "-9223372036854775808", "1e308", "-0",
    "18446744073709551616", "131073", "0.5", "9" * 400, "9" * 5000, "Infinity", "NaN", "0x7f", "1_000", "٣",
)  # fmt: skip
"""What a number may turn into."""
PIECES = (
    "}", "{", "\n}\n", "\n", "\r", "\t", " ", '"', "'", "\\", "(", ")", "[", "]", ",", "=", "%", "ROOT ", "ENTRY ",
    "//", "/*", "*/", "\x1b[31m", "\x07", "\0", "\u2028", "\u202e", "\N{NO-BREAK SPACE}", "\ud7ff", "é", "…", " = ",
    "all-reduce(", " all-gather(", "-done", "-start", "../", "/dev/zero", "HloModule m\n", "<script>", "%s", "{...}",
)  # fmt: skip
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LONG = 3000
"""Repetitions of a piece, so that a reader with quadratic backtracking shows."""

Mutation = Callable[[str, random.Random], str]


def _at(text: str, rng: random.Random) -> int:
    return rng.randint(0, len(text))


def _span(text: str, rng: random.Random) -> tuple[int, int]:
    begin = _at(text, rng)
    return begin, min(len(text), begin + rng.choice((1, 1, 2, 5, 20, 100, 1000)))


def delete(text: str, rng: random.Random) -> str:
    begin, end = _span(text, rng)
    return text[:begin] + text[end:]


def insert(text: str, rng: random.Random) -> str:
    at = _at(text, rng)
    return text[:at] + rng.choice(PIECES) + text[at:]


def replace(text: str, rng: random.Random) -> str:
    at = _at(text, rng)
    return text[:at] + (rng.choice(PIECES) if rng.random() < 0.5 else chr(rng.randint(32, 126))) + text[at + 1 :]


def repeat(text: str, rng: random.Random) -> str:
    begin, end = _span(text, rng)
    return text[:end] + text[begin:end] + text[end:]


def stretch(text: str, rng: random.Random) -> str:
    """A small piece, very often."""
    begin = _at(text, rng)
    piece = text[begin : begin + rng.randint(1, 12)] if rng.random() < 0.5 else rng.choice(PIECES)
    return text[:begin] + piece * _LONG + text[begin:]


def number(text: str, rng: random.Random) -> str:
    """Another number in the place of one."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return insert(text, rng)
    chosen = rng.choice(numbers)
    return text[: chosen.start()] + rng.choice(NUMBERS) + text[chosen.end() :]


def cut(text: str, rng: random.Random) -> str:
    return text[: _at(text, rng)] if rng.random() < 0.7 else text[_at(text, rng) :]


def line(text: str, rng: random.Random) -> str:
    """A line lost, twice, in another place, or one with the next."""
    lines = text.split("\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    choice = rng.randrange(5)
    if choice == 0:
        del lines[at]
    elif choice == 1:
        lines.insert(at, lines[at])
    elif choice == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif choice == 3 and at + 1 < len(lines):
        lines[at : at + 2] = [lines[at] + rng.choice((" ", "")) + lines[at + 1]]
    else:
        lines.insert(at, rng.choice(("}", "{", "//", "", "x", "ENTRY main {", "a = f32[8] add(b, c)")))
    return "\n".join(lines)


TEXT: Sequence[Mutation] = (delete, insert, insert, replace, replace, repeat, stretch, number, number, cut, line, line)


def text(given: str, rng: random.Random) -> str:
    """One to three things that befall a text."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        given = rng.choice(TEXT)(given, rng)
    return given


def data(given: bytes, rng: random.Random) -> bytes:
    """The same of bytes."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, size = rng.randint(0, len(given)), rng.choice((1, 1, 2, 8, 100))
        choice = rng.randrange(7)
        if choice == 0:
            given = given[:at] + given[at + size :]
        elif choice == 1:
            given = given[:at] + rng.choice((b"\xff" * 9 + b"\x01", b"\0", b"\x80", b"\x12\0" * 50)) + given[at:]
        elif choice == 2:
            given = given[:at] + rng.randbytes(size) + given[at + size :]
        elif choice == 3:
            given = given[:at] + given[at : at + size] * 2 + given[at + size :]
        elif choice == 4:
            given = given[:at]
        elif at < len(given):
            given = given[:at] + bytes([given[at] ^ 1 << rng.randrange(8)]) + given[at + 1 :]
    return given


def values(rng: random.Random) -> Any:
    """What a value of JSON may turn into."""
    deep: list[Any] = []
    for _ in range(rng.choice((3, 900))):
        deep = [deep]
    return rng.choice(
        (None, True, False, 0, -1, 1.5, 2**31, 2**63, 10**12, 10**400, 1e308, float("inf"), float("nan"), "", "x",
         "../..", "/dev/zero", "\x1b[31m", "a\nb", "٣", "9" * 5000, "x" * 5000, [], {}, [[]], [None], {"": {}}, deep)
    )  # fmt: skip


def tree(given: str, rng: random.Random) -> str:
    """JSON with another value somewhere, one name less, one more; or as any text."""
    if rng.random() < 0.3:
        return text(given, rng)
    if rng.random() < 0.02:
        return rng.choice(("[", '{"a":')) * 100_000
    root = [json.loads(given)]
    places: list[tuple[Any, Any]] = []
    todo: list[Any] = [root]
    while todo:
        now = todo.pop()
        here = list(now) if isinstance(now, dict) else list(range(len(now)))
        places += [(now, at) for at in here]
        todo += [now[at] for at in here if isinstance(now[at], dict | list)]
    for _ in range(rng.choice((1, 1, 2))):
        where, at = rng.choice(places)
        if rng.random() < 0.2 and isinstance(where, dict):
            where.pop(at, None)
        elif rng.random() < 0.1 and isinstance(where, dict):
            where[str(values(rng))[:50]] = values(rng)
        else:
            where[at] = values(rng)
    return json.dumps(root[0])
