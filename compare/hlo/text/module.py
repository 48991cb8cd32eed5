"""HLO text as a module: its computations, and their calls.

An unrolled model is 3 MB of text of which the walks visit a part, so nothing is parsed before it is used.
"""

import gc
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

from compare.hlo.text.attributes import CALL, STRING, called_names, split_top
from compare.hlo.text.computation_spans import find_spans, short
from compare.hlo.text.errors import MOST_DEVICES, HloError
from compare.hlo.text.instruction import Computation, Instruction

_ALIAS = re.compile(r"\}:\s*\((\d{1,9})\b")
_OPCODE = re.compile(r" (?:(?:all|ragged|collective|reduce-scatter)[a-z\-]*|(?:send|recv)(?:-done)?) *\(")
"""Opcodes that may be a collective's, unknown ones included: none may be skipped."""

_CALLER = re.compile(r" (?:fusion|call|while|conditional|async-start) *\(")

_ODD_SPACE, _ODD_SPACES = re.compile(r"[^\S\n ]"), "\t\r\v\f\x1c\x1d\x1e\x1f"
DEEPEST_CALL = 100


class Module:
    """One HLO module."""

    def __init__(self, text: str):
        layout = find_spans(text)
        self.text = layout.text
        self._numbers, self._header_line = layout.numbers, layout.header.line
        self.name, self.header = layout.header.name, layout.header.attributes
        self.computations = {span.name: Computation(self, span) for span in layout.spans}
        self._begins = [span.begin for span in layout.spans]
        self._in_order = list(self.computations.values())
        self.entry = self._find_entry()

    def _find_entry(self) -> Computation:
        entries = [item for item in self.computations.values() if item.is_entry]
        if len(entries) != 1:
            raise HloError(f"the text has {len(entries) or 'no'} ENTRY computations, where HLO has one; is it cut?")
        return entries[0]

    def number(self, at: int) -> int:
        """The number in the file, from 1, of the line that begins at offset `at`."""
        owner = self.owner(at)
        line = self.text.count("\n", 0, at) if owner is None else owner.line_number(at)
        return line + 1 if self._numbers is None else self._numbers[line]

    def line_at(self, offset: int) -> int:
        """The offset where the line begins that holds the character at `offset`."""
        return self.text.rfind("\n", 0, offset) + 1

    def line_text(self, at: int) -> str:
        """The line that begins at offset `at`."""
        end = self.text.find("\n", at)
        return self.text[at:] if end < 0 else self.text[at:end]

    def owner(self, at: int) -> Computation | None:
        """The computation that contains the line that begins at offset `at`; None outside of all."""
        number = bisect_left(self._begins, at) - 1
        return self._in_order[number] if number >= 0 and at <= self._in_order[number].end else None

    def at(self, index: int) -> Instruction:
        """The instruction whose line begins at offset `index`."""
        owner = self.owner(index)
        if owner is None:
            raise HloError(f"line {self.number(index)}: stands in no computation: {short(self.line_text(index))}")
        return owner.at(index)

    @cached_property
    def communication(self) -> list[Instruction]:
        """The instructions whose opcode may be a collective's or a part of one, in text order.

        An opcode in quotes or in a comment is none.  `HloError` where one stands outside of all computations, or behind
        another instruction on its line.
        """
        items: list[Instruction] = []
        quotes: dict[int, _Quotes] = {}
        for match in _OPCODE.finditer(self.text):
            at = self.line_at(match.start())
            owner, column = self.owner(at), match.end() - at
            if at not in quotes:
                line = self.line_text(at)
                quotes = {at: _Quotes(line)}
            is_header = owner is None and at + len(quotes[at].line) in self._begins
            # An op_name may hold what looks like an instruction: `metadata={op_name="%x = f32[8] all-reduce(%v)"}`.
            if is_header or quotes[at].cover(column - 1):
                continue
            if owner is None or not owner.at(at).operands_begin_at(column):
                word = line[:column].rsplit(maxsplit=1)[-1]
                raise HloError(f"line {self.number(at)}: {word!r} where no instruction stands: {short(line)}")
            items.append(owner.at(at))
        return items

    @cached_property
    def calls(self) -> dict[str, list[int]]:
        """Computation name -> the offsets where the lines begin that name it."""
        calls: dict[str, list[int]] = {}
        for match in CALL.finditer(self.text):
            at = self.line_at(match.start())
            for name in called_names(match[1]):
                if name not in self.computations:
                    raise self.at(at).error(f"the computation {name!r} is not in the text; is it cut?")
                calls.setdefault(name, []).append(at)
        return calls

    def check_calls(self) -> None:
        """Raise `HloError` where a computation calls itself or calls go deeper than any compiler's, and where what
        calls a computation names none."""
        calling = {at for lines in self.calls.values() for at in lines}
        for match in _CALLER.finditer(self.text):
            at = self.line_at(match.start())
            if at not in calling and (owner := self.owner(at)) and owner.at(at).operands_begin_at(match.end() - at):
                raise owner.at(at).error(f"{owner.at(at).opcode} calls no computation")
        called: dict[str, dict[str, int]] = {name: {} for name in self.computations}
        for name, lines in self.calls.items():
            for at in lines:
                if owner := self.owner(at):
                    called[owner.name].setdefault(name, at)
        left = Counter(name for inner in called.values() for name in inner)
        depth = {name: 0 for name in called if not left[name]}
        ready = list(depth)
        while ready:
            caller = ready.pop()
            for name, at in called[caller].items():
                depth[name] = max(depth.get(name, 0), depth[caller] + 1)
                if depth[name] > DEEPEST_CALL:
                    raise self.at(at).error(f"calls go deeper than {DEEPEST_CALL} computations")
                left[name] -= 1
                if not left[name]:
                    ready.append(name)
        for caller, inner in called.items():
            for name, at in inner.items():
                if left[name] and left[caller]:
                    raise self.at(at).error(f"the computation {name!r} leads back to itself")

    def computation(self, name: str, instruction: Instruction) -> Computation:
        if name not in self.computations:
            raise instruction.error(f"the computation {name!r} is not in the text")
        return self.computations[name]

    def _count(self, key: str) -> int | None:
        text = self.header.get(key)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit()) or not text.strip("0"):
            raise HloError(f"line {self._header_line}: cannot read {key}={short(text)!r} as a number of devices")
        if len(text) > 12 or int(text) > MOST_DEVICES:
            raise HloError(f"line {self._header_line}: {key}={short(text)} is an implausible device count")
        return int(text)

    @property
    def replica_count(self) -> int:
        return self._count("replica_count") or 1

    @property
    def num_partitions(self) -> int:
        return self._count("num_partitions") or 1

    @property
    def num_devices(self) -> int | None:
        """Replicas times partitions; None where the header gives neither."""
        if "replica_count" not in self.header and "num_partitions" not in self.header:
            return None
        if self.replica_count * self.num_partitions > MOST_DEVICES:
            raise HloError(f"line {self._header_line}: replicas times partitions is an implausible device count")
        return self.replica_count * self.num_partitions

    @cached_property
    def aliased_parameters(self) -> frozenset[int]:
        """The ENTRY parameters that an output aliases (`input_output_alias`): in a decoder, the caches."""
        # `input_output_alias={ {1}: (12, {}, may-alias), {2}: (13, {}, may-alias) }`: results 1 and 2 take over the
        # memory of parameters 12 and 13, which are `cache.k` and `cache.v` in the decode step of docs/example-run.
        aliases = split_top(self.header.get("input_output_alias", "").strip().removeprefix("{").removesuffix("}"))
        return frozenset(int(match[1]) for alias in aliases if (match := _ALIAS.search(alias)))


