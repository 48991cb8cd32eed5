"""`python -m benchmarks.small_programs OUTDIR < REQUESTS`: small programs, compiled for TPUs that aren't there.

Every line of REQUESTS is one measurement of `published.toml` as JSON; all are for one slice, since a process can hold
one.  OUTDIR/<id>.hlo is its compiled text, OUTDIR/<id>.json the groups of its collective and each device's place.
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from compare.timing.model.links import Torus
from compare.timing.model.rings import ring
from meshes.topology import Place

LANES = 1024
"""Elements of a row of the buffers."""
_DTYPES = {"bf16": jnp.bfloat16, "f32": jnp.float32, "s8": jnp.int8}


def main() -> None:
    out = Path(sys.argv[1])
    for line in sys.stdin:
        entry = json.loads(line)
        text, groups, places = {"matmul": _matmul, "collective": _collective, "step": _gather_matmul}[entry["what"]](
            entry
        )
        (out / f"{entry['id']}.hlo").write_text(text)
        (out / f"{entry['id']}.json").write_text(json.dumps({"groups": groups, "places": places}))


def _devices(entry: dict[str, Any]) -> list[Any]:
    name = f"{entry['generation']}:{entry['slice']}"
    return list(topologies.get_topology_desc(platform="tpu", topology_name=name).devices)


def _compiled(function: Callable[..., Any], *arguments: Any) -> str:
    return str(jax.jit(function).lower(*arguments).compile().as_text())


def _matmul(entry: dict[str, Any]) -> tuple[str, list[list[int]], list[list[int]]]:
    place = SingleDeviceSharding(_devices(entry)[0])
    dtype = _DTYPES[entry["dtype"]]
    left, right = ((entry["m"], entry["k"]), (entry["k"], entry["n"]))
    result = jnp.int32 if entry["dtype"] == "s8" else dtype

    def product(a: Any, b: Any) -> Any:
        return jnp.matmul(a, b, preferred_element_type=result)

    given = [jax.ShapeDtypeStruct(shape, dtype, sharding=place) for shape in (left, right)]
    return _compiled(product, *given), [], []


def _collective(entry: dict[str, Any]) -> tuple[str, list[list[int]], list[list[int]]]:
    """A group is a block of the slice; of chips with two devices the first of each, or both."""
    mesh, groups, places = _mesh(entry)
    size = len(groups[0])
    dtype = _DTYPES[entry.get("dtype", "bf16")]
    payload = entry["bytes"] // jnp.dtype(dtype).itemsize
    operand = payload // size if entry["bytes_of"] == "result" else payload
    rows = max(operand // LANES // size, 1) * size
    steps = _ring(places[:size])
    kinds: dict[str, Callable[[Any], Any]] = {
        "all-reduce": lambda x: jax.lax.psum(x, "group"),
        "all-gather": lambda x: jax.lax.all_gather(x, "group", tiled=True),
        "all-to-all": lambda x: jax.lax.all_to_all(x, "group", 0, 0, tiled=True),
        "collective-permute": lambda x: jax.lax.ppermute(x, "group", steps),
    }
    spread = PartitionSpec(("others", "group"))
    body = jax.shard_map(kinds[entry["kind"]], mesh=mesh, in_specs=spread, out_specs=spread, check_vma=False)
    shape = (rows * len(places), LANES)
    return _compiled(body, jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, spread))), groups, places


def _mesh(entry: dict[str, Any]) -> tuple[Mesh, list[list[int]], list[list[int]]]:
    """The devices by group; the groups as logical ids, and where each id sits."""
    devices = _devices(entry)
    block = (*entry["block"], 1, 1)[:3]
    by_group: dict[tuple[int, ...], list[Any]] = {}
    cores = len({device.core_on_chip for device in devices})
    apart = math.prod(block) * cores != entry["group"]
    for device in sorted(devices, key=lambda one: (tuple(one.coords), one.core_on_chip)):
        at = tuple(place // side for place, side in zip(device.coords, block, strict=True))
        by_group.setdefault((*at, device.core_on_chip if apart else 0), []).append(device)
    rows = [by_group[key] for key in sorted(by_group)]
    ordered = [device for row in rows for device in row]
    places = [[*device.coords, device.core_on_chip] for device in ordered]
    size = len(rows[0])
    groups = [[at * size + one for one in range(size)] for at in range(len(rows))]
    return Mesh(np.array(ordered).reshape(len(rows), size), ("others", "group")), groups, places


def _ring(places: list[list[int]]) -> list[tuple[int, int]]:
    """The pairs of a permute, of which no source says more: each to the next on a way round over neighbours."""
    sides = tuple(1 + max(place[side] for place in places) for side in range(3))
    torus = Torus(tuple(Place(0, *place) for place in places), sides, (False,) * 3)
    order = ring(range(len(places)), torus)
    return [(one, order[(at + 1) % len(order)]) for at, one in enumerate(order)]


def _gather_matmul(entry: dict[str, Any]) -> tuple[str, list[list[int]], list[list[int]]]:
    """The weight of a product gathered before it: rows of the left operand stay split."""
    mesh, groups, places = _mesh({**entry, "block": entry["block"], "group": len(_devices(entry))})
    rows, inner, columns = 8192, 8192, 1024

    def product(left: Any, right: Any) -> Any:
        return left @ jax.lax.all_gather(right, "group", tiled=True)

    spread = PartitionSpec("group", None)
    body = jax.shard_map(product, mesh=mesh, in_specs=(spread, spread), out_specs=spread, check_vma=False)
    given = [
        jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spread))
        for shape in ((rows, inner), (inner, columns))
    ]
    return _compiled(body, *given), groups, places


if __name__ == "__main__":
    main()
