"""Instructions and computations of HLO text, each parsed when it is first asked for."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from compare.hlo.text.attributes import (
    CALL,
    STRING,
    Attributes,
    close_of,
    names,
    read_attributes,
    split_top,
    unreadable_part,
)
from compare.hlo.text.errors import HloError
from compare.hlo.text.shapes import Array, Shape, read_shape

_HEAD = re.compile(r"\s*(ROOT\s+)?%?([\w.\-]+)\s*=\s+")
_WITHOUT_OPERANDS = {"parameter", "constant", "iota", "partition-id", "replica-id"}
_OPCODE = re.compile(r" ([a-z][a-z0-9_\-]*+)\(")
_SIGIL = re.compile(r"%([\w.\-]+)")
_COMMON_LINE = re.compile(
    r"\n( *+(?:ROOT )?+%?+)([A-Za-z0-9_.\-]++) = ((?:[^\n ]++| (?![a-z][a-z0-9_\-]*+\())*+) ([a-z][a-z0-9_\-]*+)"
    r"\(([^()\"\n]*+\))?+"
)
"""An instruction as compilers spell it: what stands before its name, the name, shape and opcode, and the operands with
the parenthesis that closes them, where no other one and no quote stands among them.  Read for all lines at once."""
_WHOLE = re.compile(r"\s*[0-9]{1,18}\s*")
OP_NAME = re.compile(r'op_name="([^"\\]*+(?:\\.[^"\\]*+)*+)"')


class Source(Protocol):
    """The module of a computation: the part of `module.Module` that is needed here."""

    lines: list[str]
    text: str

    @property
    def calls(self) -> Mapping[str, Sequence[int]]: ...
    def number(self, at: int) -> int: ...
    def lines_text(self, first: int, last: int) -> str: ...
    def at(self, index: int) -> "Instruction": ...
    def computation(self, name: str, instruction: "Instruction") -> "Computation": ...


class Instruction:
    """One line of a computation."""

    __slots__ = ("_attributes", "_called", "_close", "_op_name", "_open", "_operand_names", "_operands", "computation",
                 "index", "name", "opcode", "shape_text", "text")  # fmt: skip

    def __init__(self, computation: "Computation", index: int):
        text = computation.module.lines[index]
        self.computation, self.index, self.text = computation, index, text
        self._close: int | None = None
        if common := computation.common_line(index):
            before, self.name, shape, self.opcode, operands = common
            self.shape_text = shape.rstrip()
            self._open = len(before) + len(self.name) + len(shape) + len(self.opcode) + 5
            self._close = self._open + len(operands) - 1 if operands else None
        else:
            head = _HEAD.match(text)
            found = _OPCODE.search(text, head.end() - 1) if head else None
            if head is None or found is None:
                raise HloError(f"line {computation.module.number(index)}: cannot read the instruction {short(text)!r}")
            self.name, self.opcode = head[2], found[1]
            self.shape_text, self._open = text[head.end() : found.start()].rstrip(), found.end()
        self._attributes: Attributes | None = None
        self._operand_names: list[str] | None = None
        self._operands: tuple[Instruction, ...] | None = None
        self._op_name: str | None = None
        self._called: list[Computation] | None = None

    def __repr__(self) -> str:
        return f"<{self.name} = {self.opcode} in {self.computation.name}>"

    @property
    def line(self) -> int:
        """The number of its line in the file, from 1."""
        return self.computation.module.number(self.index)

    @property
    def shape(self) -> Shape:
        try:
            return read_shape(self.shape_text)
        except HloError as error:
            raise self.error(str(error)) from None

    def operands_begin_at(self, column: int) -> bool:
        """True if its own opcode, and no other on its line, ends in this column."""
        return self._open == column

    @property
    def arguments(self) -> str:
        """The text between the parentheses."""
        if self._close is None:
            self._close = close_of(self.text, self._open)
            if self._close < 0:
                raise self.error("the operands have no end; is the line cut?")
        return self.text[self._open : self._close]

    @property
    def operands(self) -> "tuple[Instruction, ...]":
        if self._operands is None:
            self._operands = tuple(map(self._find, self.operand_names))
        return self._operands

    def operand(self, number: int) -> "Instruction":
        """An operand that must be there."""
        if not 0 <= number < len(self.operand_names):
            raise self.error(f"{self.opcode} without its operand {number}")
        return self._find(self.operand_names[number]) if self._operands is None else self._operands[number]

    @property
    def users(self) -> "list[Instruction]":
        """The instructions of its computation that have it as an operand, in text order."""
        return self.computation.users(self)

    @property
    def operand_names(self) -> list[str]:
        if self._operand_names is None:
            arguments = "" if self.opcode in _WITHOUT_OPERANDS else self.arguments
            if "%" in arguments:
                self._operand_names = _SIGIL.findall(arguments)
            else:
                self._operand_names = [part.split()[-1] for part in split_top(arguments)] if arguments else []
        return self._operand_names

    def _find(self, name: str) -> "Instruction":
        index = self.computation.index_of(name)
        if index is None:
            raise self.error(f"the operand {name!r} is not in its computation")
        if index >= self.index:
            raise self.error(f"the operand {name!r} is made only after it")
        return self.computation.at(index)

    def has(self, path: tuple[int, ...]) -> bool:
        """True if its shape has an element at `path`."""
        shape = self.shape if path else ()
        for index in path:
            if isinstance(shape, Array) or index >= len(shape):
                return False
            shape = shape[index]
        return True

    @property
    def attributes(self) -> dict[str, str]:
        """Name -> value of the attributes after the operands, as written."""
        return self._read_attributes().values

    def _read_attributes(self) -> Attributes:
        if self._attributes is None:
            _ = self.arguments
            assert self._close is not None
            self._attributes = read_attributes(self.text, self._close + 1)
        return self._attributes

    def check_attributes(self) -> None:
        """Raise `HloError` where text after the operands is no attribute: it may be a lost or damaged line."""
        if rest := unreadable_part(self.text, self._read_attributes()):
            raise self.error(f"cannot read {short(rest)[:60]!r} as an attribute, `, name=value`")

    @property
    def op_name(self) -> str:
        """The framework's path of the operation; empty without one."""
        if self._op_name is None:
            match = OP_NAME.search(self.text, self._open)
            self._op_name = match[1] if match else ""
        return self._op_name

    @property
    def callees(self) -> "list[Computation]":
        """The computations that it calls, in the order written: of a conditional, its branches."""
        if self._called is None:
            module = self.computation.module
            values = CALL.findall(self.text, self._open)
            self._called = [module.computation(name, self) for value in values for name in names(value)]
        return self._called

    def attribute(self, key: str) -> str:
        """An attribute that must be there."""
        if key not in self.attributes:
            raise self.error(f"{self.opcode} without {key}")
        return self.attributes[key]

    def integer(self, key: str) -> int:
        """An integer attribute; of `parameter`, the number between the parentheses."""
        text = self.arguments if key == "" else self.attribute(key)
        if not _WHOLE.fullmatch(text):
            raise self.error(f"cannot read {short(text)!r} as a whole number")
        return int(text)

    def error(self, message: str) -> HloError:
        return HloError(f"line {self.line}: {message}: {short(self.text)}")


