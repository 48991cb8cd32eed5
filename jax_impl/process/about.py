"""What a lowered program says of itself: its bytecode, its arguments, and how JAX would have it compiled."""

from importlib.metadata import version
from typing import Any

import jax
from flax import nnx
from jax._src import compiler
from jax._src.interpreters import mlir, pxla

from jax_impl.decoder.cache import CACHE_DIMS
from jax_impl.decoder.step import Step
from jax_impl.sharding.spec import DTYPES
from meshes.twins.caches import cache_names, describe_cache_use

PACKAGES = ("jax", "jaxlib", "flax")

BUILD_OPTIONS = (
    "use_spmd_partitioning",
    "use_shardy_partitioner",
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "optimization_level",
    "memory_fitting_level",
)

DTYPE_NAMES = {jax.numpy.dtype(dtype): name for name, dtype in DTYPES.items()} | {jax.numpy.dtype("int32"): "s32"}
"""As XLA spells them."""

INPUTS = {"prefill": (("tokens", "batch positions"),), "decode": (("tokens", "batch _"), ("position", ""))}


def describe_program(step: Step, traced: jax.stages.Traced, lowered: jax.stages.Lowered) -> dict[str, Any]:
    """The fields of about.json for a lowered step."""
    case = step.layout.case
    return {
        "arm": "jax",
        "phase": case.phase,
        "versions": {package: version(package) for package in PACKAGES},
        "partitioner": partitioner(),
        "loop": case.loop,
        "attention": case.attention,
        "style": case.style,
        **describe_cache_use(case),
        "compile_options": compile_options(lowered, num_devices=case.mesh.num_devices),
        "parameters": _parameters(step),
        "outputs": _outputs(step, traced),
    }


def bytecode(lowered: jax.stages.Lowered) -> bytes:
    """StableHLO with source locations, as JAX gives it to a compiler."""
    return mlir.module_to_bytecode(lowered.compiler_ir("stablehlo"))


def compile_options(lowered: jax.stages.Lowered, *, num_devices: int) -> dict[str, Any]:
    """The options that `lowered.compile()` would use, read from JAX itself (private names of jax 0.10.2).

    Propagation may choose the sharding of parameters and outputs that a program leaves open; this one leaves none.
    """
    arguments = lowered._lowering.compile_args
    to_parameters, to_output = pxla.get_prop_to_input_output(
        arguments["in_shardings"], arguments["out_shardings"], len(arguments["ordered_effects"])
    )
    options = compiler.get_compile_options(num_replicas=1, num_partitions=num_devices)
    return {
        "num_replicas": options.num_replicas,
        "num_partitions": options.num_partitions,
        "parameter_is_tupled_arguments": arguments["tuple_args"],
        "profile_version": options.profile_version,
        **{name: getattr(options.executable_build_options, name) for name in BUILD_OPTIONS},
        "allow_spmd_sharding_propagation_to_parameters": list(to_parameters),
        "allow_spmd_sharding_propagation_to_output": list(to_output),
    }


def _parameters(step: Step) -> list[dict[str, Any]]:
    """The program's parameters in their order, with what each is."""
    weights, *rest = step.arguments
    rows = [
        (".".join(map(str, path)), "weight", each.get_metadata("dims")) for path, each in nnx.to_flat_state(weights)
    ]
    rows += [(name, "cache", CACHE_DIMS) for pair in cache_names(step.layout.case) for name in pair]
    rows += [(name, "input", dims) for name, dims in INPUTS[step.layout.case.phase]]
    shapes = jax.tree.leaves((weights, rest))
    return [
        {"index": index, "name": name, "role": role} | _array(dims, shape)
        for index, ((name, role, dims), shape) in enumerate(zip(rows, shapes, strict=True))
    ]


def _outputs(step: Step, traced: jax.stages.Traced) -> list[dict[str, Any]]:
    """The program's results in their order."""
    shapes = jax.tree.leaves(traced.out_info)
    rows = [("ids", "batch"), *((name, CACHE_DIMS) for pair in cache_names(step.layout.case) for name in pair)]
    return [
        {"index": index, "name": name} | _array(dims, shape)
        for index, ((name, dims), shape) in enumerate(zip(rows, shapes, strict=True))
    ]


def _array(dims: str, shape: jax.ShapeDtypeStruct) -> dict[str, Any]:
    axes = [",".join(each) if isinstance(each, tuple) else each for each in shape.sharding.spec]
    return {"dims": dims, "shape": list(shape.shape), "dtype": DTYPE_NAMES[shape.dtype], "axes": axes}


def partitioner() -> str:
    """What JAX is set to: `shardy` or `gspmd`."""
    return "shardy" if jax.config.jax_use_shardy_partitioner else "gspmd"  # type: ignore[attr-defined]  # made at run time
