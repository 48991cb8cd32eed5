"""The attributes that follow an instruction's operands: `, key=value` with brackets and quotes inside."""

import re

_KEY = re.compile(r"\s*,?\s*([\w\-.]+)=")
_MARK = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|[{(\[]|[})\]]|,")
_BRACKET = re.compile(r"\"(?:[^\"\\]|\\.)*\"|[()]")
_NAME = re.compile(r"[\w.\-]+")
CALL = re.compile(
    r", (?:calls|to_apply|condition|body|branch_computations|true_computation|false_computation"
    r"|called_computations)=(\{[^}]*\}|%?[\w.\-]+)"
)
"""An attribute that names computations, and the names."""

_COMMENT = re.compile(r"/\*.*?\*/")


def names(text: str) -> list[str]:
    """The names in `%a` or `{%a, %b}`."""
    return _NAME.findall(text)


def close_of(text: str, start: int) -> int:
    """Where the parenthesis that was opened just before `start` closes; -1 where it does not."""
    end = text.find(")", start)
    if text.find("(", start, end) < 0 and text.find('"', start, end) < 0:
        return end
    depth = 1
    for mark in _BRACKET.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if depth == 0:
            return mark.start()
    return -1


def split_top(text: str) -> list[str]:
    """Split at the commas that stand in no bracket and no quotes; empty parts and comments are dropped."""
    text = _COMMENT.sub("", text) if "/*" in text else text
    parts, depth, start = [], 0, 0
    for mark in _MARK.finditer(text):
        if mark[0] == ",":
            if depth == 0:
                parts.append(text[start : mark.start()])
                start = mark.end()
        elif len(mark[0]) == 1:
            depth += 1 if mark[0] in "{([" else -1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def read_attributes(text: str, at: int) -> dict[str, str]:
    """Every attribute from `at` on, its value as written."""
    found: dict[str, str] = {}
    while key := _KEY.match(text, at):
        at = _end(text, key.end())
        found[key[1]] = text[key.end() : at].strip()
    return found


def _end(text: str, at: int) -> int:
    """The end of a value: the next comma outside brackets and quotes."""
    depth = 0
    for mark in _MARK.finditer(text, at):
        token = mark[0]
        if token == ",":
            if depth == 0:
                return mark.start()
        elif len(token) == 1:
            depth += 1 if token in "{([" else -1
    return len(text)


def read_map(text: str) -> dict[str, str]:
    """An attribute that is itself a list of attributes in braces; quotes around a value are taken off."""
    inside = text.strip().removeprefix("{").removesuffix("}")
    values = dict(part.partition("=")[::2] for part in split_top(inside))
    return {key.strip(): value.strip().strip('"') for key, value in values.items()}
