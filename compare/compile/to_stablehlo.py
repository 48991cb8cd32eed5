"""Convert a program from before the partitioner, in any format, to StableHLO bytecode, and read its compile options."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass

from jaxlib import _hlo, _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from compare.compile import compiler, rewrite
from compare.compile.errors import RefusedError
from compare.compile.requests import OptionValue, Remedy

_BYTECODE = b"ML\xefR"
_SHARDINGS = ("mhlo.sharding", "sdy.sharding")
_FRONTEND, _MESHES = "mhlo.frontend_attributes", "xla.sdy.meshes"
_RESULT = "xla.sdy.FuncResultSharding"
_MESH_OF_HLO = re.compile(r"(\w+) = #sdy\.mesh<(\[[^\]]*\](?:, device_ids=\[[^\]]*\])?)>")
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


def convert_to_stablehlo(data: bytes, remedy: Remedy | None = None) -> StablehloProgram:
    """The program, with the remedy in it.  Raises `RefusedError` where it is none of these spellings."""
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
    _open_results(module)
    if remedy:
        rewrite.apply(module, remedy)
    return _describe(module, num_devices=int(partitions[1]) if partitions else 0)


def write_hlo(bytecode: bytes) -> str:
    """The text of the same program as HLO, before any pass."""
    program = _jax.mlir.mlir_module_to_xla_computation(bytecode, use_tuple_args=False, return_tuple=False)
    return str(program.get_hlo_module().to_string())


def _open_results(module: ir.Module) -> None:
    """Take `{replicated}` off the results of a Shardy program that it has no word of Shardy's for.

    The sharding of HLO's result tuple has an entry for each result, `{replicated}` where the program says nothing.  One
    result with such an entry and no `FuncResultSharding` (a metric of a training step) makes libtpu take the whole
    program for GSPMD's, and fail at the others.
    """
    if not _meshes_of_hlo(module):
        return
    main = _main(module)
    returned = list(main.entry_block.operations)[-1].operands
    rows = _rows(main, "res_attrs", len(main.type.results))
    with module.context:
        main.operation.attributes["res_attrs"] = ir.ArrayAttr.get(
            [
                ir.DictAttr.get({}) if row is None or (_is_replicated(row) and not _is_of_shardy(value)) else row
                for row, value in zip(rows, returned, strict=True)
            ]
        )


def _meshes_of_hlo(module: ir.Module) -> str:
    """Shardy's meshes, where the program came as HLO: `{mesh = #sdy.mesh<["data"=2]>}`, else empty."""
    attributes = module.operation.attributes
    words = ir.DictAttr(attributes[_FRONTEND]) if _FRONTEND in attributes else {}
    return ir.StringAttr(words[_MESHES]).value if _MESHES in words else ""


def _is_replicated(row: ir.Attribute) -> bool:
    attributes = ir.DictAttr(row)
    return len(attributes) == 1 and _SHARDINGS[0] in attributes and "{replicated}" in str(attributes[_SHARDINGS[0]])


def _is_of_shardy(value: ir.Value) -> bool:
    attributes = value.owner.attributes if isinstance(value.owner, ir.Operation | ir.OpView) else {}
    return "call_target_name" in attributes and ir.StringAttr(attributes["call_target_name"]).value == _RESULT


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
        meshes=(
            *(str(operation) for operation in module.body.operations if operation.operation.name == "sdy.mesh"),
            *(f"sdy.mesh @{name} = <{axes}>" for name, axes in _MESH_OF_HLO.findall(_meshes_of_hlo(module))),
        ),
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
