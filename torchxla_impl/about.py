"""What a traced program says of itself: its bytecode, its arguments, and how torch_xla would have it compiled."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch_xla
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import mhlo, stablehlo
from jaxtyping import Shaped
from torch import Tensor

from torchxla_impl.cache import CACHE_DIMS
from torchxla_impl.layout import DTYPES
from torchxla_impl.step import Step

DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()} | {torch.int32: "s32"}
"""As XLA spells them."""

OUTPUTS = (("ids", "batch"), ("cache.k", CACHE_DIMS), ("cache.v", CACHE_DIMS))

Tensors = Mapping[str, Shaped[Tensor, "..."]]


def compile_options(*, num_devices: int) -> dict[str, Any]:
    """The options of torch_xla's runtime (`PjRtComputationClient::Compile`, 2.9.0) for an SPMD program.

    It leaves the sharding of outputs to GSPMD and that of parameters not; parameters come in a tuple past 3,200 only.
    """
    return {
        "num_replicas": 1,
        "num_partitions": num_devices,
        "parameter_is_tupled_arguments": False,
        "use_spmd_partitioning": True,
        "use_shardy_partitioner": False,
        "allow_spmd_sharding_propagation_to_parameters": [False],
        "allow_spmd_sharding_propagation_to_output": [True],
    }


def parameters(step: Step, graph: Any, tensors: Tensors) -> list[dict[str, Any]]:
    """The program's parameters in their order, which is that in which the graph meets them, with what each is."""
    found = [
        {"index": graph.tensor_parameter_id(tensors[each.name]), "name": each.name, "role": each.role}
        | _array(step, each.dims, tensors[each.name])
        for each in step.arguments
    ]
    return sorted(found, key=lambda row: row["index"])


def outputs(step: Step, tensors: Sequence[Tensor]) -> list[dict[str, Any]]:
    """The program's results in their order."""
    return [
        {"index": index, "name": name} | _array(step, dims, tensor)
        for index, ((name, dims), tensor) in enumerate(zip(OUTPUTS, tensors, strict=True))
    ]


def _array(step: Step, dims: str, tensor: Tensor) -> dict[str, Any]:
    axes = list(step.layout.spec(dims))
    return {"dims": dims, "shape": list(tensor.shape), "dtype": DTYPE_NAMES[tensor.dtype], "axes": axes}


def lowering(outputs: Sequence[Tensor]) -> Any:
    """The graph of these tensors as HLO, torch_xla's own `LoweringContext`."""
    context = torch_xla._XLAC.lowering.LoweringContext("step")
    context.build(list(outputs))
    return context


def bytecode(step: Step, graph: Any, *, given: Sequence[Mapping[str, Any]], made: Sequence[Mapping[str, Any]]) -> bytes:
    """StableHLO with the sharding of each parameter on it, and the cache donated.

    Shardings stand where `mark_sharding` puts those of tensors with data.  A donation never reaches the graph: the
    runtime adds it as it compiles.
    """
    overwrites = {each["name"]: each["index"] for each in made}
    with _dialects():
        module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(graph.hlo()))
        number = ir.IntegerType.get_signless(32)
        rows = []
        for each in given:
            row = {"mhlo.sharding": ir.StringAttr.get(step.layout.sharding(each["dims"]))}
            if each["role"] == "cache":
                row["tf.aliasing_output"] = ir.IntegerAttr.get(number, overwrites[each["name"]])
            rows.append(ir.DictAttr.get(row))
        (main,) = (each for each in module.body.operations if each.name.value == "main")
        main.arg_attrs = ir.ArrayAttr.get(rows)
        return written(module)


def written(module: ir.Module) -> bytes:
    output = io.BytesIO()
    module.operation.write_bytecode(output)
    return output.getvalue()


def _dialects() -> ir.Context:
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    stablehlo.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    return context
