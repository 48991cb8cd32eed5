"""The PyTorch twin through torchax: `python -m witnesses.torchax_twin CASE.json OUTDIR`.

The classes of `torchxla_impl` as they are, traced by JAX instead of PyTorch/XLA: what is left of a program's
communication then is what PyTorch's own operations ask for.  The protocol is that of a twin's `lower`.

PyTorch/XLA itself is not loaded: under its module names stand the few functions that the twin calls, in the words of
torchax.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torchax
from jax._src.source_info_util import register_exclusion
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from torchax.interop import jax_view, torch_view

import meshes
from jax_impl.process import about as jax_about
from jax_impl.process.start import configure
from meshes.case import Case
from meshes.process.errors import NotOfferedError
from meshes.process.last_word import claim_stderr
from meshes.twins.caches import describe_cache_use
from meshes.twins.worker import Stages, serve, write_about
from witnesses.about import describe_parameters, package_versions
from witnesses.jax_door import DTYPES, configure_locations
from witnesses.witness import Argument, hide_frame

PACKAGES = ("torch", "torchax", "jax", "jaxlib")


def lower(case: Case, out: Path) -> None:
    """Write the program of this case's only phase, and its about.json."""
    case, stages = case.at(phases=(case.phase,)), Stages()
    if case.style == "explicit":
        raise NotOfferedError("torchax has no region of manual collectives, and so no explicit style")
    if case.style == "typed":
        raise NotOfferedError(
            "torchax's tensors are of PyTorch's types, which bear no shardings: it has no style typed"
        )
    stages.begin("import")
    stand_in_for_torch_xla(num_devices=case.mesh.num_devices)
    configure(case)
    configure_locations()
    # A pin bears the line of the model that placed it, not of the layout.
    register_exclusion(f"{Path(meshes.__file__).parents[1] / 'torchxla_impl' / 'sharding'}/")
    environment = torchax.default_env()
    torch.set_grad_enabled(False)
    # PyTorch's alias is the same array to torchax: marked would be every use of it.
    environment.override_op_definition(torch.ops.aten.alias, lambda x: torch_view(jax_view(x)))
    from torchxla_impl.sharding import spec

    # Before the rest of the twin takes it from there: it builds a constant by PyTorch/XLA's own builder.
    spec.constant = lambda values: torch_view(jnp.asarray(values))
    from torchxla_impl.decoder.cache import make_caches
    from torchxla_impl.decoder.step import Step
    from torchxla_impl.sharding.create import layout_on_devices

    stages.begin("trace")
    step = Step.of(layout_on_devices(case))
    names = {torch.bfloat16: "bf16", torch.float32: "f32", torch.int32: "s32"}
    arguments = [
        Argument(name=each.name, role=each.role, dims=each.dims, shape=tuple(each.shape), dtype=names[each.dtype])
        for each in step.arguments
    ]
    weights = {each.name: _abstract(each, step.layout.mesh, case) for each in arguments if each.role == "weight"}
    cache = {each.name: _abstract(each, step.layout.mesh, case) for each in arguments if each.role == "cache"}
    inputs = [_abstract(each, step.layout.mesh, case) for each in arguments if each.role == "input"]

    def run(weights: Any, cache: Any, inputs: Any) -> Any:
        with environment:
            weights, cache, inputs = torch_view((weights, cache, inputs))
            ids, kept = step.run(weights, make_caches(case, cache.__getitem__), *inputs)
            return jax_view((ids, jax.tree.leaves(kept)))

    hide_frame(run)
    lowered = jax.jit(run, donate_argnums=1, keep_unused=True).trace(weights, cache, inputs)
    stages.begin("lower")
    lowered = lowered.lower(lowering_platforms=("tpu",))
    ordered = [
        *sorted((each for each in arguments if each.role == "weight"), key=lambda each: each.name),
        *sorted((each for each in arguments if each.role == "cache"), key=lambda each: each.name),
        *(each for each in arguments if each.role == "input"),
    ]
    description = {
        "arm": "torchxla",
        "phase": case.phase,
        "versions": package_versions(PACKAGES),
        "partitioner": jax_about.partitioner(),
        "tracer": "torchax",
        "loop": case.loop,
        "attention": case.attention,
        "style": case.style,
        **describe_cache_use(case),
        "compile_options": jax_about.compile_options(lowered, num_devices=case.mesh.num_devices),
        "parameters": describe_parameters(ordered, case),
    }
    stages.begin("write")
    (out / "program.mlirbc").write_bytes(jax_about.bytecode(lowered))
    write_about(out, description | {"seconds": stages.seconds()})


