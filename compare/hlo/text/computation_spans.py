"""Where the computations of an HLO text begin and end.

Nothing of a text is passed over: a line that belongs to no computation and to no table is refused.  A text as compilers
write it is read in one pass of string searches, without a list of its lines; any other, line by line.
"""

import re
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

from compare.hlo.text.attributes import read_attributes, unreadable_part
from compare.hlo.text.errors import COMPILED, HloError

_COMPUTATION = re.compile(r"\s*(ENTRY\s+)?%?([\w.\-]+)\s*(?:\(.*\)\s*->.*)?\{\s*(?://.*)?$")
# A computation that runs on another core ends with its thread: `}, execution_thread="sparsecore"`.
_CLOSE = re.compile(r"\s*\}(?:,[\s\w.=\"{},/\-]*)?\s*(?://.*)?$")
_ROW = re.compile(r"\s*\d+ [\"{]")
"""A row of a source table; the tables are before the first computation."""
_COMMON_HEADER = re.compile(r"\n++(ENTRY )?+%?+([A-Za-z0-9_.\-]++) \([^\n]*\) -> [^\n]*\{(?=\n)")
"""The line of a computation's name, as compilers spell it, and the blank lines before it."""
DEFINED = re.compile(r"\n *+(?:ROOT +)?+%([A-Za-z0-9_.\-]++) = ")
"""The name that an instruction defines, where it has its `%`."""
_COMMENT = re.compile(r"/\*(?!index=\d+\*/)")
"""The begin of a comment that XLA's printer does not write: it may stand between any two words."""
_COMMENT_OR_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*+\"|/\*.*?\*/", re.DOTALL)
_WORD = r'[^"{}]|"(?:[^"\\]|\\.)*+"'
_RECOVERY = (
    re.compile(r", origin_recovery_table=\{\n(?: [^\n]*\n|\n)*+\}([^\n]*)"),  # XLA indents all of it but its end
    re.compile(rf", origin_recovery_table=\{{(?:{_WORD}|\{{(?:{_WORD}|\{{[^{{}}]*\}})*+\}})*+\}}([^\n]*)", re.DOTALL),
)
"""A table of the header, over several lines, with whole modules in quotes; and what follows it on its last line.

XLA's printer puts no backslash before the quotes in those modules, and its parser wants them.
"""
_VISIBLE = re.compile(r"[^\n]")
_HEADER = "HloModule "
MOST_LETTERS, MOST_LINES = 1 << 27, 1 << 20
"""Bounds of a text, so that reading takes no more than 2 GiB: a model of 8B, written out, has 3.6 million in 22,000."""
_MLIR = re.compile(r"\s*(?:#loc\d*\b|module\b|builtin\.module\b|\"builtin\.module\"|func\.func\b|stablehlo\.)", re.M)


@dataclass(frozen=True, slots=True)
class Span:
    """One computation in a text."""

    name: str
    is_entry: bool
    begin: int
    """Offset of the line break before its first line."""
    end: int
    """Offset of the line break before the line that closes it."""
    first: int
    """Number of lines before its first one."""
    names: list[str] | None
    """The names that its lines define, in their order; None unless each line is known to define one."""


@dataclass(frozen=True, slots=True)
class Header:
    """The line that begins with `HloModule `."""

    name: str
    attributes: dict[str, str]
    line: int
    """Its number in the file, from 1."""

    @classmethod
    def read(cls, line: str, number: int) -> Self:
        """Read the line; `HloError` where text in it is no attribute."""
        header = line.lstrip()[len(_HEADER) :]
        name = header.partition(",")[0].strip()
        attributes = read_attributes(header, len(name))
        if rest := unreadable_part(header, attributes):
            raise HloError(f"line {number}: cannot read {short(rest)[:60]!r}: {short(header)}")
        return cls(name, attributes.values, number)