class Computation:
    """A named list of instructions, indexed by name; each is parsed when it is first used."""

    def __init__(self, module: Source, *, name: str, first: int, last: int, is_entry: bool):
        self.module, self.name, self.is_entry = module, name, is_entry
        self.first, self.last = first, last
        self._common_lines: list[tuple[str, str, str, str, str]] | None = None

    def __repr__(self) -> str:
        return f"<computation {self.name}>"

    @cached_property
    def _parsed(self) -> dict[int, Instruction]:
        return {}

    @cached_property
    def _users(self) -> dict[Instruction, list[Instruction]]:
        return {}

    @property
    def lines(self) -> list[str]:
        """Its instructions."""
        return self.module.lines[self.first : self.last]

    @property
    def text(self) -> str:
        """The same, each behind its line break."""
        return self.module.lines_text(self.first, self.last)

    @cached_property
    def _index(self) -> dict[str, int]:
        """Name -> line; the root also under the empty name."""
        common = _COMMON_LINE.findall(self.text)
        if len(common) != self.last - self.first:
            return self._index_slowly()
        index = {line[1]: at for at, line in enumerate(common, self.first)}
        if len(index) != len(common) or any("R" in line[0] for line in common[:-1]):
            return self._index_slowly()
        self._common_lines = common
        index[""] = self.last - 1
        return index

    def common_line(self, index: int) -> tuple[str, str, str, str, str] | None:
        """The groups of `_COMMON_LINE` for a line; None where it was not matched."""
        return self._common_lines[index - self.first] if self._common_lines else None

    def _index_slowly(self) -> dict[str, int]:
        """The index, line by line: skips comments and blank lines, and names a line that cannot be read."""
        index, root = {}, None
        lines = self.module.lines
        for at in range(self.first, self.last):
            if match := _HEAD.match(lines[at]):
                if match[2] in index:
                    raise HloError(f"line {self.module.number(at)}: a second instruction named {match[2]!r}")
                index[match[2]] = at
                if match[1]:
                    if root is not None:
                        raise HloError(f"line {self.module.number(at)}: a second ROOT of computation {self.name!r}")
                    root = at
            elif lines[at].strip() and not lines[at].lstrip().startswith("//"):
                raise HloError(f"line {self.module.number(at)}: cannot read {short(lines[at])!r}")
        if not index:
            raise HloError(f"line {self.module.number(self.first)}: computation {self.name!r} has no instructions")
        index[""] = max(index.values()) if root is None else root
        return index

    @property
    def root(self) -> Instruction:
        return self.at(self._index[""])

    def at(self, index: int) -> Instruction:
        found = self._parsed.get(index)
        if found is None:
            found = self._parsed[index] = Instruction(self, index)
        return found

    def index_of(self, name: str) -> int | None:
        """The line of the instruction of this name."""
        return self._index.get(name) if name else None

    def __iter__(self) -> Iterator[Instruction]:
        return (self.at(index) for name, index in self._index.items() if name)

    @cached_property
    def parameters(self) -> dict[int, Instruction]:
        """Parameters by number."""
        lines = self.module.lines
        items = (self.at(index) for name, index in self._index.items() if name and " parameter(" in lines[index])
        found: dict[int, Instruction] = {}
        for item in items:
            if item.opcode == "parameter" and found.setdefault(item.integer(""), item) is not item:
                raise item.error(f"a second parameter {item.arguments} of its computation")
        return found

    def parameter(self, number: int) -> Instruction:
        """A parameter that must be there."""
        if number not in self.parameters:
            raise self.root.error(f"the computation {self.name!r} has no parameter {number}, which its caller hands in")
        return self.parameters[number]

    def users(self, item: Instruction) -> list[Instruction]:
        """The instructions that have `item` as an operand, in text order."""
        if item not in self._users:
            users = [self.at(at) for at in dict.fromkeys(self._uses.get(item.name, ()))]
            for user in users:
                user.operand(user.operand_names.index(item.name))  # which names one that comes after it, if it does
            self._users[item] = users
        return self._users[item]

    @cached_property
    def _uses(self) -> dict[str, list[int]]:
        """Name -> the lines of the instructions that have it as an operand."""
        uses: defaultdict[str, list[int]] = defaultdict(list)
        for at in sorted(self._index.values()):
            line = self.common_line(at)
            if line is not None and "%" in line[4]:
                names = [] if line[3] in _WITHOUT_OPERANDS else _SIGIL.findall(line[4])
            elif line is not None and line[3] in _WITHOUT_OPERANDS:
                continue
            else:
                names = self.at(at).operand_names
            for name in names:
                uses[name].append(at)
        return uses

    @cached_property
    def callers(self) -> list[Instruction]:
        """The instructions that name this computation, in text order."""
        return [self.module.at(index) for index in self.module.calls.get(self.name, ())]


class Quotes:
    """The parts of a line inside closed quotes or comments."""

    __slots__ = ("_begins", "_ends", "_first", "_is_comment", "_line")

    def __init__(self, line: str):
        self._line, self._first = line, line.find('"')
        self._is_comment = line.lstrip().startswith("//")
        self._begins: list[int] | None = None
        self._ends: list[int] = []

    def cover(self, column: int) -> bool:
        """True if the character in this column, from 0, is inside one of them."""
        if self._is_comment or not 0 <= self._first <= column:
            return self._is_comment
        if self._begins is None:
            spans = [string.span() for string in STRING.finditer(self._line) if string[1]]
            self._begins, self._ends = [begin for begin, _ in spans], [end for _, end in spans]
        at = bisect_right(self._begins, column) - 1
        return at >= 0 and column < self._ends[at]


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text[:1000].split())
    return text if len(text) <= 160 else text[:157] + "..."