def stand_in_for_torch_xla(*, num_devices: int) -> None:
    """Put modules of PyTorch/XLA's names in its place: a device, a mesh, a pin, a scope, a loop; nothing else."""
    root = _module("torch_xla", device=lambda: "jax", _XLAC=None)
    _module("torch_xla.runtime", global_runtime_device_count=lambda: num_devices)
    _module("torch_xla.debug")
    _module("torch_xla.debug.profiler", Trace=_trace)
    _module("torch_xla.distributed")
    _module("torch_xla.distributed.spmd", Mesh=_mesh, mark_sharding=_mark)
    _module("torch_xla.core")
    _module("torch_xla.core.xla_builder")
    _module("torch_xla.core.xla_model")
    _module("torch_xla.core.xla_op_registry", register=_register)
    _module("torch_xla.experimental")
    _module("torch_xla.experimental.scan", _scan_impl_pytree=_scan)
    root.runtime = sys.modules["torch_xla.runtime"]


def _module(name: str, **functions: Any) -> Any:
    module = ModuleType(name)
    module.__dict__.update(functions)
    module.__path__ = []
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module


def _trace(name: str) -> AbstractContextManager[Any]:
    return jax.named_scope(name)


def _mesh(devices: np.ndarray[Any, Any], sizes: tuple[int, ...], names: tuple[str, ...]) -> AbstractMesh:
    return AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))


def _mark(x: Any, mesh: AbstractMesh, axes: Any) -> None:
    """Pin this very tensor, as `mark_sharding` does."""
    x.shard_(NamedSharding(mesh, PartitionSpec(*axes)))


def _register(name: str, build: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that the twin builds of XLA's own, of JAX's in their place."""
    return lambda *tensors: torch_view(build(*map(_XlaOp, jax_view(tensors))).array)


@dataclass(frozen=True)
class _XlaOp:
    """An array with those methods of PyTorch/XLA's builder that the twin calls."""

    array: jax.Array

    def dynamic_update_slice(self, piece: Self, starts: Sequence[Self]) -> "_XlaOp":
        return _XlaOp(jax.lax.dynamic_update_slice(self.array, piece.array, [start.array for start in starts]))


def _scan(run: Callable[..., Any], carry: Any, along: Any) -> Any:
    """PyTorch/XLA's scan as JAX's: a `while` of the program."""

    def body(carry: Any, at: Any) -> Any:
        return jax_view(run(*torch_view((carry, at))))

    hide_frame(body)
    return torch_view(jax.lax.scan(body, *jax_view((carry, along))))


def _abstract(each: Argument, mesh: Any, case: Case) -> jax.ShapeDtypeStruct:
    sharding = NamedSharding(mesh, PartitionSpec(*each.axes(case)))
    return jax.ShapeDtypeStruct(each.shape, DTYPES[each.dtype], sharding=sharding)


for _function in (_mark, _trace):
    hide_frame(_function)


def main(argv: list[str]) -> int:
    return serve(lower, argv, usage="python -m witnesses.torchax_twin CASE.json OUTDIR", framework="torchax")


if __name__ == "__main__":
    claim_stderr()
    sys.exit(main(sys.argv[1:]))
