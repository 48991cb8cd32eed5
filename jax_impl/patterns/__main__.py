"""Lower many patterns in one process: `python -m jax_impl.patterns REQUEST.json OUTDIR`.

REQUEST holds `programs`: each with `pattern`, `partitioner` (`shardy` or `gspmd`), `axes`, and `arrays` (name ->
shape and dtype).  Number n gets OUTDIR/n/program.mlirbc and about.json, or failed.txt with one line.  One JSON line on
stdout for each.  Exit 0; 2: the request can't be met, and the last line on stderr says why.
"""

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

CHAPTERS = ("moves", "matmuls", "pieces", "attention", "shapes", "blocks")
"""The files that hold patterns."""


def lower(asked: Mapping[str, Any], out: Path) -> None:
    """Write one program, and what is known about it."""
    import jax
    from jax.sharding import AbstractMesh, AxisType, NamedSharding, use_abstract_mesh

    from jax_impl import about
    from jax_impl.layout import DTYPES
    from jax_impl.patterns.pattern import PATTERNS

    pattern, axes = PATTERNS[asked["pattern"]], asked["axes"]
    mesh = AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
    dtypes = DTYPES | {"s32": jax.numpy.int32}
    shapes = [
        jax.ShapeDtypeStruct(each["shape"], dtypes[each["dtype"]], sharding=NamedSharding(mesh, pattern.takes[name]))
        for name, each in asked["arrays"].items()
    ]
    gives = [NamedSharding(mesh, spec) for spec in pattern.gives]
    jax.config.update("jax_use_shardy_partitioner", asked["partitioner"] == "shardy")
    with use_abstract_mesh(mesh):
        step = jax.jit(pattern.function, out_shardings=tuple(gives) if len(gives) > 1 else gives[0])
        traced = step.trace(*shapes)
        lowered = traced.lower(lowering_platforms=("tpu",))
    results = jax.tree.leaves(traced.out_info)
    found = {
        "versions": {package: version(package) for package in ("jax", "jaxlib")},
        "compile_options": about.compile_options(lowered, num_devices=mesh.size),
        "source": pattern.source,
        "takes": [_split(each, pattern.takes[name]) for name, each in zip(asked["arrays"], shapes, strict=True)],
        "gives": [_split(each, spec) for each, spec in zip(results, pattern.gives, strict=True)],
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "program.mlirbc").write_bytes(about.bytecode(lowered))
    (out / "about.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _split(array: Any, spec: Any) -> dict[str, Any]:
    """Shape, and the axis that splits each dim."""
    return {"shape": list(array.shape), "axes": [*spec, *[None] * (len(array.shape) - len(spec))]}


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m jax_impl.patterns REQUEST.json OUTDIR", file=sys.stderr)
        return 2
    try:
        programs = json.loads(Path(argv[0]).read_bytes())["programs"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"cannot read the request {argv[0]}: {error!r}", file=sys.stderr)
        return 2
    try:
        for chapter in CHAPTERS:
            import_module(f"jax_impl.patterns.{chapter}")
    except ImportError as error:
        print(f"JAX can't be imported: {error}", file=sys.stderr)
        return 2
    for number, asked in enumerate(programs):
        print(json.dumps({"stage": asked["pattern"]}), flush=True)
        out = Path(argv[1]) / str(number)
        try:
            lower(asked, out)
        except Exception as error:  # one pattern's failure is its own
            out.mkdir(parents=True, exist_ok=True)
            (out / "failed.txt").write_text(f"{type(error).__name__}: {' '.join(str(error).split())[:500]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
