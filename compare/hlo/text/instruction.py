"""Instructions and computations of HLO text, each parsed when it is first used."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Protocol

from compare.hlo.text.attributes import (
    CALL,
    Attributes,
    called_names,
    close_of,
    read_attributes,
    split_top,
    unreadable_part,
)
from compare.hlo.text.computation_spans import DEFINED, Span, short
from compare.hlo.text.errors import HloError
from compare.hlo.text.shapes import Array, Shape, read_shape

_HEAD = re.compile(r"\s*(ROOT\s+)?%?([\w.\-]+)\s*=\s+")
_WITHOUT_OPERANDS = {"parameter", "constant", "iota", "partition-id", "replica-id"}
_OPCODE = re.compile(r" ([a-z][a-z0-9_\-]*+) *+\(")
_SIGIL = re.compile(r"%([\w.\-]+)")
_SHAPE = r"(?![a-z][a-z0-9_\-]*+\()(?:[^\n ]++| (?![a-z][a-z0-9_\-]*+\())*+"
_COMMON_LINE = re.compile(rf" *+(?:ROOT )?+%?+([A-Za-z0-9_.\-]++) = ({_SHAPE}) ([a-z][a-z0-9_\-]*+)\(([^()\"\n]*+\))?+")
"""An instruction as compilers spell it: its name, shape and opcode, and the operands with the parenthesis that closes
them, where there is no other parenthesis and no quote among them."""
_OPERANDS = re.compile(
    rf"\n *+(?:ROOT )?+%?+[A-Za-z0-9_.\-]++ = {_SHAPE} "
    rf"(?:(?:{'|'.join(sorted(_WITHOUT_OPERANDS))})\([^%()\"\n]*+|[a-z][a-z0-9_\-]*+\()([^()\"\n]*+\))?+"
)
"""The operands of such a line, for all lines of a computation at once: empty where they hold a quote or a parenthesis,
and `)` where there are none."""
_PARAMETER = re.compile(r" *+(?:ROOT )?+%?+[A-Za-z0-9_.\-]++ = [^\s(]++ parameter\(([0-9]{1,18})\)")
_FIRST_NUMBER = re.compile(r", ([\w\-.]++)=([0-9]++)(?![^,])")
"""An attribute, the first of its line, that is a number."""
_WHOLE = re.compile(r"\s*[0-9]{1,18}\s*")
OP_NAME = re.compile(r'op_name="([^"\\]*+(?:\\.[^"\\]*+)*+)"')


class Source(Protocol):
    """The module of a computation: the part of `module.Module` that is needed here."""

    text: str

    @property
    def calls(self) -> Mapping[str, Sequence[int]]: ...
    def number(self, at: int) -> int: ...
    def line_text(self, at: int) -> str: ...
    def at(self, index: int) -> "Instruction": ...
    def computation(self, name: str, instruction: "Instruction") -> "Computation": ...


class Instruction:
    """One line of a computation."""

    __slots__ = (
        "_arguments",
        "_attributes",
        "_called",
        "_close",
        "_op_name",
        "_open",
        "_operand_names",
        "_operands",
        "_text",
        "computation",
        "index",
        "name",
        "opcode",
        "shape_text",
    )

    def __init__(self, computation: "Computation", index: int):
        """index: the offset where its line begins in the text of the module."""
        self.computation, self.index = computation, index
        self._text: str | None = None
        self._arguments: str | None = None
        self._close = -1
        if common := _COMMON_LINE.match(computation.module.text, index):
            self.name, shape, self.opcode, operands = common.groups()
            self.shape_text = shape.strip()
            self._open = common.end() - index
            if operands:
                self._close = self._open - 1
                self._open -= len(operands)
                self._arguments = operands[:-1]
        else:
            text = self.text
            head = _HEAD.match(text)
            opcode = _OPCODE.search(text, head.end() - 1) if head else None
            if head is None or opcode is None:
                raise HloError(f"line {computation.module.number(index)}: cannot read the instruction {short(text)!r}")
            self.name, self.opcode = head[2], opcode[1]
            self.shape_text, self._open = text[head.end() : opcode.start()].rstrip(), opcode.end()
        self._attributes: Attributes | None = None
        self._operand_names: list[str] | None = None
        self._operands: tuple[Instruction, ...] | None = None
        self._op_name: str | None = None
        self._called: list[Computation] | None = None

    def __repr__(self) -> str:
        return f"<{self.name} = {self.opcode} in {self.computation.name}>"

    @property
    def text(self) -> str:
        """Its line."""
        if self._text is None:
            self._text = self.computation.module.line_text(self.index)
        return self._text

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
        """True if its opcode, and not another on its line, ends in this column."""
        return self._open == column

    @property
    def arguments(self) -> str:
        """The text between the parentheses."""
        if self._arguments is None:
            self._close = close_of(self.text, self._open)
            if self._close < 0:
                raise self.error("the operands have no end; is the line cut?")
            self._arguments = self.text[self._open : self._close]
        return self._arguments

    @property
    def operands(self) -> "tuple[Instruction, ...]":
        if self._operands is None:
            self._operands = tuple(map(self._find, self.operand_names))
        return self._operands

    def operand(self, number: int) -> "Instruction":
        """An operand; `HloError` where it is missing."""
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
            self._operand_names = self._read_operand_names()
        return self._operand_names

    def _read_operand_names(self) -> list[str]:
        if self.opcode in _WITHOUT_OPERANDS:
            return []
        arguments = self.arguments
        # Operands are written with or without their shapes and `%`: `all-reduce(bf16[8,128]{1,0} %fusion.1)`,
        # `all-reduce(p)`. Shapes hold commas and no `%`.
        if "%" in arguments:
            return _SIGIL.findall(arguments)
        return [part.split()[-1] for part in split_top(arguments)] if arguments else []

    def _find(self, name: str) -> "Instruction":
        item = self.computation.named(name)
        if item is None:
            raise self.error(f"the operand {name!r} is not in its computation")
        if item.index >= self.index:
            raise self.error(f"the operand {name!r} is made only after it")
        return item

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
            self._attributes = read_attributes(self.text, self._after_operands())
        return self._attributes

    def _after_operands(self) -> int:
        """The column behind the parenthesis that closes the operands."""
        _ = self.arguments  # which finds it
        return self._close + 1

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
    def target(self) -> str:
        """The `custom_call_target` of a custom call; empty elsewhere."""
        return self.attributes.get("custom_call_target", "").strip('"') if self.opcode == "custom-call" else ""

    @property
    def callees(self) -> "list[Computation]":
        """The computations that it calls, in the order written: of a conditional, its branches."""
        if self._called is None:
            module = self.computation.module
            values = CALL.findall(self.text, self._open)
            self._called = [module.computation(name, self) for value in values for name in called_names(value)]
        return self._called

    def attribute(self, key: str) -> str:
        """An attribute; `HloError` where it is missing."""
        if self._attributes is None:
            first = _FIRST_NUMBER.match(self.text, self._after_operands())
            if first and first[1] == key:
                return first[2]
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

    def __init__(self, module: Source, span: Span):
        self.module, self.name, self.is_entry = module, span.name, span.is_entry
        self.begin, self.end = span.begin, span.end
        self._span = span

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
        return [self.module.line_text(at) for at in self.line_starts]

    @cached_property
    def line_starts(self) -> list[int]:
        """The offsets where its lines begin."""
        if self.begin == self.end:
            return []
        lines = self.module.text[self.begin + 1 : self.end].split("\n")
        return list(accumulate((len(line) + 1 for line in lines[:-1]), initial=self.begin + 1))

    def line_number(self, at: int) -> int:
        """How many lines are before the one that begins at offset `at`."""
        return self._span.first + bisect_left(self.line_starts, at)

    @cached_property
    def names(self) -> list[str] | None:
        """The names that its lines define, in their order; None unless each line defines one, with its `%`."""
        if self._span.names is not None:
            return self._span.names
        names: list[str] = DEFINED.findall(self.module.text, self.begin, self.end)
        return names if len(names) == self.module.text.count("\n", self.begin, self.end) else None

    @cached_property
    def _index(self) -> dict[str, int]:
        """Name -> the offset where its line begins; the root also under the empty name."""
        names, starts = self.names, self.line_starts
        if not names:
            return self._index_slowly()
        index = dict(zip(names, starts, strict=True))
        if len(index) != len(names) or self.module.text.find("ROOT ", self.begin, starts[-1]) >= 0:
            return self._index_slowly()
        index[""] = starts[-1]
        return index

    def _index_slowly(self) -> dict[str, int]:
        """The index, line by line: skips comments and blank lines, and names a line that cannot be read."""
        index, root = {}, None
        for at in self.line_starts:
            line = self.module.line_text(at)
            if match := _HEAD.match(line):
                if match[2] in index:
                    raise HloError(f"line {self.module.number(at)}: a second instruction named {match[2]!r}")
                index[match[2]] = at
                if match[1]:
                    if root is not None:
                        raise HloError(f"line {self.module.number(at)}: a second ROOT of computation {self.name!r}")
                    root = at
            elif line.strip() and not line.lstrip().startswith("//"):
                raise HloError(f"line {self.module.number(at)}: cannot read {short(line)!r}")
        if not index:
            number = self.module.number(self.begin + 1)
            raise HloError(f"line {number}: computation {self.name!r} has no instructions")
        index[""] = max(index.values()) if root is None else root
        return index

    @property
    def root(self) -> Instruction:
        return self.at(self._index[""])

    def at(self, index: int) -> Instruction:
        item = self._parsed.get(index)
        if item is None:
            item = self._parsed[index] = Instruction(self, index)
        return item

    def named(self, name: str) -> Instruction | None:
        """The instruction of this name."""
        index = self._index.get(name) if name else None
        if index is None:
            return None
        return self._parsed.get(index) or self.at(index)

    def __iter__(self) -> Iterator[Instruction]:
        return (self.at(index) for name, index in self._index.items() if name)

    @cached_property
    def parameters(self) -> dict[int, Instruction]:
        """Parameters by number."""
        return {number: self.at(index) for number, index in self._parameter_lines.items()}

    @cached_property
    def _parameter_lines(self) -> dict[int, int]:
        """Number of a parameter -> where its line begins."""
        lines: dict[int, int] = {}
        for at in self._lines_with(" parameter("):
            match = _PARAMETER.match(self.module.text, at)
            if match or self.at(at).opcode == "parameter":
                number = int(match[1]) if match else self.at(at).integer("")
                if lines.setdefault(number, at) != at:
                    item = self.at(at)
                    raise item.error(f"a second parameter {item.arguments} of its computation")
        return lines

    def _lines_with(self, word: str) -> list[int]:
        """The instructions that have a word anywhere on their lines, by where these begin."""
        text, index = self.module.text, self._index
        lines: dict[int, None] = {}
        at = text.find(word, self.begin, self.end)
        while at >= 0:
            lines[text.rfind("\n", 0, at) + 1] = None
            at = text.find(word, at + 1, self.end)
        if self.names is not None or not lines:
            return list(lines)
        return sorted(lines.keys() & set(index.values()))

    def has_parameter(self, number: int) -> bool:
        return number in self._parameter_lines

    @property
    def num_parameters(self) -> int:
        return len(self._parameter_lines)

    def parameter(self, number: int) -> Instruction:
        """A parameter; `HloError` where it is missing."""
        if number not in self._parameter_lines:
            raise self.root.error(f"the computation {self.name!r} has no parameter {number}, which its caller hands in")
        return self.at(self._parameter_lines[number])

    def users(self, item: Instruction) -> list[Instruction]:
        """The instructions that have `item` as an operand, in text order."""
        if item not in self._users:
            users = [self.at(at) for at in self._uses.lines(item.name)]
            for user in users:
                user.operand(user.operand_names.index(item.name))  # which names one that comes after it, if it does
            self._users[item] = users
        return self._users[item]

    @cached_property
    def _uses(self) -> "_Uses":
        operands = _OPERANDS.findall(self.module.text, self.begin, self.end)
        if len(operands) != len(self.line_starts):
            items = [self.at(at) for at in sorted(set(self._index.values()))]
            pairs = [(name, item.index) for item in items for name in item.operand_names]
            return _Uses([name for name, _ in pairs], [at for _, at in pairs])
        names: list[str] = []
        lines: list[int] = []
        for at, text in zip(self.line_starts, operands, strict=True):
            if text != ")":
                read = _SIGIL.findall(text) if "%" in text else self.at(at).operand_names
                names += read
                lines += [at] * len(read)
        return _Uses(names, lines)

    @cached_property
    def callers(self) -> list[Instruction]:
        """The instructions that name this computation, in text order."""
        return [self.module.at(index) for index in self.module.calls.get(self.name, ())]


class _Uses:
    """The lines of a computation that have a name as an operand."""

    def __init__(self, names: list[str], lines: list[int]):
        """names: of all operands, in text order; lines: that of each."""
        self._names, self._lines = names, lines
        self._last = dict(zip(names, lines, strict=True))
        self._first = dict(zip(reversed(names), reversed(lines), strict=True))

    def lines(self, name: str) -> list[int]:
        """The lines that use a name, in text order."""
        first = self._first.get(name)
        if first is None:
            return []
        return [first] if first == self._last[name] else self._repeated[name]

    @cached_property
    def _repeated(self) -> dict[str, list[int]]:
        """Of the names that several lines use."""
        repeated: dict[str, dict[int, None]] = {}
        for name, line in zip(self._names, self._lines, strict=True):
            if self._first[name] != self._last[name]:
                repeated.setdefault(name, {})[line] = None
        return {name: list(lines) for name, lines in repeated.items()}
