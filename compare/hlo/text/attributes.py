"""The attributes that follow an instruction's operands: `, key=value` with brackets and quotes inside."""

import re
from dataclasses import dataclass

_KEY = re.compile(r"\s*(?:,\s*)?([\w\-.]+)=")
_STRING = r"\"[^\"\\]*+(?:\\.[^\"\\]*+)*+(?:\"|\\?$)"
"""An unclosed string runs to the end, in one match: a search from each quote would be quadratic."""
_MARK = re.compile(rf"{_STRING}|'[^']*'|[{{(\[]|[}})\]]|,")
_MARK_CHARACTERS = re.compile(r"[\"'{}()\[\]/]")
_BRACKET = re.compile(rf"{_STRING}|[()]")
STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+("?)')
"""A quoted string, with its closing quote if it has one."""
_SECOND_WORD = re.compile(r"\s\S")
_PLAIN = re.compile(r"[\w.\-%]+|\{[\d,]*\}")
_NAME = re.compile(r"[\w.\-]+")
CALL = re.compile(
    r",\s*+(?:calls|to_apply|condition|body|branch_computations|true_computation|false_computation"
    r"|called_computations)=\s*+(\{[^{}]*\}|%?[\w.\-]+)"
)
"""An attribute that names computations: its key, and the names."""

_COMMENT = re.compile(r"/\*.*?(?:\*/|$)")

_NESTING = 6
_CLOSED_STRING = r"\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\""
_BRACKETS = "(?!)"
for _ in range(_NESTING):
    _BRACKETS = rf"[{{(\[](?:[^(){{}}\[\]\"']++|{_CLOSED_STRING}|'[^']*+'|{_BRACKETS})*+[}})\]]"
_COMMON_ATTRIBUTE = re.compile(rf", ([\w\-.]++)=((?:[^\s,(){{}}\[\]\"']++|{_CLOSED_STRING}|{_BRACKETS})++)(?![^,])")
"""An attribute as compilers spell it: one word, every quote and bracket closed.  Where such ones fill the rest of a
line, the careful reading below gives the same; this takes a tenth of the time."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What follows the operands of an instruction."""

    values: dict[str, str]
    """Name -> value, as written."""
    end: int
    """The column where they end: at text without a name, or at a repeated name."""
    is_common: bool = False
    """True if every attribute to the end of the line has the common spelling."""


def names(text: str) -> list[str]:
    """The names in `%a` or `{%a, %b}`."""
    return _NAME.findall(text)


def called_names(value: str) -> list[str]:
    """The names in a value that `CALL` matched."""
    return [value[1:]] if value[0] == "%" else names(value)


def close_of(text: str, start: int) -> int:
    """The column of the parenthesis that closes the one opened just before `start`; -1 without one."""
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
    """Split at commas outside brackets and quotes; empty parts and comments are dropped."""
    if not _MARK_CHARACTERS.search(text):
        return [part.strip() for part in text.split(",") if part.strip()]
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


def read_attributes(text: str, begin: int) -> Attributes:
    """The attributes from `begin` on, up to text without a name or a repeated name."""
    pairs = _COMMON_ATTRIBUTE.findall(text, begin)
    values: dict[str, str] = dict(pairs)
    length = 3 * len(pairs) + sum(map(len, values)) + sum(map(len, values.values()))
    if length == len(text) - begin and len(values) == len(pairs):
        return Attributes(values, len(text), is_common=True)
    values, at = {}, begin
    while (key := _KEY.match(text, at)) and key[1] not in values:
        at, value_at = _end(text, key.end()), key.end()
        values[key[1]] = text[value_at:at].strip()
    return Attributes(values, at)


def unreadable_part(text: str, attributes: Attributes) -> str:
    """The part of `text` that is no attribute, or an unterminated one; empty where there is none."""
    if attributes.is_common:
        return ""
    rest = text[attributes.end : attributes.end + 1000].strip(", ")
    if rest and not rest.startswith("//"):
        return rest
    return next((f"{name}={value[:1000]}" for name, value in attributes.values.items() if not _is_one_word(value)), "")


def _is_one_word(value: str) -> bool:
    """True for a single word whose brackets and quotes are closed."""
    if _PLAIN.fullmatch(value):
        return True
    depth, outside, begin = 0, "", 0
    for mark in _MARK.finditer(value):
        token = mark[0]
        if token[0] == '"' and not ((string := STRING.fullmatch(token)) and string[1]):
            return False
        if len(token) > 1 or token == ",":
            continue
        if token in "{([":
            outside += value[begin : mark.start()] if depth == 0 else ""
            depth += 1
        else:
            depth -= 1
            begin = mark.end()
        if depth < 0:
            return False
    return depth == 0 and not _SECOND_WORD.search(STRING.sub('""', outside + value[begin:]).strip())


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