@dataclass(frozen=True, slots=True)
class Spans:
    """The computations of a text, in its order."""

    text: str
    """The text; where instructions were broken over several lines, with each on one."""
    header: "Header"
    spans: list[Span]
    numbers: list[int] | None = None
    """Of each line, its number in the file, where lines were joined."""


def find_spans(text: str) -> Spans:
    """Find the computations of a text, joining instructions that are broken over several lines.

    `HloError` where one has no end, where one begins inside of another, where an instruction or a brace stands outside
    of all, where the text is no HLO, and where it is too large.
    """
    if len(text) > MOST_LETTERS or text.count("\n") > MOST_LINES:
        raise HloError(
            f"the text has {len(text):,} letters in {text.count(chr(10)):,} lines; the most that are read are "
            f"{MOST_LETTERS:,} in {MOST_LINES:,}"
        )
    text = _without_recovery_table(text)
    text = _blank_comments(text) if _COMMENT.search(text) else text
    return _find_common(text) or _Lines(text).find()


def _blank_comments(text: str) -> str:
    """Spaces in place of each comment that is not XLA's own, line breaks kept."""
    return _COMMENT_OR_STRING.sub(lambda found: found[0] if found[0][0] == '"' else _VISIBLE.sub(" ", found[0]), text)


def _without_recovery_table(text: str) -> str:
    """The header without its table of modules that recover original values; line breaks are kept."""
    begin = text.find(_HEADER)
    at = text.find(", origin_recovery_table=", begin, text.find("\n", begin))
    table = next(filter(None, (form.match(text, at) for form in _RECOVERY)), None) if at > 0 else None
    if table is None:
        return text
    return text[: table.start()] + table[1] + "\n" * table[0].count("\n") + text[table.end() :]


def _find_common(text: str) -> Spans | None:
    """The computations of a text as compilers write it: every line is where it is expected.  None for any other."""
    header_end = text.find("\n")
    first = text.rfind("\n", 0, max(0, text.find("{\n", header_end)))
    if not text.startswith(_HEADER) or first < header_end:
        return None
    if any(map(_is_stray, text[header_end:first].split("\n"))):
        return None
    spans: list[Span] = []
    at, line = first, text.count("\n", 0, first)
    while header := _COMMON_HEADER.match(text, at):
        begin = header.end()
        end = text.find("\n}", begin)
        names = DEFINED.findall(text, begin, end)
        if end < 0 or len(names) != text.count("\n", begin, end) or " = " in header[0]:
            return None
        line += text.count("\n", at, begin) + 1
        spans.append(Span(header[2], bool(header[1]), begin, end, line, names))
        at, line = text.find("\n", end + 1), line + len(names)
        if at < 0:
            at = len(text)
        if at - end > 2 and (" = " in text[end:at] or not _CLOSE.match(text[end + 1 : at])):
            return None
    if text[at:].strip("\n") or len({span.name for span in spans}) < len(spans):
        return None
    return Spans(text, Header.read(text[:header_end], 1), spans)


def _is_stray(line: str) -> bool:
    """True if a line outside of computations is, or may be, a part of one, or of another module."""
    line = line.strip()
    if line.startswith(_HEADER):
        return True
    if not line or line.startswith("//") or _ROW.match(line):
        return False
    return line[0] in "{}" or line[-1] == "{" or line.startswith("ROOT ") or "= " in line


