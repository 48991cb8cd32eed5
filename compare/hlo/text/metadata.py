"""Where an instruction comes from: its scope, and its line in the user's code."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from compare.hlo.text.errors import HloError
from compare.hlo.text.instruction import OP_NAME, Instruction
from compare.hlo.text.module import Module
from meshes.scopes import SCOPES

# torch_xla numbers a scope, JAX wraps it in what transformed it, XLA joins the names of merged instructions:
#   op_name="layer.attention.core.25/aten__le;layer.attention.core.25/aten__add.6/aten__add"
#   op_name="jit(f)/transpose(jvp(layer.attention.core))/while/body"
_SCOPE = re.compile(rf"(?:^|[/(;])({'|'.join(map(re.escape, SCOPES))})(?:\.\d+)?(?=$|[/);])")
_FRAME_ID = re.compile(r"stack_frame_id=([0-9]{1,9})\b")
_FILE = re.compile(r'source_file="([^"\\]*+(?:\\.[^"\\]*+)*+)"')
_LINE = re.compile(r"source_line=(\d+)")
# XLA's FileNames table has every frame of the Python stack, also those of the framework and of the interpreter:
#   3 "<frozen runpy>"
#   4 "torch/nn/modules/module.py"
_INSTALLED = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages)/|^<|(?:^|/)lib/python3[\d.]*/"
    r"|^(?:jax|jaxlib|flax|torch|torch_xla|torchax|numpy|optax|orbax|functorch)/"
    r"|/(?:jax/_src|torch/nn/modules|torch/_[a-z]+|torch_xla/(?:core|distributed|experimental)|torchax/ops)/"
    r"|/torchax/(?:tensor|interop)\.py$"
)
MOST_PATTERNS = 1000
"""Of a scope map."""
MOST_CHARACTERS = 1000
"""Of a pattern, a scope, or a part of a path."""
_TABLE = re.compile(r"(FileNames|FunctionNames|FileLocations|StackFrames)$")
_ENTRY = re.compile(r"([0-9]{1,9}) (.*)$")
_FIELD = re.compile(r"\b([a-z_]+)=([0-9]{1,9})\b")
_PLACE = re.compile(r"\.py\b.*:")
"""In a pattern of a scope map: it is searched in `file:line`, and not in functions' names."""


def scope_in(op_name: str, wanted: frozenset[str] = frozenset()) -> str | None:
    """The last word of the closed list in an `op_name`, as a whole part of a path, also inside brackets.

    Where XLA merges instructions it joins their paths with `;`: of several the last that is `wanted`, else the last.
    """
    # Scopes nest, `jit(f)/pipeline.shift/while/body/layer.mlp.up/dot_general`: the last one is the innermost.  Joined
    # names are in no order that tells which is meant; libtpu names an all-to-all of tpu7x after the combine and a
    # constraint:
    #   jit(f)/layer.moe.combine/sharding_constraint;jit(f)/layer.moe.experts/sharding_constraint
    scopes = [words[-1] for path in op_name.split(";") if (words := _SCOPE.findall(path))]
    return next((scope for scope in reversed(scopes) if scope in wanted), scopes[-1] if scopes else None)


