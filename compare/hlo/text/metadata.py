"""Where an instruction comes from: its scope, and its line in the user's code."""

import re
from functools import cached_property

from compare.hlo.text.instruction import OP_NAME, Instruction
from compare.hlo.text.module import Module
from meshes.scopes import SCOPES

_SCOPE = re.compile(rf"(?:^|[/(;])({'|'.join(map(re.escape, SCOPES))})(?:\.\d+)?(?=$|[/);])")
_FRAME_ID = re.compile(r"stack_frame_id=([0-9]{1,9})\b")
_FILE = re.compile(r'source_file="([^"\\]*+(?:\\.[^"\\]*+)*+)"')
_LINE = re.compile(r"source_line=(\d+)")
_INSTALLED = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages)/|^<|(?:^|/)lib/python3[\d.]*/"
    r"|^(?:jax|jaxlib|flax|torch|torch_xla|numpy|optax|orbax|functorch)/"
    r"|/(?:jax/_src|torch/nn/modules|torch/_[a-z]+|torch_xla/(?:core|distributed|experimental))/"
)
_TABLE = re.compile(r"(FileNames|FileLocations|StackFrames)$")
_ENTRY = re.compile(r"([0-9]{1,9}) (.*)$")
_FIELD = re.compile(r"\b([a-z_]+)=([0-9]{1,9})\b")


def scope_in(op_name: str, wanted: frozenset[str] = frozenset()) -> str | None:
    """The last word of the closed list in an `op_name`, as a whole part of a path, also inside brackets.

    Where XLA merges instructions it joins their paths with `;`: of several the last that is `wanted`, else the last.
    """
    found = [words[-1] for path in op_name.split(";") if (words := _SCOPE.findall(path))]
    return next((scope for scope in reversed(found) if scope in wanted), found[-1] if found else None)


class SourceMetadata:
    """Scopes and source lines of one module's instructions."""

    def __init__(self, module: Module):
        self._module = module
        self._tables: dict[str, dict[int, str]] | None = None
        self._scopes: dict[str, str | None] = {}
        self._frame_lines: dict[int, str | None] = {}
        self._arguments = {item.op_name for item in module.entry.parameters.values()}

    @cached_property
    def present(self) -> frozenset[str]:
        """The scopes that occur in any `op_name` of the text."""
        names = set(OP_NAME.findall(self._module.text)) - self._arguments
        return frozenset(scope for name in names if (scope := scope_in(name)))

    def scope(self, item: Instruction) -> str | None:
        """Its own scope.  An argument's bare name (on parameters and their copies) is no scope."""
        op_name = item.op_name
        if op_name not in self._scopes:
            self._scopes[op_name] = None if op_name in self._arguments else scope_in(op_name)
        return self._scopes[op_name]

    def path(self, item: Instruction) -> str | None:
        """Its `op_name`, if that is the path of an operation and not an argument's bare name."""
        return item.op_name if item.op_name and item.op_name not in self._arguments else None

    def scope_among(self, item: Instruction, wanted: frozenset[str]) -> str | None:
        """Its own scope; of joined names, preferably one of `wanted`."""
        return scope_in(item.op_name, wanted) if ";" in item.op_name else self.scope(item)

    def source_line(self, item: Instruction) -> str | None:
        """`file:line` of the innermost frame that is neither an installed package's nor a framework's."""
        file, line = _FILE.search(item.text), _LINE.search(item.text)
        if file and line and not _INSTALLED.search(file[1]):
            return f"{file[1]}:{line[1]}"
        found = _FRAME_ID.search(item.text)
        if found is None:
            return None
        if (frame := int(found[1])) not in self._frame_lines:
            self._frame_lines[frame] = self._user_frame(frame)
        return self._frame_lines[frame]

    def _user_frame(self, frame: int) -> str | None:
        if self._tables is None:
            self._tables = _read_tables(self._module)
        frames, places, files = (self._tables.get(name, {}) for name in ("StackFrames", "FileLocations", "FileNames"))
        seen: set[int] = set()
        while frame in frames and frame not in seen:
            seen.add(frame)
            fields = dict(_FIELD.findall(frames[frame]))
            place = dict(_FIELD.findall(places.get(int(fields.get("file_location_id", 0)), "")))
            file = files.get(int(place.get("file_name_id", 0)), "").strip('"')
            if file and not _INSTALLED.search(file):
                return f"{file}:{place.get('line', '?')}"
            frame = int(fields.get("parent_frame_id", 0)) - self._parent_shift
        return None

    @cached_property
    def _parent_shift(self) -> int:
        """1 where the text prints a parent frame's number plus one, as XLA does; 0 where it prints the number."""
        frames = (self._tables or {}).get("StackFrames", {})
        return 0 if any("parent_frame_id=0" in text for text in frames.values()) else 1


def _read_tables(module: Module) -> dict[str, dict[int, str]]:
    """The tables between the header and the first computation."""
    tables: dict[str, dict[int, str]] = {}
    table: dict[int, str] | None = None
    end = min(item.first for item in module.computations.values())
    for line in module.lines[:end]:
        if found := _TABLE.match(line.strip()):
            table = tables.setdefault(found[1], {})
        elif table is not None and (entry := _ENTRY.match(line.strip())):
            table[int(entry[1])] = entry[2]
        elif line.strip():
            table = None
    return tables
