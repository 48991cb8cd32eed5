"""The gallery's patterns, executed on virtual CPU devices: `python -m tests.twins.patterns ARM OUT.npz DEVICES`.

Those of the lessons whose mesh has so many devices.

Every array is float32 (ids and positions are small integers), the same numbers in both arms.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from compare.gallery.lesson_types.lesson import Lesson
from compare.gallery.lessons import LESSONS

FILES = (
    "moves",
    "matmuls",
    "pieces",
    "lookups",
    "attention",
    "caches",
    "weights",
    "shapes",
    "streams",
    "blocks",
    "partitioner",
)
SMALL = {"V": 320, "T": 64, "D": 128, "F": 256, "G": 768}
"""Of letters whose size no pattern knows."""


def inputs(lesson: Lesson) -> dict[str, np.ndarray[Any, Any]]:
    """Random numbers, small enough that no sum overflows an exp."""
    rng = np.random.default_rng(0)
    arrays = {}
    for name, dims in lesson.takes.items():
        shape = tuple(SMALL.get(dim) or (int(dim) if dim.isdigit() else lesson.sizes[dim]) for dim in dims.split())
        drawn, dtype = {
            "s32": (rng.integers(0, 300, shape), "int32"),
            "s8": (rng.integers(-100, 100, shape), "int8"),
        }.get(lesson.dtype(name), (rng.standard_normal(shape) * 0.05, "float32"))
        arrays[name] = np.asarray(drawn, dtype)
    return arrays


def results_of(pattern: Any, given: Sequence[Any]) -> tuple[Any, ...]:
    """What a pattern gives, one or several."""
    results = pattern.function(*given)
    return results if isinstance(results, tuple) else (results,)


def joined(results: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Several results as one row of numbers."""
    arrays = [np.asarray(result) for result in results]
    return arrays[0] if len(arrays) == 1 else np.concatenate([array.ravel() for array in arrays])


def by_jax(lesson: Lesson) -> np.ndarray[Any, Any]:
    import jax
    from jax.sharding import AxisType, NamedSharding

    from jax_impl.patterns.pattern import PATTERNS

    pattern = PATTERNS[lesson.pattern]
    mesh = jax.make_mesh(
        tuple(lesson.mesh.values()), tuple(lesson.mesh), axis_types=(AxisType.Auto,) * len(lesson.mesh)
    )
    given = [jax.device_put(x, NamedSharding(mesh, pattern.takes[name])) for name, x in inputs(lesson).items()]
    with jax.set_mesh(mesh):
        given_by = tuple(NamedSharding(mesh, spec) for spec in pattern.gives)
        return joined(jax.jit(lambda *arrays: results_of(pattern, arrays), out_shardings=given_by)(*given))


def by_torchxla(lesson: Lesson) -> np.ndarray[Any, Any]:
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as xs

    from torchxla_impl.patterns.pattern import PATTERNS, pin

    pattern = PATTERNS[lesson.pattern]
    mesh = xs.Mesh(np.arange(lesson.num_devices), tuple(lesson.mesh.values()), tuple(lesson.mesh))
    xs.set_global_mesh(mesh)
    given = []
    for name, x in inputs(lesson).items():
        data = torch.from_numpy(x).to(torch_xla.device())
        xs.mark_sharding(data, mesh, pattern.takes[name])
        given.append(data * 1)  # a tensor with data has one mark for good; what is computed can be pinned anew
    return joined(
        [
            pin(result, *dims).cpu().numpy()
            for result, dims in zip(results_of(pattern, given), pattern.gives, strict=True)
        ]
    )


def main(arm: str, out: str, devices: str) -> None:
    if arm == "torchxla_impl":
        from torchxla_impl.process.start import start

        start(num_devices=int(devices))
    for name in FILES:
        import_module(f"{arm}.patterns.{name}")
    run = {"jax_impl": by_jax, "torchxla_impl": by_torchxla}[arm]
    lessons = [lesson for lesson in LESSONS if arm == "jax_impl" or not lesson.absent]
    lessons = [lesson for lesson in lessons if lesson.num_devices == int(devices)]
    np.savez(out, **{lesson.name: run(lesson) for lesson in lessons})


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(0)
