"""From a traced graph to the StableHLO of `program.mlirbc`; the one file on jaxlib, which holds the converter."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import mhlo, stablehlo

from torchxla_impl.process import locations


def bytecode(
    graph: Any,
    *,
    bodies: Sequence[bytes],
    names: Sequence[str],
    shardings: Sequence[str],
    overwritten: Mapping[str, int],
) -> bytes:
    """StableHLO with a name and a sharding on each parameter, and the output that overwrites each donated one.

    A placeholder has no sharding that the graph could show: it goes where that of a tensor with data stands.  A
    donation never reaches the graph: the runtime adds it as it compiles.  `bodies` are those of the program's loops,
    for their source lines.
    """
    with _dialects():
        module, *known = (ir.Module.parse(_jax.mlir.hlo_to_stablehlo(each)) for each in (graph.hlo(), *bodies))
        locations.restore_locations(module, known, names=names)
        rows = [
            {"mhlo.sharding": ir.StringAttr.get(sharding)} | _alias(overwritten.get(name))
            for name, sharding in zip(names, shardings, strict=True)
        ]
        locations.entry(module).arg_attrs = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])
        written = io.BytesIO()
        module.operation.write_bytecode(written)
    return written.getvalue()


def _alias(output: int | None) -> dict[str, ir.Attribute]:
    number = ir.IntegerType.get_signless(32)
    return {} if output is None else {"tf.aliasing_output": ir.IntegerAttr.get(number, output)}


def _dialects() -> ir.Context:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    return context
