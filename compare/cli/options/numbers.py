"""Numbers of options: what reads one for argparse, and refuses another in one line."""

import argparse
import re
from collections.abc import Callable
from typing import TypeVar

from meshes.process.one_line import quote

Number = TypeVar("Number", int, float)


def number(read: Callable[[str], Number], allows: Callable[[Number], bool], says: str) -> Callable[[str], Number]:
    """The `type` of an option.  read: raises `ValueError` for what is no number.  says: what is wrong with `{}`."""

    def check(words: str) -> Number:
        try:
            if allows(value := read(words)):
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(says.format(quote(words)))

    return check


def digits(words: str) -> int:
    """Digits alone: Python's own also takes `+1`, `1_000` and spaces."""
    if not re.fullmatch(r"\d{1,19}", words, re.ASCII):
        raise ValueError(words)
    return int(words)


seconds = number(float, lambda value: 0 < value < float("inf"), "{} is no number of seconds greater than 0")
