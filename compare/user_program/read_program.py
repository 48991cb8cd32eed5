"""Anybody's program, however it is handed over, and the collectives that it emits."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Protocol, runtime_checkable

from rich.console import Console

from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.collectives.pre_partitioning import is_partitioned, is_scheduled
from compare.hlo.counts.execution_counts import collective_instructions
from compare.hlo.proto import program as proto
from compare.hlo.text.errors import HloError
from compare.hlo.text.files import decode_text, decompress, read_bytes
from compare.hlo.text.metadata import SourceNames
from compare.hlo.text.module import Module, read
from compare.run import cache, progress
from compare.run.errors import WorkError
from compare.user_program.compile_program import CompiledProgram, CompileFailed, compile_all
from compare.user_program.program_mesh import Axes, mesh_of, mesh_of_text, reading_axes
from compare.user_program.saved_program import SavedProgram, is_saved, read_saved
from meshes.devices.topology import Topology
from meshes.process.errors import MeshError

_MLIR_BYTECODE = b"ML\xefR"
_STABLEHLO = (b"module ", b"module{", b"builtin.module", b"func.func", b"stablehlo.", b"#loc")
_HEAD_BYTES = 20_000
_ONE_LINE = re.compile(r"\s*(?:$|(?:HloModule|(?:builtin\.)?module)[ {])")
"""A program in one line, or nothing at all: no path begins like this."""


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """A program as it was handed over."""

    name: str
    """What messages call it: a path, or what it is."""
    data: bytes
    mesh: Axes = ()
    """That it knows itself, beside what its text says."""
    notes: tuple[str, ...] = ()
    """What whoever made it says of it."""
    saved: SavedProgram | None = field(default=None, compare=False)
    """As it was saved, where it was."""


@runtime_checkable
class _Exported(Protocol):
    """What `jax.export` gives."""

    def mlir_module(self) -> object: ...


@runtime_checkable
class _Readable(Protocol):
    """A `Lowered` or a `Compiled` of JAX."""

    def as_text(self, *, debug_info: bool = False) -> str: ...


@runtime_checkable
class _Lowered(_Readable, Protocol):
    """A `Lowered` of JAX."""

    def compile(self) -> _Readable: ...


def open_program(program: object, *, topology: str = "") -> ProgramInput:
    """Take a path, HLO or StableHLO text, module bytes, or an object of JAX: lowered, compiled, exported.

    A JAX `Lowered` is compiled by JAX itself for the devices that it was lowered for, unless a `topology` is named:
    then it is handed over as it is, to be compiled for that.  Raises `WorkError` for anything else.
    """
    if isinstance(program, bytes | bytearray | memoryview):
        notes = tuple(map(str, getattr(program, "notes", ())))
        return replace(_unzipped("these bytes", bytes(program)), notes=notes)
    if isinstance(program, str) and ("\n" in program or _ONE_LINE.match(program)):
        return ProgramInput("this text", program.encode())
    if isinstance(program, str | Path):
        return _file(program)
    if isinstance(program, _Exported):
        return ProgramInput("this exported program", str(program.mlir_module()).encode())
    if not isinstance(program, _Readable):
        raise WorkError(
            f"{type(program).__name__} is no program that can be read; hand over jax.jit(f).lower(…), the same "
            "compiled, HLO or StableHLO text, module bytes, or a path"
        )
    name = f"this {type(program).__name__}"
    mesh = mesh_of(program) or (mesh_of_text(str(program.as_text())) if isinstance(program, _Lowered) else ())
    return ProgramInput(name, _text(program, name=name, mesh=mesh, topology=topology).encode(), mesh)


def _file(path: str | Path) -> ProgramInput:
    if is_saved(Path(path)):
        saved = read_saved(Path(path))
        return ProgramInput(str(path), saved.text.encode(), notes=saved.notes, saved=saved)
    name = "standard input" if str(path) == "-" else str(path)
    try:
        return ProgramInput(name, decompress(read_bytes(path)))
    except HloError as error:
        raise HloError(f"{name}: {error}") from None


def _unzipped(name: str, data: bytes) -> ProgramInput:
    try:
        return ProgramInput(name, decompress(data))
    except HloError as error:
        raise HloError(f"{name}: {error}") from None


def _text(program: _Readable, *, name: str, mesh: Axes, topology: str) -> str:
    if topology and isinstance(program, _Lowered):
        try:
            return str(program.as_text(debug_info=True))  # JAX leaves names and lines out otherwise
        except TypeError:
            return str(program.as_text())
    try:
        return str((program.compile() if isinstance(program, _Lowered) else program).as_text())
    except RuntimeError as error:
        if "device_assignment" not in str(error):
            raise
        raise WorkError(
            f"{name} is of an abstract mesh, which has no devices that JAX could compile it for; name a TPU, "
            f"which need not be there: topology={_like(mesh)!r}"
        ) from None


def _like(mesh: Axes) -> str:
    """A topology that would do."""
    try:
        return Topology.smallest(prod(size for _, size in mesh)).slice_name
    except MeshError:
        return "v5e:2x4"


@dataclass(frozen=True, slots=True)
class ProgramCollectives:
    """What a program emits."""

    rows: tuple[Collective, ...]
    saved: SavedProgram
    """The program itself: its text, its axes, and for what and by what it was compiled here."""
    mesh: Axes = ()
    """That the program knows itself."""

    @property
    def compiled(self) -> str:
        return self.saved.compiled


def read_all(
    programs: Sequence[ProgramInput],
    *,
    axes: Mapping[str, int],
    topology: str = "",
    no_cache: bool = False,
    names: SourceNames | None = None,
) -> list[ProgramCollectives]:
    """The collectives of each program; what is not compiled yet is compiled first, each in a process of its own.

    axes: none, and each program's are those of its own mesh, where it knows that.
    topology: what for; empty: the smallest v5e slice that the program fills.  What was compiled once is in the cache;
    what is being compiled is shown on stderr.
    names: what its scopes are, and whose files are the user's; what it leaves out is as a program was saved.
    Raises `HloError` or `WorkError`, one line that names the program.
    """
    for one in programs:
        reading_axes(axes, _mesh(one), name=one.name)
    found = [_compiled(program) for program in programs]
    if topology and all(found):
        raise WorkError(f"{programs[0].name}: is compiled already; a topology is for programs that are not")
    made = _compile_missing(
        [one for one, module in zip(programs, found, strict=True) if module is None], axes, topology, no_cache
    )
    asked = names or SourceNames()
    return [_read(one, module, made.get(one), axes, asked) for one, module in zip(programs, found, strict=True)]


def _mesh(program: ProgramInput) -> Axes:
    """The mesh that a program knows, as far as that is seen before it is compiled."""
    if program.saved:
        return tuple(program.saved.axes.items())
    written = b"sdy.mesh" in program.data and not program.data.startswith(_MLIR_BYTECODE)
    return program.mesh or (mesh_of_text(program.data.decode(errors="replace")) if written else ())


def _compile_missing(
    programs: Sequence[ProgramInput], axes: Mapping[str, int], topology: str, no_cache: bool
) -> Mapping[ProgramInput, CompiledProgram]:
    """Each program that is not compiled yet, compiled; the same twice is compiled once."""
    if not programs:
        return {}
    ones = list(dict.fromkeys(programs))
    with cache.open_cache(bypass=no_cache) as kept, progress.show_compiles(Console(stderr=True)) as notify:
        try:
            found = compile_all(
                {at: one.data for at, one in enumerate(ones)},
                num_devices=prod(axes.values()) if axes else 0, topology=topology, cache=kept,
                notify=lambda at, stage, seconds: notify(ones[at].name, stage, seconds),
            )  # fmt: skip
        except CompileFailed as failed:
            raise WorkError(f"{ones[failed.number].name}: {failed}") from None
    return {ones[at]: one for at, one in found.items()}


def _read(
    program: ProgramInput,
    module: Module | None,
    made: CompiledProgram | None,
    axes: Mapping[str, int],
    names: SourceNames,
) -> ProgramCollectives:
    """What it emits, as it came or as it was compiled."""
    mesh = _mesh(program) or (mesh_of_text("\n".join(made.meshes)) if made else ())
    sizes = reading_axes(axes, mesh, name=program.name)
    if module is None:
        assert made is not None
        module = read(made.text)
        saved = SavedProgram(
            text=made.text, axes=sizes, compiled=made.how, device_ids=made.device_ids, passes=made.passes
        )
    else:
        saved = program.saved or SavedProgram(text=decode_text(program.data) or module.text, axes=sizes)
    saved = replace(saved, axes=sizes, notes=program.notes, names=names.fill_from(saved.names))
    return ProgramCollectives(_rows(program, module, saved), saved, mesh)


def _rows(program: ProgramInput, module: Module, saved: SavedProgram) -> tuple[Collective, ...]:
    try:
        return tuple(collectives(module, saved.axes, device_ids=saved.device_ids, names=saved.names))
    except HloError as error:
        raise HloError(f"{program.name}: {error}") from None


def _compiled(program: ProgramInput) -> Module | None:
    """The program read, if it is one that the partitioner has seen; None where it is still to be compiled."""
    data = program.data
    if data.startswith(_MLIR_BYTECODE):
        return None
    try:
        text = decode_text(data)
        if text is None:
            module = read(proto.write_hlo_text(data))
            # Written out it has no shardings: without a schedule and a collective it is one that has still to get them.
            return (
                module if is_partitioned(module) and (is_scheduled(module) or collective_instructions(module)) else None
            )
        if "HloModule " not in text[:_HEAD_BYTES] and any(word in data[:_HEAD_BYTES] for word in _STABLEHLO):
            return None
        module = read(text)
    except HloError as error:
        raise HloError(f"{program.name}: {error}") from None
    return module if is_partitioned(module) else None
