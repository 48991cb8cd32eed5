"""Anybody's program, however it is handed over, as compiled HLO; compiled in a process of its own if it is not."""

import gzip
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from compare.program import proto
from compare.program.collectives import collectives
from compare.program.errors import HloError
from compare.program.files import text_of, unzipped
from compare.program.records import Collective
from compare.program.text import Module, read
from compare.program.unpartitioned import is_partitioned, is_scheduled
from compare.program.walk import lines_of
from compare.work.error import WorkError
from compare.work.processes import Command, Pool
from compare.work.steps import Step

TIMEOUT_S = 1800.0
_MLIR_BYTECODE = b"ML\xefR"
_STABLEHLO = (b"module ", b"module{", b"builtin.module", b"func.func", b"stablehlo.", b"#loc")
_HEAD_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class Given:
    """A program as it was handed over."""

    name: str
    """What messages call it: a path, or what it is."""
    data: bytes


def given(program: Any, *, topology: str = "") -> Given:
    """Take a path, HLO or StableHLO text, module bytes, or an object of JAX: lowered, compiled, exported.

    A JAX `Lowered` is compiled by JAX itself for the devices that it was lowered for, unless a `topology` is named:
    then it is handed over as it is, to be compiled for that.  Raises `WorkError` for anything else.
    """
    if isinstance(program, bytes | bytearray | memoryview):
        return Given("these bytes", unzipped(bytes(program)))
    if isinstance(program, str) and "\n" in program:
        return Given("this text", program.encode())
    if isinstance(program, str | Path):
        return _file(program)
    if callable(getattr(program, "mlir_module", None)):
        return Given("this exported program", str(program.mlir_module()).encode())
    if not callable(getattr(program, "as_text", None)):
        raise WorkError(
            f"{type(program).__name__} is no program that can be read; hand over jax.jit(f).lower(…), the same "
            "compiled, HLO or StableHLO text, module bytes, or a path"
        )
    return Given(f"this {type(program).__name__}", _text(program, topology=topology).encode())


def _file(path: str | Path) -> Given:
    data = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    name = "standard input" if str(path) == "-" else str(path)
    try:
        return Given(name, unzipped(data))
    except HloError as error:
        raise HloError(f"{name}: {error}") from None


def _text(program: Any, *, topology: str) -> str:
    if topology and callable(getattr(program, "compile", None)):
        try:
            return str(program.as_text(debug_info=True))  # JAX leaves names and lines out otherwise
        except TypeError:
            return str(program.as_text())
    made = program.compile() if callable(getattr(program, "compile", None)) else program
    return str(made.as_text())


def modules(programs: Sequence[Given], *, axes: Mapping[str, int], topology: str = "") -> list[Module]:
    """Each program read; what is not compiled yet is compiled first, each in a process of its own, side by side.

    `topology`: what for; empty: the smallest v5e slice that the program fills.  Raises `HloError` or `WorkError`, one
    line that names the program.
    """
    found: dict[int, Module] = {}
    raw: dict[int, Given] = {}
    for at, one in enumerate(programs):
        module = _compiled(one)
        if module is None:
            raw[at] = one
        else:
            found[at] = module
    for at, text in _compile(raw, num_devices=prod(axes.values()) if axes else 0, topology=topology).items():
        found[at] = read(text)
    return [found[at] for at in range(len(programs))]


def tables(programs: Sequence[Given], *, axes: Mapping[str, int], topology: str = "") -> list[list[Collective]]:
    """The collectives of each program.  Raises as `modules` does, and where the axes are not a program's."""
    return [
        _rows(program, module, axes)
        for program, module in zip(programs, modules(programs, axes=axes, topology=topology), strict=True)
    ]


def _rows(program: Given, module: Module, axes: Mapping[str, int]) -> list[Collective]:
    try:
        return collectives(module, axes)
    except HloError as error:
        raise HloError(f"{program.name}: {error}") from None


def _compiled(program: Given) -> Module | None:
    """The program read, if it is one that the partitioner has seen; None where it is still to be compiled."""
    data = program.data
    if data.startswith(_MLIR_BYTECODE):
        return None
    try:
        text = text_of(data)
        if text is None:
            module = read(proto.text(data))
            # Written out it has no shardings: without a schedule and a collective it is one that has still to get them.
            return module if is_partitioned(module) and (is_scheduled(module) or lines_of(module)) else None
        if "HloModule " not in text[:_HEAD_BYTES] and any(word in data[:_HEAD_BYTES] for word in _STABLEHLO):
            return None
        module = read(text)
    except HloError as error:
        raise HloError(f"{program.name}: {error}") from None
    return module if is_partitioned(module) else None


def _compile(programs: Mapping[int, Given], *, num_devices: int, topology: str) -> dict[int, str]:
    if not programs:
        return {}
    from compare.program.aot_own import request_text

    folder = Path(tempfile.mkdtemp(prefix="wirediff-"))
    try:
        with Pool[int](lambda at, stage, seconds: None) as pool:
            for at, program in programs.items():
                out = folder / str(at)
                out.mkdir()
                (out / "program").write_bytes(program.data)
                (out / "request.json").write_text(
                    request_text(out / "program", topology=topology, num_devices=num_devices)
                )
                step = Step(
                    name="compile", kind="", key="", module="compare.program.aot_own", request="",
                    results=("optimized.hlo.gz",),
                )  # fmt: skip
                pool.start(at, Command(argv=step.argv(out / "request.json", out), stderr=out / "stderr",
                                       environment=step.environment(), timeout_s=TIMEOUT_S))  # fmt: skip
            while len(pool):
                for at, ended in pool.wait().items():
                    if ended.status != "ok":
                        raise WorkError(f"{programs[at].name}: {ended.error}")
        return {at: gzip.decompress((folder / str(at) / "optimized.hlo.gz").read_bytes()).decode() for at in programs}
    finally:
        shutil.rmtree(folder, ignore_errors=True)
