"""What a traced program says of itself: its arguments, and how torch_xla would have it compiled."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import torch
import torch_xla
from torch import Tensor

from meshes.twins.caches import cache_names, describe_cache_use
from meshes.twins.layout import partition_axes
from torchxla_impl.decoder.cache import CACHE_DIMS
from torchxla_impl.decoder.step import Step
from torchxla_impl.sharding.layout import Layout
from torchxla_impl.sharding.spec import DTYPES

PACKAGES = ("torch", "torch_xla", "jaxlib")
"""jaxlib turns the HLO into StableHLO."""

DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()} | {torch.int32: "s32"}
"""As XLA spells them."""


def lower_graph(outputs: Sequence[Tensor]) -> Any:
    """The graph of these tensors as HLO, in torch_xla's own `LoweringContext`."""
    context = torch_xla._XLAC.lowering.LoweringContext("step")
    context.build(list(outputs))
    return context


def describe_program(
    step: Step, graph: Any, arguments: Sequence[Tensor], *, outputs: Sequence[Tensor]
) -> dict[str, Any]:
    """The fields of about.json for a lowered step."""
    case = step.layout.case
    return {
        "arm": "torchxla",
        "phase": case.phase,
        "versions": {package: version(package) for package in PACKAGES},
        "partitioner": "gspmd",
        "loop": case.loop,
        "attention": case.attention,
        "style": case.style,
        **describe_cache_use(case),
        "compile_options": compile_options(num_devices=case.mesh.num_devices),
        "parameters": _parameters(step, [graph.tensor_parameter_id(each) for each in arguments]),
        "outputs": _outputs(step, outputs),
    }


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


def _parameters(step: Step, numbers: Sequence[int]) -> list[dict[str, Any]]:
    """The program's parameters in their order, which is that in which the graph meets them, with what each is."""
    rows = [
        {"index": number, "name": each.name, "role": each.role} | _array(step.layout, each.dims, each)
        for number, each in zip(numbers, step.arguments, strict=True)
    ]
    return sorted(rows, key=lambda row: row["index"])


def _outputs(step: Step, tensors: Sequence[Tensor]) -> list[dict[str, Any]]:
    """The program's results in their order."""
    rows = [("ids", "batch"), *((name, CACHE_DIMS) for pair in cache_names(step.layout.case) for name in pair)]
    return [
        {"index": index, "name": name} | _array(step.layout, dims, tensor)
        for index, ((name, dims), tensor) in enumerate(zip(rows, tensors, strict=True))
    ]


def _array(layout: Layout, dims: str, tensor: Any) -> dict[str, Any]:
    axes = [",".join(each) if isinstance(each, tuple) else each for each in partition_axes(dims, case=layout.case)]
    return {"dims": dims, "shape": list(tensor.shape), "dtype": DTYPE_NAMES[tensor.dtype], "axes": axes}
