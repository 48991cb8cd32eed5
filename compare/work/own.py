"""Anybody's program, however it is handed over, and the collectives that it emits."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from rich.console import Console

from compare.program import proto
from compare.program.collectives import collectives
from compare.program.errors import HloError
from compare.program.files import read_bytes, text_of, unzipped
from compare.program.records import Collective
from compare.program.text import Module, read
from compare.program.unpartitioned import is_partitioned, is_scheduled
from compare.program.walk import lines_of
from compare.work import cache, progress
from compare.work.error import WorkError
from compare.work.own_compile import CompileFailed, Made, compile_all

_MLIR_BYTECODE = b"ML\xefR"
_STABLEHLO = (b"module ", b"module{", b"builtin.module", b"func.func", b"stablehlo.", b"#loc")
_HEAD_BYTES = 20_000
_ONE_LINE = re.compile(r"\s*(?:$|(?:HloModule|(?:builtin\.)?module)[ {])")
"""A program in one line, or nothing at all: no path begins like this."""


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
        return _unzipped("these bytes", bytes(program))
    if isinstance(program, str) and ("\n" in program or _ONE_LINE.match(program)):
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
    name = "standard input" if str(path) == "-" else str(path)
    try:
        return Given(name, unzipped(read_bytes(path)))
    except HloError as error:
        raise HloError(f"{name}: {error}") from None


def _unzipped(name: str, data: bytes) -> Given:
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


@dataclass(frozen=True, slots=True)
class Read:
    """What a program emits."""

    rows: tuple[Collective, ...]
    compiled: str
    """For what and by what it was compiled here; empty where it came compiled."""


def read_all(
    programs: Sequence[Given], *, axes: Mapping[str, int], topology: str = "", no_cache: bool = False
) -> list[Read]:
    """The collectives of each program; what is not compiled yet is compiled first, each in a process of its own.

    `topology`: what for; empty: the smallest v5e slice that the program fills.  What was compiled once is in the cache;
    what is being compiled is shown on stderr.  Raises `HloError` or `WorkError`, one line that names the program.
    """
    found = [_compiled(one) for one in programs]
    if topology and all(found):
        raise WorkError(f"{programs[0].name}: is compiled already; a topology is for programs that are not")
    made = _made([one for one, module in zip(programs, found, strict=True) if module is None], axes, topology, no_cache)
    return [_read(one, module, made.get(one), axes) for one, module in zip(programs, found, strict=True)]


def _made(programs: Sequence[Given], axes: Mapping[str, int], topology: str, no_cache: bool) -> Mapping[Given, Made]:
    """Each program that is not compiled yet, compiled; the same twice is compiled once."""
    if not programs:
        return {}
    ones = list(dict.fromkeys(programs))
    with cache.opened(bypass=no_cache) as kept, progress.compiling(Console(stderr=True)) as tell:
        try:
            found = compile_all(
                {at: one.data for at, one in enumerate(ones)},
                num_devices=prod(axes.values()) if axes else 0, topology=topology, cache=kept,
                tell=lambda at, stage, seconds: tell(ones[at].name, stage, seconds),
            )  # fmt: skip
        except CompileFailed as failed:
            raise WorkError(f"{ones[failed.number].name}: {failed}") from None
    return {ones[at]: one for at, one in found.items()}


def _read(program: Given, module: Module | None, made: Made | None, axes: Mapping[str, int]) -> Read:
    """What it emits, as it came or as it was compiled."""
    if module is None:
        assert made is not None
        return Read(_rows(program, read(made.text), axes, made.device_ids), made.how)
    return Read(_rows(program, module, axes, ()), "")


def _rows(program: Given, module: Module, axes: Mapping[str, int], device_ids: Sequence[int]) -> tuple[Collective, ...]:
    try:
        return tuple(collectives(module, axes, device_ids=device_ids))
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
