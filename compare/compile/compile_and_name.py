"""A request compiled: the executable, its text with the names that libtpu drops, and the texts between passes."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from compare.compile import compiler, executable_info, op_names, pass_dump
from compare.compile.errors import CompileError
from compare.compile.requests import CompileRequest
from compare.hlo.collective import COLLECTIVE_KINDS

_CHANNEL = "channel_handle"
_COLLECTIVES = frozenset(f"stablehlo.{kind.replace('-', '_')}" for kind in COLLECTIVE_KINDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledProgram:
    """What came of one compile."""

    executable: _jax.Executable
    text: str
    """Without this machine's folders."""
    before: str
    """libtpu's own text from which names are restored; empty where none is lost."""
    packed: bytes
    """The archive of the texts between passes; empty where `why` says why there is none."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileJob:
    """Compiles one request, in a folder of its own.  `CompileError`: libtpu gave up; `RefusedError`: wrong options."""

    request: CompileRequest
    ordered: Sequence[_jax.Device]
    """The devices of the topology, by their logical number."""
    out: Path
    begin: Callable[[str], None]
    """Called at the start of each stage other than the compile itself."""

    def compile(self, program: ir.Module, *, passes: bool) -> CompiledProgram:
        """Compile it; `passes`: with the texts between them."""
        with TemporaryDirectory(dir=self.out) as name:
            dump = Path(name)
            options = compiler.build_options(self.request["compile_options"], self.ordered)
            if asks := pass_dump.needs_dump(self.request):
                options.env_option_overrides += pass_dump.dump_flags(dump, all_of_them=passes)
            executable = compiler.compile_module(program, ordered=self.ordered, options=options)
            before = op_names.read_text_with_names(dump) if asks and self.request["num_slices"] > 1 else ""
            packed, why = b"", "not asked for"
            if passes:
                self.begin("passes")
                packed, why = pass_dump.pack_dump(dump, strip=self._stripped)
        (hlo,) = executable.hlo_modules()
        text, before = (self._stripped(module_text) for module_text in (hlo.to_string(), before))
        return CompiledProgram(executable=executable, text=text, before=before, packed=packed, why=why)

    def restore_names(self, compiled: CompiledProgram, *, program: ir.Module) -> op_names.RestoredNames:
        """The text with the names that were lost.

        program: the same program, parsed again.  Where two collectives share a channel it is compiled once more, with
        distinct channels.
        """
        names = op_names.restore_names(compiled.text, compiled.before)
        if names.restored == names.lost or not _share_channels(program):
            return names
        self.begin("names")
        _part_channels(program)
        try:
            twin = self.compile(program, passes=False)
        except CompileError:
            return names
        return op_names.restore_names(compiled.text, compiled.before, twin=(twin.text, twin.before))

    def _stripped(self, text: str) -> str:
        return executable_info.strip_folders(text, self.request["strip"])


def _share_channels(module: ir.Module) -> bool:
    """Whether two collectives have one channel, as JAX gives all collectives of a `shard_map`."""
    uses = Counter(_handle(op).handle for op in _with_channels(module) if op.name in _COLLECTIVES)
    return any(times > 1 for times in uses.values())


def _part_channels(module: ir.Module) -> None:
    """Give each collective a distinct channel, in place, above the numbers in use.

    The program compiles to the same but for those numbers.  What the compiler merges because even the channels were
    equal, it then leaves apart: who uses the second program for the first must see that they are the same.
    """
    ops = _with_channels(module)
    number = max((_handle(op).handle for op in ops), default=0)
    for op in ops:
        if op.name in _COLLECTIVES:
            number += 1
            kind = _handle(op).channel_type
            op.attributes[_CHANNEL] = stablehlo.ChannelHandle.get(number, kind, context=op.context)


def _handle(op: ir.Operation) -> stablehlo.ChannelHandle:
    return stablehlo.ChannelHandle(op.attributes[_CHANNEL])


def _with_channels(module: ir.Module) -> list[ir.Operation]:
    operations: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if _CHANNEL in op.attributes:
            operations.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return operations
