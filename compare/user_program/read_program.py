"""Read a user's program in any form, and the collectives that it emits."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Protocol, Self, runtime_checkable

from rich.console import Console

from compare.compile.requests import Remedy
from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.collectives.pre_partitioning import check_own_groups, is_partitioned, is_scheduled
from compare.hlo.collectives.replicated import replicated_notes
from compare.hlo.counts.execution_counts import collective_instructions
from compare.hlo.proto import program as proto
from compare.hlo.text.errors import HloError
from compare.hlo.text.files import decode_text, decompress, read_bytes
from compare.hlo.text.metadata import SourceNames
from compare.hlo.text.module import Module, read
from compare.run import cache, progress
from compare.run.errors import WorkError
from compare.user_program.advice.advise import advise
from compare.user_program.advice.outcome import compare_traffic, remedies
from compare.user_program.compile_program import CompiledProgram, CompileFailed, compile_all
from compare.user_program.partitioner_notes import list_notes
from compare.user_program.program_mesh import Axes, mesh_of, mesh_of_text, reading_axes
from compare.user_program.saved_program import SavedProgram, is_saved, read_saved
from meshes.devices.topology import Topology
from meshes.process.errors import MeshError
from meshes.process.log import is_quiet

_MLIR_BYTECODE = b"ML\xefR"
_STABLEHLO = (b"module ", b"module{", b"builtin.module", b"func.func", b"stablehlo.", b"#loc")
_HEAD_BYTES = 20_000
_ONE_LINE = re.compile(r"\s*(?:$|(?:HloModule|(?:builtin\.)?module)[ {])")
"""A program in one line, or an empty text: no path begins like this."""


@dataclass(frozen=True, slots=True)
class ProgramInput:
    """A program as the user gave it."""

    name: str
    """Its name in messages: a path, or a description."""
    data: bytes
    mesh: Axes = ()
    """The mesh recorded in the JAX object, if any."""
    notes: tuple[str, ...] = ()
    """Remarks of the producer of the program."""
    saved: SavedProgram | None = field(default=None, compare=False)
    """The saved program that it was read from, if any."""


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

    JAX compiles a `Lowered` for the devices that it was lowered for, unless a `topology` is given: then it is kept as
    StableHLO, to be compiled for that.  Raises `WorkError` for anything else.
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
    """A topology that fits, for the error message."""
    try:
        return Topology.smallest(prod(size for _, size in mesh)).slice_name
    except MeshError:
        return "v5e:2x4"


@dataclass(frozen=True, slots=True)
class ProgramCollectives:
    """The collectives that a program emits."""

    rows: tuple[Collective, ...]
    saved: SavedProgram
    """The program: its text, its axes, its target and compiler."""
    mesh: Axes = ()
    """The mesh recorded in the program, if any."""

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
    try_remedies: bool = False,
) -> list[ProgramCollectives]:
    """The collectives of each program; programs that are not compiled yet are compiled first, in parallel, cached.

    axes: empty: those of each program's recorded mesh.
    topology: to compile for; empty: the smallest v5e slice that the program fills.  Progress goes to stderr.
    names: the scope map, and which files are the user's; what it leaves out is taken from the saved program.
    try_remedies: compile a program that is advised on again, with the remedy in it, and say what it sends then.
    Raises `HloError` or `WorkError`, one line that names the program.
    """
    for program in programs:
        reading_axes(axes, _mesh(program), name=program.name)
    modules = [_compiled(program) for program in programs]
    if topology and all(modules):
        raise WorkError(f"{programs[0].name}: is compiled already; a topology is for programs that are not")
    missing = dict.fromkeys(program for program, module in zip(programs, modules, strict=True) if module is None)
    source_names = names or SourceNames()
    with _Compiler.begin(axes, topology, no_cache) as compiler:
        compiled = compiler.compile(list(missing))
        return [
            _read(
                program,
                module,
                compiled.get(program),
                axes,
                source_names,
                compile_with=compiler.compile_with if try_remedies else None,
            )
            for program, module in zip(programs, modules, strict=True)
        ]


def _mesh(program: ProgramInput) -> Axes:
    """The mesh recorded in a program, as far as that is known before it is compiled."""
    if program.saved:
        return tuple(program.saved.axes.items())
    written = b"sdy.mesh" in program.data and not program.data.startswith(_MLIR_BYTECODE)
    return program.mesh or (mesh_of_text(program.data.decode(errors="replace")) if written else ())


@dataclass(frozen=True, slots=True)
class _Compiler:
    """Compiles programs for one target, each once, and shows which is being compiled."""

    num_devices: int
    topology: str
    cache: cache.Cache
    notify: Callable[[str, str, float], None]

    @classmethod
    @contextmanager
    def begin(cls, axes: Mapping[str, int], topology: str, no_cache: bool) -> Iterator[Self]:
        with (
            cache.open_cache(bypass=no_cache) as user_cache,
            progress.show_compiles(Console(stderr=True, quiet=is_quiet())) as notify,
        ):
            yield cls(prod(axes.values()) if axes else 0, topology, user_cache, notify)

    def compile(self, programs: Sequence[ProgramInput]) -> Mapping[ProgramInput, CompiledProgram]:
        try:
            compiled = compile_all(
                {number: program.data for number, program in enumerate(programs)},
                num_devices=self.num_devices,
                topology=self.topology,
                cache=self.cache,
                notify=lambda number, stage, seconds: self.notify(programs[number].name, stage, seconds),
            )
        except CompileFailed as failed:
            raise WorkError(f"{programs[failed.number].name}: {failed}") from None
        return {programs[number]: program for number, program in compiled.items()}

    def compile_with(self, program: ProgramInput, remedy: Remedy) -> CompiledProgram:
        """The program with a remedy in it.  Raises `CompileFailed` where that cannot be written or compiled."""
        return compile_all(
            {0: program.data},
            num_devices=self.num_devices,
            topology=self.topology,
            cache=self.cache,
            notify=lambda _, stage, seconds: self.notify(f"{program.name} with its remedy", stage, seconds),
            remedies={0: remedy},
        )[0]


def _read(
    program: ProgramInput,
    module: Module | None,
    compiled: CompiledProgram | None,
    axes: Mapping[str, int],
    names: SourceNames,
    *,
    compile_with: Callable[[ProgramInput, Remedy], CompiledProgram] | None,
) -> ProgramCollectives:
    """The collectives of a program that came compiled (`module`) or was compiled here (`compiled`)."""
    mesh = _mesh(program) or (mesh_of_text("\n".join(compiled.meshes)) if compiled else ())
    sizes = reading_axes(axes, mesh, name=program.name)
    if module is None:
        assert compiled is not None
        module = read(compiled.text)
        saved = SavedProgram(
            text=compiled.text,
            axes=sizes,
            compiled=compiled.how,
            topology=compiled.topology,
            device_ids=compiled.device_ids,
            passes=compiled.passes,
        )
    else:
        saved = program.saved or SavedProgram(text=decode_text(program.data) or module.text, axes=sizes)
    saved = replace(saved, axes=sizes, names=names.fill_from(saved.names))
    rows = _rows(program, module, saved)
    decided = list_notes(compiled, module, axes=sizes, rows=rows, names=saved.names) if compiled else ()
    outcomes = {}
    if compiled and compile_with:
        for advice, remedy in remedies(rows, module):
            try:
                mended = read(compile_with(program, remedy).text)
                outcomes[advice] = compare_traffic(rows, _rows(program, mended, saved))
            except CompileFailed as failed:
                outcomes[advice] = f"it could not be tried on this program: {failed}"
    found = (*replicated_notes(module), *decided, *advise(rows, module, outcomes))
    # A saved program's own have them already, and what came of the remedies.
    new = [words for words in found if not any(note.startswith(words) for note in program.notes)]
    return ProgramCollectives(rows, replace(saved, notes=tuple(dict.fromkeys((*program.notes, *new)))), mesh)


def _rows(program: ProgramInput, module: Module, saved: SavedProgram) -> tuple[Collective, ...]:
    try:
        return tuple(collectives(module, saved.axes, device_ids=saved.device_ids, names=saved.names))
    except HloError as error:
        raise HloError(f"{program.name}: {error}") from None


def _compiled(program: ProgramInput) -> Module | None:
    """The module of a partitioned program; `None` where it is still to be compiled."""
    data = program.data
    if data.startswith(_MLIR_BYTECODE):
        return None
    try:
        text = decode_text(data)
        if text is None:
            module = read(proto.write_hlo_text(data))
            # What a framework traced may have no sharding: without schedule and collectives it is not compiled yet.
            is_compiled = is_partitioned(module) and (is_scheduled(module) or bool(collective_instructions(module)))
        elif "HloModule " not in text[:_HEAD_BYTES] and any(word in data[:_HEAD_BYTES] for word in _STABLEHLO):
            return None
        else:
            module = read(text)
            is_compiled = is_partitioned(module)
        if not is_compiled:
            check_own_groups(module)
    except HloError as error:
        raise HloError(f"{program.name}: {error}") from None
    return module if is_compiled else None