class _Quotes:
    """The parts of a line inside closed quotes or comments."""

    __slots__ = ("_begins", "_ends", "_first", "_is_comment", "line")

    def __init__(self, line: str):
        self.line, self._first = line, line.find('"')
        self._is_comment = line.lstrip().startswith("//")
        self._begins: list[int] | None = None
        self._ends: list[int] = []

    def cover(self, column: int) -> bool:
        """True if the character in this column, from 0, is inside one of them."""
        if self._is_comment or not 0 <= self._first <= column:
            return self._is_comment
        if self._begins is None:
            spans = [string.span() for string in STRING.finditer(self.line) if string[1]]
            self._begins, self._ends = [begin for begin, _ in spans], [end for _, end in spans]
        at = bisect_right(self._begins, column) - 1
        return at >= 0 and column < self._ends[at]


def read(text: str) -> Module:
    """Read HLO text, as `compiled.as_text()` or `--xla_dump_hlo_as_text` write it.

    `HloError` where it is empty, cut, or something else.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if not text.isascii() or any(space in text for space in _ODD_SPACES):
        text = _ODD_SPACE.sub(" ", text)  # what Python takes for a space, the marks of opcodes must, too
    with pause_gc():
        return Module(text)


@contextmanager
def pause_gc() -> Iterator[None]:
    """Keep Python's cycle collector from running: of the many small objects that reading makes, none is garbage yet.

    It would go through all of them a hundred times over, which takes a fifth of the time of a large program.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
