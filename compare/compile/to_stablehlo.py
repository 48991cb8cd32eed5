"""Convert a program from before the partitioner, in any format, to StableHLO bytecode, and read its compile options."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

from jaxlib import _hlo, _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from compare.compile import compiler
from compare.compile.errors import RefusedError
from compare.compile.requests import OptionValue

_BYTECODE = b"ML\xefR"
_SHARDINGS = ("mhlo.sharding", "sdy.sharding")
_PARTITIONS = re.compile(rb"^HloModule [^\n]*?\bnum_partitions=(\d+)", re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class StablehloProgram:
    """A program, and the compile options that it implies: partitioner, devices, unsharded arguments and results."""

    bytecode: bytes
    num_devices: int
    """0 where the program does not give it."""
    shardy: bool
    open_parameters: tuple[bool, ...]
    """Of each argument whether the partitioner may choose its sharding: it has none."""
    open_outputs: tuple[bool, ...]
    meshes: tuple[str, ...]
    """Shardy's, as they are written."""

    def compile_options(self, num_devices: int) -> dict[str, OptionValue]:
        return {
            "num_replicas": 1,
            "num_partitions": num_devices,
            "use_spmd_partitioning": True,
            "use_shardy_partitioner": self.shardy,
            "allow_spmd_sharding_propagation_to_parameters": list(self.open_parameters),
            "allow_spmd_sharding_propagation_to_output": list(self.open_outputs),
        }


def convert_to_stablehlo(data: bytes) -> StablehloProgram:
    """Raises `RefusedError` where it is none of these spellings."""
    text = data.lstrip()[:4096]
    partitions = (
        _PARTITIONS.search(data) if text.startswith((b"HloModule", b"//", b"#")) or b"HloModule " in text else None
    )
    if data.startswith(_BYTECODE):
        module = compiler.parse_stablehlo(data)
    elif b"HloModule " in text:
        module = compiler.parse_stablehlo(_from_proto(_parsed(data)))
    elif b"\0" not in text and re.search(rb"\bmodule\b|func\.func|stablehlo\.|#loc", data[:20_000]):
        module = compiler.parse_stablehlo(data)
    else:
        module = compiler.parse_stablehlo(_from_proto(data))
    return _describe(module, num_devices=int(partitions[1]) if partitions else 0)


def _parsed(text: bytes) -> bytes:
    try:
        return bytes(_hlo.hlo_module_from_text(text.decode()).as_serialized_hlo_module_proto())
    except (_jax.JaxRuntimeError, RuntimeError, UnicodeDecodeError) as error:
        raise RefusedError(f"XLA cannot read this HLO text: {' '.join(str(error).split())[:200]}") from error


def _from_proto(data: bytes) -> bytes:
    try:
        return bytes(_jax.mlir.hlo_to_stablehlo(data))
    except (_jax.JaxRuntimeError, RuntimeError, ValueError) as error:
        raise RefusedError(f"this is no program that XLA can read: {' '.join(str(error).split())[:200]}") from error


def _describe(module: ir.Module, *, num_devices: int) -> StablehloProgram:
    written = io.BytesIO()
    module.operation.write_bytecode(written)
    bytecode = written.getvalue()
    attributes = module.operation.attributes
    counts = [_integer(attributes, name) for name in ("mhlo.num_partitions", "mhlo.num_replicas")]
    if (counts[1] or 1) > 1:
        raise RefusedError(f"the program has {counts[1]} replicas; only programs of one replica, partitioned, are read")
    main = _main(module)
    arguments = _rows(main, "arg_attrs", len(main.type.inputs))
    results = _rows(main, "res_attrs", len(main.type.results))
    return StablehloProgram(
        bytecode=bytecode,
        num_devices=counts[0] if counts[0] and counts[0] > 1 else num_devices,
        shardy=b"sdy" in bytecode,
        open_parameters=tuple(not _is_sharded(row) for row in arguments),
        open_outputs=tuple(not _is_sharded(row) for row in results),
        meshes=tuple(str(operation) for operation in module.body.operations if operation.operation.name == "sdy.mesh"),
    )


def _integer(attributes: Mapping[str, ir.Attribute], name: str) -> int | None:
    return int(ir.IntegerAttr(attributes[name]).value) if name in attributes else None


def _main(module: ir.Module) -> func.FuncOp:
    functions = [operation for operation in module.body.operations if operation.operation.name == "func.func"]
    named = [
        function for function in functions if ir.StringAttr(function.operation.attributes["sym_name"]).value == "main"
    ]
    if not named and len(functions) != 1:
        raise RefusedError("the program has no function main")
    return (named or functions)[0]


def _rows(main: func.FuncOp, name: str, count: int) -> list[ir.Attribute | None]:
    attributes = main.operation.attributes
    return list(ir.ArrayAttr(attributes[name])) if name in attributes else [None] * count


def _is_sharded(row: ir.Attribute | None) -> bool:
    return row is not None and any(name in ir.DictAttr(row) for name in _SHARDINGS)
