"""HLO text as a module: its computations, and their calls.

An unrolled model is 3 MB of text of which the walks visit a part, so nothing is parsed before it is asked for.
"""

import gc
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate

from compare.hlo.text.attributes import CALL, names, read_attributes, split_top, unreadable_part
from compare.hlo.text.errors import MOST_DEVICES, HloError
from compare.hlo.text.instruction import Computation, Instruction, Quotes, short

_COMPUTATION = re.compile(r"\s*(ENTRY\s+)?%?([\w.\-]+)\s*(?:\(.*\)\s*->.*)?\{$")
_CLOSE = re.compile(r"\s*\}(?:,[\s\w.=\"{},/\-]*)?(?:\s*//.*)?$")
_ROW = re.compile(r"\s*\d+ [\"{]")
"""A row of a source table; the tables are before the first computation."""
_ALIAS = re.compile(r"\}:\s*\((\d{1,9})\b")
_OPCODE = re.compile(r" (?:(?:all|ragged|collective|reduce-scatter)[a-z\-]*|(?:send|recv)(?:-done)?)\(")
"""Opcodes that may be a collective's, unknown ones included: none may be skipped."""

_ODD_SPACE, _ODD_SPACES = re.compile(r"[^\S\n ]"), "\t\r\v\f\x1c\x1d\x1e\x1f"
DEEPEST_CALL = 100
MOST_LETTERS, MOST_LINES = 1 << 27, 1 << 20
"""Bounds of a text, so that reading takes no more than 2 GiB: a model of 8B, written out, has 3.6 million in 22,000."""
_MLIR = re.compile(r"\s*(?:#loc\d*\b|module\b|builtin\.module\b|\"builtin\.module\"|func\.func\b|stablehlo\.)", re.M)


