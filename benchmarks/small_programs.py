"""`python -m benchmarks.small_programs OUTDIR < REQUESTS`: small programs, compiled for TPUs that aren't there.

Every line of REQUESTS is one measurement of `published.toml` as JSON, with `slice` and `block`; all are for one slice.
OUTDIR/<id>.json holds the compiled text (`hlo`) and where each logical device sits (`places`: slice, x, y, z, core).
"""

import json
import math
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from compare.schedule.links import Torus
from compare.schedule.rings import find_ring
from meshes.devices.topology import Place

LANES = 1024
"""The most elements of a row of the buffers."""
_DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32, "s8": jnp.int8}
_TABLES = re.compile(r"^(?:FileNames|FunctionNames|FileLocations|StackFrames)\n(?:\d+ .*\n)*\n?", re.M)
_METADATA = re.compile(r", metadata=\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """A program, and the places of its devices in the order of their ids."""

    hlo: str
    places: list[list[int]] = field(default_factory=list)


def main() -> None:
    out = Path(sys.argv[1])
    for line in sys.stdin:
        entry = json.loads(line)
        make = {"matmul": _matmul, "hbm": _copy, "collective": _collective, "step": _gather_matmul}[entry["what"]]
        (out / f"{entry['id']}.json").write_text(json.dumps(asdict(make(entry))))


def _devices(entry: dict[str, Any]) -> list[Any]:
    name = f"{entry['generation']}:{entry['slice']}"
    return list(topologies.get_topology_desc(platform="tpu", topology_name=name).devices)


def _compiled(function: Callable[..., Any], *arguments: Any) -> str:
    """The optimized text, without what only names the files that it was made in."""
    text = jax.jit(function).lower(*arguments).compile().as_text()
    return _METADATA.sub("", _TABLES.sub("", text))


def _matmul(entry: dict[str, Any]) -> CompiledProgram:
    place = SingleDeviceSharding(_devices(entry)[0])
    dtype = _DTYPES[entry["dtype"]]
    result = jnp.int32 if entry["dtype"] == "s8" else dtype

    def product(left: Any, right: Any) -> Any:
        return jnp.matmul(left, right, preferred_element_type=result)

    shapes = ((entry["m"], entry["k"]), (entry["k"], entry["n"]))
    return CompiledProgram(
        _compiled(product, *(jax.ShapeDtypeStruct(shape, dtype, sharding=place) for shape in shapes))
    )


def _copy(entry: dict[str, Any]) -> CompiledProgram:
    """`bytes` are those read and those written."""
    place = SingleDeviceSharding(_devices(entry)[0])
    shape = (entry["bytes"] // 2 // 2 // LANES, LANES)
    return CompiledProgram(_compiled(jnp.copy, jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=place)))


def _collective(entry: dict[str, Any]) -> CompiledProgram:
    """A group is a block of the slice; of chips with two devices the first of each, or both."""
    mesh, places = _mesh(entry)
    size = mesh.devices.shape[1]
    dtype = _DTYPES[entry.get("dtype", "bf16")]
    elements = entry["bytes"] // jnp.dtype(dtype).itemsize // (size if entry["bytes_of"] == "result" else 1)
    rows = max(elements // LANES // size, 1) * size
    steps = _ring(places[:size])
    kinds: dict[str, Callable[[Any], Any]] = {
        "all-reduce": lambda x: jax.lax.psum(x, "group"),
        "all-gather": lambda x: jax.lax.all_gather(x, "group", tiled=True),
        "all-to-all": lambda x: jax.lax.all_to_all(x, "group", 0, 0, tiled=True),
        "collective-permute": lambda x: jax.lax.ppermute(x, "group", steps),
    }
    spread = PartitionSpec(("others", "group"))
    body = jax.shard_map(kinds[entry["kind"]], mesh=mesh, in_specs=spread, out_specs=spread, check_vma=False)
    given = jax.ShapeDtypeStruct((rows * len(places), elements // rows), dtype, sharding=NamedSharding(mesh, spread))
    return CompiledProgram(_compiled(body, given), places)


def _mesh(entry: dict[str, Any]) -> tuple[Mesh, list[list[int]]]:
    """The devices by group, and where each sits."""
    devices = _devices(entry)
    block = (*entry["block"], 1, 1)[:3]
    cores = len({device.core_on_chip for device in devices})
    apart = math.prod(block) * cores != entry["group"]
    by_group: dict[tuple[int, ...], list[Any]] = {}
    for device in sorted(devices, key=lambda chip: (tuple(chip.coords), chip.core_on_chip)):
        at = tuple(place // side for place, side in zip(device.coords, block, strict=True))
        by_group.setdefault((*at, device.core_on_chip if apart else 0), []).append(device)
    rows = [by_group[key] for key in sorted(by_group)]
    places = [[0, *device.coords, device.core_on_chip] for row in rows for device in row]
    return Mesh(np.array(rows), ("others", "group")), places


def _ring(places: list[list[int]]) -> list[tuple[int, int]]:
    """The pairs of a permute, of which no source says more: each to the next on a way round over neighbours."""
    sides = tuple(1 + max(place[1 + side] for place in places) for side in range(3))
    torus = Torus(tuple(Place(*place) for place in places), sides, (False,) * 3)
    order = find_ring(range(len(places)), torus)
    return [(chip, order[(at + 1) % len(order)]) for at, chip in enumerate(order)]


def _gather_matmul(entry: dict[str, Any]) -> CompiledProgram:
    """M, K, N = 8192, 8192, 1024: a product whose right side is gathered before it; rows of the left stay split."""
    mesh, places = _mesh({**entry, "group": len(_devices(entry))})

    def product(left: Any, right: Any) -> Any:
        return left @ jax.lax.all_gather(right, "group", tiled=True)

    spread = PartitionSpec("group", None)
    body = jax.shard_map(product, mesh=mesh, in_specs=(spread, spread), out_specs=spread, check_vma=False)
    shapes = ((8192, 8192), (8192, 1024))
    given = (jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spread)) for shape in shapes)
    return CompiledProgram(_compiled(body, *given), places)


if __name__ == "__main__":
    main()