@dataclass(frozen=True, slots=True)
class Frame:
    """One call on the way to an operation."""

    file: str
    line: str
    function: str = ""
    """Empty where the text has none, as of PyTorch."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class SourceNames:
    """How the names in a program are read: which operation is which part of a model, and whose files are the user's."""

    scopes: tuple[tuple[re.Pattern[str], str], ...] = ()
    """Pattern -> scope; the first that fits holds.  It is searched in an `op_name`; where none fits, in the functions
    of the operation's stack (one like `model.py:31` in the lines).  Empty: the words of `meshes.scopes`, as this
    project's programs have them."""
    owns: tuple[str, ...] = ()
    """Parts of paths of installed files that count as the user's source, like `transformers/models/`."""

    @classmethod
    def of(cls, scopes: Mapping[str, str] | None = None, owns: Iterable[str] = ()) -> Self:
        """From a user's map of patterns to scopes, and parts of paths.

        Raises `HloError` for another type, and for a pattern that is no regular expression.
        """
        return cls(tuple(_read_map({} if scopes is None else scopes)), _read_parts(owns))

    def fill_from(self, other: "SourceNames") -> "SourceNames":
        """The same; what it does not have, the map or the parts of paths, is `other`'s."""
        return SourceNames(self.scopes or other.scopes, self.owns or other.owns)

    @property
    def scope_map(self) -> dict[str, str]:
        """The map that `of` takes."""
        return {pattern.pattern: scope for pattern, scope in self.scopes}

    def scope_in(self, op_name: str, wanted: frozenset[str] = frozenset()) -> str | None:
        """The scope of an `op_name`; of several that are joined with `;` the last that is `wanted`, else the last."""
        if not self.scopes:
            return scope_in(op_name, wanted)
        scopes = [scope for path in op_name.split(";") if (scope := self._mapped(path))]
        return next((scope for scope in reversed(scopes) if scope in wanted), scopes[-1] if scopes else None)

    def _mapped(self, path: str) -> str | None:
        return next((scope for pattern, scope in self.scopes if pattern.search(path)), None)

    def scope_in_stack(self, stack: Sequence[Frame]) -> str | None:
        """The scope of the first pattern that fits a function, or a line, of the stack."""
        functions, places = [frame.function for frame in stack], [frame.place for frame in stack]
        for pattern, scope in self.scopes:
            if any(map(pattern.search, places if _PLACE.search(pattern.pattern) else functions)):
                return scope
        return None

    def is_users(self, file: str) -> bool:
        """True for a file of the user: not of an installed package, unless `owns` names it."""
        return not _INSTALLED.search(file) or any(part in file for part in self.owns)


def _read_map(scopes: object) -> Iterator[tuple[re.Pattern[str], str]]:
    if not isinstance(scopes, Mapping):
        raise HloError(f"a scope map is {{pattern of an op_name: scope}}, and no {type(scopes).__name__}")
    if len(scopes) > MOST_PATTERNS:
        raise HloError(f"the scope map has {len(scopes):,} patterns; {MOST_PATTERNS:,} are the most")
    for pattern, scope in scopes.items():
        if not _is_word(pattern) or not _is_word(scope):
            raise HloError(
                f"the scope map has {pattern!r}: {scope!r}; both are text of 1 to {MOST_CHARACTERS:,} characters"
            )
        try:
            yield re.compile(pattern), scope
        except (re.error, RecursionError, OverflowError) as error:
            raise HloError(f"the scope map has {pattern!r}, which is no regular expression: {error}") from None


def _read_parts(owns: object) -> tuple[str, ...]:
    parts = (owns,) if isinstance(owns, str) and owns else owns or ()
    if not isinstance(parts, Iterable):
        raise HloError(f"owns is {owns!r}; write parts of paths, like 'transformers/models/'")
    read = tuple(parts)
    if len(read) > MOST_PATTERNS or not all(map(_is_word, read)):
        raise HloError(
            f"owns has {next((part for part in read if not _is_word(part)), len(read))!r}; write at most "
            f"{MOST_PATTERNS:,} parts of paths, like 'transformers/models/'"
        )
    return read


def _is_word(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip()) and len(text) <= MOST_CHARACTERS


