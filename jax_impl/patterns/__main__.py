"""Lower many patterns in one process: `python -m jax_impl.patterns REQUEST.json OUTDIR` (see batch_requests).

`partitioner` is `shardy` or `gspmd`.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from meshes.process.batch_requests import serve, write
from meshes.process.last_word import claim_stderr


def lower(request: Mapping[str, Any], out: Path) -> None:
    """Write one program, and what is known about it."""
    import jax
    from jax.sharding import AbstractMesh, AxisType, NamedSharding, use_abstract_mesh

    from jax_impl.patterns.pattern import PATTERNS
    from jax_impl.process import about
    from jax_impl.sharding.spec import DTYPES

    pattern, axes = PATTERNS[request["pattern"]], request["axes"]
    mesh = AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
    dtypes = DTYPES | {"s32": jax.numpy.int32, "s8": jax.numpy.int8}
    shapes = [
        jax.ShapeDtypeStruct(each["shape"], dtypes[each["dtype"]], sharding=NamedSharding(mesh, pattern.takes[name]))
        for name, each in request["arrays"].items()
    ]
    gives = [NamedSharding(mesh, spec) for spec in pattern.gives]
    jax.config.update("jax_use_shardy_partitioner", request["partitioner"] == "shardy")
    with use_abstract_mesh(mesh):
        step = jax.jit(pattern.function, out_shardings=tuple(gives) if len(gives) > 1 else gives[0])
        traced = step.trace(*shapes)
        lowered = traced.lower(lowering_platforms=("tpu",))
    results = jax.tree.leaves(traced.out_info)
    description = {
        "versions": {package: version(package) for package in ("jax", "jaxlib")},
        "compile_options": about.compile_options(lowered, num_devices=mesh.size),
        "source": pattern.source,
        "takes": [_split(each, pattern.takes[name]) for name, each in zip(request["arrays"], shapes, strict=True)],
        "gives": [_split(each, spec) for each, spec in zip(results, pattern.gives, strict=True)],
    }
    write(out, program=about.bytecode(lowered), about=description)


def _split(array: Any, spec: Any) -> dict[str, Any]:
    """Shape, and the axis that splits each dim."""
    return {"shape": list(array.shape), "axes": [*spec, *[None] * (len(array.shape) - len(spec))]}


def main(argv: list[str]) -> int:
    return serve(lower, argv, package="jax_impl.patterns", framework="JAX")


if __name__ == "__main__":
    claim_stderr()
    sys.exit(main(sys.argv[1:]))