class _Lines:
    """The careful reading, line by line: it names the line that it refuses."""

    def __init__(self, text: str):
        self._text = text
        self._lines = text.split("\n")
        self._numbers: list[int] | None = None
        self._start = next((at for at, line in enumerate(self._lines) if line.lstrip().startswith(_HEADER)), -1)
        if self._start < 0:
            raise HloError(_what_else(text))

    def find(self) -> Spans:
        header = Header.read(self._lines[self._start], self._start + 1)
        spans = self._find_computations()
        return Spans(self._text, header, spans, self._numbers)

    def _find_computations(self) -> list[Span]:
        """The computations; where instructions are broken over several lines, those of the joined lines."""
        spans: dict[str, Span] = {}
        ends: set[int] = set()
        starts = [0, *accumulate(map((1).__add__, map(len, self._lines)))]
        opened: re.Match[str] | None = None
        first, close, wrapped, outside = 0, "}", False, self._start + 1
        for at in [at for at, line in enumerate(self._lines) if " = " not in line and at > self._start]:
            line = self._lines[at]
            if opened is None:
                if outside != at:
                    self._check_outside(outside, at)
                outside = at + 1
                if "{" in line and (opened := _COMPUTATION.match(line)):
                    first, close = at + 1, line[: len(line) - len(line.lstrip())] + "}"
                elif line and not line.isspace():
                    self._check_outside(at, at + 1)
            elif line.startswith(close):
                self._check_end(opened[2], spans, first, at)
                span = Span(opened[2], bool(opened[1]), starts[first] - 1, starts[at] - 1, first, None)
                spans[span.name] = span
                ends.add(at)
                opened, outside = None, at + 1
            elif "{" in line and _COMPUTATION.match(line):
                raise self._no_end(opened[2], first, f"before another on line {self._number(at)}")
            elif line.strip() and not line.lstrip().startswith("//"):
                wrapped = True
        if opened is not None:
            raise self._no_end(opened[2], first, "in the text")
        self._check_outside(outside, len(self._lines))
        if wrapped and self._numbers is None:
            self._join_lines(ends)
            return self._find_computations()
        return list(spans.values())

    def _no_end(self, name: str, first: int, where: str) -> HloError:
        return HloError(
            f"the text is cut: computation {name!r} begins on line {self._number(first - 1)} and has no end {where}"
        )

    def _check_end(self, name: str, spans: dict[str, Span], first: int, at: int) -> None:
        """Raise `HloError` where line `at` is more than the end of a computation, or its name is not its own."""
        if name in spans:
            raise HloError(f"line {self._number(first - 1)}: a second computation named {name!r}")
        if len(self._lines[at]) > 1 and not _CLOSE.match(self._lines[at]):
            raise HloError(f"line {self._number(at)}: more than the end of a computation: {short(self._lines[at])}")

    def _check_outside(self, first: int, last: int) -> None:
        """Raise `HloError` where lines outside computations are another module or a part of one."""
        for at in range(first, last):
            line = self._lines[at].strip()
            if line.startswith(_HEADER):
                raise HloError(f"line {self._number(at)}: a second module; split the file")
            if _is_stray(line):
                raise HloError(f"line {self._number(at)}: stands outside of every computation: {short(line)}")

    def _join_lines(self, ends: set[int]) -> None:
        """Join instructions that are broken over several lines, and keep their line numbers."""
        lines: list[str] = []
        numbers: list[int] = []
        inside = False
        for at, line in enumerate(self._lines):
            if inside and at not in ends and " = " not in line:
                lines[-1] += " " + line.strip()
                continue
            inside = (inside and at not in ends) or bool(_COMPUTATION.match(line))
            lines.append(line)
            numbers.append(at + 1)
        self._lines, self._numbers, self._text = lines, numbers, "\n".join(lines)

    def _number(self, at: int) -> int:
        """The number in the file, from 1, of line `at`."""
        return at + 1 if self._numbers is None else self._numbers[at]


def _what_else(text: str) -> str:
    if not text.strip():
        return "the file is empty, where HLO text was expected"
    if _MLIR.match(text) or "stablehlo." in text[:20_000] or "func.func" in text[:20_000]:
        return f"this is StableHLO (MLIR), the program before the compiler; {COMPILED}"
    return f"not HLO text: it begins with {short(text[:60])!r}, where 'HloModule name' was expected"


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text[:1000].split())
    return text if len(text) <= 160 else text[:157] + "..."