class SourceMetadata:
    """Scopes and source lines of one module's instructions."""

    def __init__(self, module: Module, names: SourceNames | None = None):
        self._module = module
        self._names = names or SourceNames()
        self._scopes: dict[tuple[str, int], str | None] = {}
        self._stacks: dict[int, tuple[Frame, ...]] = {}
        self._arguments = {item.op_name for item in module.entry.parameters.values()}

    @cached_property
    def present(self) -> frozenset[str]:
        """The scopes that any `op_name` of the text has, and with a map any stack.

        `embed`, `head`, `norm` and `sample` are everybody's words: without a map they count only beside one that is
        this project's alone, like `layer.mlp.down`.
        """
        if not self._counts_every_scope:
            return frozenset()
        names = set(OP_NAME.findall(self._module.text)) - self._arguments
        frames = set(_FRAME_ID.findall(self._module.text)) if self._names.scopes else ()
        scopes = [self._names.scope_in(name) for name in names]
        scopes += [self._names.scope_in_stack(self._called_from(int(frame))) for frame in frames]
        return frozenset(scope for scope in scopes if scope)

    def scope(self, item: Instruction) -> str | None:
        """Its own scope.  An argument's bare name (on parameters and their copies) is no scope."""
        key = item.op_name, _frame_of(item) if self._names.scopes else 0
        if key not in self._scopes:
            self._scopes[key] = self._counted(item)
        return self._scopes[key]

    def _counted(self, item: Instruction, wanted: frozenset[str] = frozenset()) -> str | None:
        # A parameter has its argument's name for an op_name, and so has a copy of it: a parameter `head` is not in
        # scope `head`.
        #   copy(p), metadata={op_name="head"}
        if item.op_name in self._arguments:
            return None
        scope = self._names.scope_in(item.op_name, wanted)
        if scope is None and self._names.scopes:
            return self._names.scope_in_stack(self._called_from(_frame_of(item)))
        return scope if scope is None or "." in scope or self._counts_every_scope else None

    @cached_property
    def _counts_every_scope(self) -> bool:
        """True with a map, or where any `op_name` of the text has a scope that is this project's alone."""
        if self._names.scopes:
            return True
        op_names = (match[1] for match in OP_NAME.finditer(self._module.text))
        scopes = (self._names.scope_in(name) for name in op_names if name not in self._arguments)
        return any("." in scope for scope in scopes if scope)

    def path(self, item: Instruction) -> str | None:
        """Its `op_name`, if that is the path of an operation and not an argument's bare name."""
        return item.op_name if item.op_name and item.op_name not in self._arguments else None

    def scope_among(self, item: Instruction, wanted: frozenset[str]) -> str | None:
        """Its own scope; of joined names, preferably one of `wanted`."""
        return self._counted(item, wanted) if ";" in item.op_name else self.scope(item)

    def source_line(self, item: Instruction) -> str | None:
        """`file:line` of the innermost frame of the user's own files (see `SourceNames.owns`)."""
        stack = self.stack(item)
        return stack[0].place if stack else None

    def stack(self, item: Instruction) -> tuple[Frame, ...]:
        """The frames of the user's own files, innermost first; what one of an installed file calls is not told."""
        file, line = _FILE.search(item.text), _LINE.search(item.text)
        called_from = self._called_from(_frame_of(item))
        # Texts have a file and line, a stack, or both.  Where both differ, the file and line are one more, inner frame:
        #   source_file="torch/functional.py" source_line=5 stack_frame_id=4
        if file and line and (not called_from or called_from[0].place != f"{file[1]}:{line[1]}"):
            called_from = (Frame(file[1], line[1]), *called_from)
        return tuple(frame for frame in called_from if self._names.is_users(frame.file))

    def _called_from(self, frame: int) -> tuple[Frame, ...]:
        """All frames of a stack, innermost first."""
        if frame not in self._stacks:
            self._stacks[frame] = tuple(self._read_stack(frame))
        return self._stacks[frame]

    def _read_stack(self, frame: int) -> Iterator[Frame]:
        frames, places, files, functions = (
            self._tables.get(name, {}) for name in ("StackFrames", "FileLocations", "FileNames", "FunctionNames")
        )
        seen: set[int] = set()
        while frame in frames and frame not in seen:
            seen.add(frame)
            fields = dict(_FIELD.findall(frames[frame]))
            place = dict(_FIELD.findall(places.get(int(fields.get("file_location_id", 0)), "")))
            file, function = (
                table.get(int(place.get(key, 0)), "").strip('"')
                for table, key in ((files, "file_name_id"), (functions, "function_name_id"))
            )
            if file:
                yield Frame(file, place.get("line", "?"), function)
            frame = int(fields.get("parent_frame_id", 0)) - self._parent_shift

    @cached_property
    def _tables(self) -> dict[str, dict[int, str]]:
        return _read_tables(self._module)

    @cached_property
    def _parent_shift(self) -> int:
        """1 where the text prints a parent frame's number plus one, as XLA does; 0 where it prints the number."""
        # XLA prints the number of every parent plus one, so that its outermost frame seems to be its own parent:
        #   1 {file_location_id=1 parent_frame_id=1}
        return 0 if any("parent_frame_id=0" in text for text in self._tables.get("StackFrames", {}).values()) else 1


def _frame_of(item: Instruction) -> int:
    """The number of its stack's innermost frame; 0 where it has none."""
    match = _FRAME_ID.search(item.text)
    return int(match[1]) if match else 0


def _read_tables(module: Module) -> dict[str, dict[int, str]]:
    """The tables between the header and the first computation."""
    tables: dict[str, dict[int, str]] = {}
    table: dict[int, str] | None = None
    end = min(item.begin for item in module.computations.values())
    for line in module.text[:end].split("\n"):
        if match := _TABLE.match(line.strip()):
            table = tables.setdefault(match[1], {})
        elif table is not None and (entry := _ENTRY.match(line.strip())):
            table[int(entry[1])] = entry[2]
        elif line.strip():
            table = None
    return tables