class Module:
    """One HLO module."""

    def __init__(self, text: str):
        if len(text) > MOST_LETTERS or text.count("\n") > MOST_LINES:
            raise HloError(
                f"the text has {len(text):,} letters in {text.count(chr(10)):,} lines; the most that are read are "
                f"{MOST_LETTERS:,} in {MOST_LINES:,}"
            )
        self.text = text
        self.lines = text.split("\n")
        self._numbers: list[int] | None = None
        self._start = next((at for at, line in enumerate(self.lines) if line.lstrip().startswith("HloModule ")), -1)
        if self._start < 0:
            raise HloError(_what_else(text))
        header = self.lines[self._start].lstrip()[len("HloModule ") :]
        self.name = header.partition(",")[0].strip()
        attributes = read_attributes(header, len(self.name))
        if rest := unreadable_part(header, attributes):
            raise HloError(f"line {self.number(self._start)}: cannot read {short(rest)[:60]!r}: {short(header)}")
        self.header = attributes.values
        self.computations = self._find_computations()
        self.entry = self._find_entry()

    def _find_computations(self) -> dict[str, Computation]:
        """Where each computation begins and ends.

        `HloError` where one has no end, where one begins inside of another, and where an instruction or a brace stands
        outside of all: nothing of a text is passed over.
        """
        found: dict[str, Computation] = {}
        opened: re.Match[str] | None = None
        first, close, wrapped, outside = 0, "}", False, self._start + 1
        for at in [at for at, line in enumerate(self.lines) if " = " not in line and at > self._start]:
            line = self.lines[at]
            if opened is None:
                if outside != at:
                    self._check_outside(outside, at)
                outside = at + 1
                if line.endswith("{") and (opened := _COMPUTATION.match(line)):
                    first, close = at + 1, line[: len(line) - len(line.lstrip())] + "}"
                elif line and not line.isspace():
                    self._check_outside(at, at + 1)
            elif line.startswith(close):
                self._take(found, opened, first, at)
                opened, outside = None, at + 1
            elif line.endswith("{") and _COMPUTATION.match(line):
                raise self._no_end(opened[2], first, f"before another on line {self.number(at)}")
            elif line.strip() and not line.lstrip().startswith("//"):
                wrapped = True
        if opened is not None:
            raise self._no_end(opened[2], first, "in the text")
        self._check_outside(outside, len(self.lines))
        if wrapped and self._numbers is None:
            self._unwrap({computation.last for computation in found.values()})
            return self._find_computations()
        return found

    def _no_end(self, name: str, first: int, where: str) -> HloError:
        return HloError(
            f"the text is cut: computation {name!r} begins on line {self.number(first - 1)} and has no end {where}"
        )

    def _take(self, found: dict[str, Computation], opened: re.Match[str], first: int, at: int) -> None:
        """Add a computation, which ends on line `at`."""
        if opened[2] in found:
            raise HloError(f"line {self.number(first - 1)}: a second computation named {opened[2]!r}")
        if len(self.lines[at]) > 1 and not _CLOSE.match(self.lines[at]):
            raise HloError(f"line {self.number(at)}: more than the end of a computation: {short(self.lines[at])}")
        found[opened[2]] = Computation(self, name=opened[2], first=first, last=at, is_entry=bool(opened[1]))

    def _check_outside(self, first: int, last: int) -> None:
        """Raise `HloError` where lines outside computations are another module or a part of one."""
        for at in range(first, last):
            line = self.lines[at].strip()
            if line.startswith("HloModule "):
                raise HloError(f"line {self.number(at)}: a second module; split the file")
            if not line or line.startswith("//") or _ROW.match(line):
                continue
            if line[0] in "{}" or line[-1] == "{" or line.startswith("ROOT ") or "= " in line:
                raise HloError(f"line {self.number(at)}: stands outside of every computation: {short(line)}")

    def _unwrap(self, ends: set[int]) -> None:
        """Join instructions that are broken over several lines, and keep their line numbers."""
        lines: list[str] = []
        numbers: list[int] = []
        inside = False
        for at, line in enumerate(self.lines):
            if inside and at not in ends and " = " not in line and line.strip():
                lines[-1] += " " + line.strip()
                continue
            inside = (inside and at not in ends) or bool(_COMPUTATION.match(line))
            lines.append(line)
            numbers.append(at + 1)
        self.lines, self._numbers, self.text = lines, numbers, "\n".join(lines)
        self.__dict__.pop("_starts", None)

    def _find_entry(self) -> Computation:
        entries = [item for item in self.computations.values() if item.is_entry]
        if len(entries) != 1:
            raise HloError(f"the text has {len(entries) or 'no'} ENTRY computations, where HLO has one; is it cut?")
        return entries[0]

    def number(self, at: int) -> int:
        """The number in the file, from 1, of line `at`."""
        return at + 1 if self._numbers is None else self._numbers[at]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(map((1).__add__, map(len, self.lines)))]

    def line_at(self, offset: int) -> int:
        """The line that holds the character at `offset`."""
        return bisect_right(self._starts, offset) - 1

    def lines_text(self, first: int, last: int) -> str:
        """The lines from `first` to before `last`, each behind its line break."""
        return self.text[self._starts[first] - 1 : self._starts[last] - 1]

    @cached_property
    def _firsts(self) -> tuple[list[int], list[Computation]]:
        items = sorted(self.computations.values(), key=lambda item: item.first)
        return [item.first for item in items], items

    def owner(self, at: int) -> Computation | None:
        """The computation that contains line `at`; None outside of all."""
        firsts, items = self._firsts
        found = bisect_right(firsts, at) - 1
        return items[found] if found >= 0 and at < items[found].last else None

    def at(self, index: int) -> Instruction:
        owner = self.owner(index)
        if owner is None:
            raise HloError(f"line {self.number(index)}: stands in no computation: {short(self.lines[index])}")
        return owner.at(index)

    @cached_property
    def communication(self) -> list[Instruction]:
        """The instructions whose opcode may be a collective's or a part of one, in text order.

        An opcode in quotes or in a comment is none.  `HloError` where one stands outside of all computations, or behind
        another instruction on its line.
        """
        items: list[Instruction] = []
        quotes: dict[int, Quotes] = {}
        for match in _OPCODE.finditer(self.text):
            at = self.line_at(match.start())
            owner, line, column = self.owner(at), self.lines[at], match.end() - self._starts[at]
            if at not in quotes:
                quotes = {at: Quotes(line)}
            if quotes[at].cover(column - 1):
                continue
            if owner is None or not owner.at(at).operands_begin_at(column):
                word = line[:column].rsplit(maxsplit=1)[-1]
                raise HloError(f"line {self.number(at)}: {word!r} where no instruction stands: {short(line)}")
            items.append(owner.at(at))
        return items

    @cached_property
    def calls(self) -> dict[str, list[int]]:
        """Computation name -> the lines that name it."""
        calls: dict[str, list[int]] = {}
        for found in CALL.finditer(self.text):
            at = self.line_at(found.start())
            for name in names(found[1]):
                if name not in self.computations:
                    raise self.at(at).error(f"the computation {name!r} is not in the text; is it cut?")
                calls.setdefault(name, []).append(at)
        return calls

    def check_calls(self) -> None:
        """Raise `HloError` where a computation calls itself, or calls go deeper than any compiler's."""
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
        if not text.isdigit() or int(text) < 1:
            raise HloError(f"line {self.number(self._start)}: cannot read {key}={text!r} as a number of devices")
        if len(text) > 12 or int(text) > MOST_DEVICES:
            raise HloError(f"line {self.number(self._start)}: {key}={short(text)} is no believable number of devices")
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
            raise HloError(f"line {self.number(self._start)}: replicas times partitions is no believable number")
        return self.replica_count * self.num_partitions

    @cached_property
    def aliased_parameters(self) -> frozenset[int]:
        """The ENTRY parameters that an output aliases (`input_output_alias`): in a decoder, the caches."""
        aliases = split_top(self.header.get("input_output_alias", "").strip().removeprefix("{").removesuffix("}"))
        return frozenset(int(match[1]) for alias in aliases if (match := _ALIAS.search(alias)))


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


def _what_else(text: str) -> str:
    if not text.strip():
        return "the file is empty, where HLO text was expected"
    if _MLIR.match(text) or "stablehlo." in text[:20_000] or "func.func" in text[:20_000]:
        return "this is StableHLO (MLIR), the program before the compiler; give the compiled HLO text"
    return f"not HLO text: it begins with {short(text[:60])!r}, where 'HloModule name' was expected"
