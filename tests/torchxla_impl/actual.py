"""Where the bytes of real tensors are: `python actual.py CASE.json…` places them, runs the step, prints JSON.

One line a case.  For each weight and cache that goes in, and each cache that comes out: whether every device holds
exactly the slice that its place on the mesh and the tensor's dims name (`right`), and the shape of a shard.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.twins.layout import partition_axes
from meshes.weights import weights
from torchxla_impl.process.start import start

Axes = tuple[str | tuple[str, ...] | None, ...]


def slices(case: Case, shape: tuple[int, ...], axes: Axes, device: int) -> tuple[slice, ...]:
    """By hand: the part number is the device's coordinate on the axis that splits the dim, or on several, row-major."""
    where, pieces = case.mesh.coordinates[device], []
    for split, size in zip(axes, shape, strict=True):
        part, parts = 0, 1
        for axis in (split,) if isinstance(split, str) else split or ():
            part, parts = part * case.mesh.axes[axis] + where[axis], parts * case.mesh.axes[axis]
        pieces.append(slice(part * size // parts, (part + 1) * size // parts))
    return tuple(pieces)


def read_shards(case: Case, array: Any, tensor: Any, axes: Axes) -> dict[str, Any]:
    import torch_xla

    (shards,) = torch_xla._XLAC._get_local_shards([tensor])
    held = {int(device.rpartition(":")[2]): shard.numpy() for shard, device in shards}
    right = [np.array_equal(held[at], array[slices(case, array.shape, axes, at)]) for at in range(len(held))]
    return {"devices": len(held), "right": all(right), "shard": list(held[0].shape)}


def main(case: Case) -> dict[str, Any]:
    start(num_devices=case.mesh.num_devices)
    import torch
    import torch_xla

    from torchxla_impl.decoder.cache import make_caches
    from torchxla_impl.decoder.step import Step
    from torchxla_impl.sharding.create import layout_on_devices
    from torchxla_impl.sharding.lowering import shard

    step = Step.of(layout_on_devices(case))
    parameters = {name: (list(each.shape), str(each.dtype)) for name, each in step.model.named_parameters()}
    random = np.random.default_rng(0)
    given, results = {}, {}
    for each in step.arguments:
        values = random.integers(0, 100, each.shape).astype(np.int32 if each.dtype == torch.int32 else np.float32)
        given[each.name] = shard(step.layout, torch.from_numpy(values), each.dims)
        if each.role != "input":
            results[each.name] = read_shards(case, values, given[each.name], partition_axes(each.dims, case=case))
    taken = {each.name: given[each.name] for each in step.arguments if each.role == "weight"}
    inputs = (given[each.name] for each in step.arguments if each.role == "input")
    ids, cache = step.run(taken, make_caches(case, given.__getitem__), *inputs)
    torch_xla.sync()
    (dims,) = {each.dims for each in step.arguments if each.role == "cache"}
    for name, tensor in (("cache.k out", cache.k), ("cache.v out", cache.v)):
        results[name] = read_shards(case, tensor.cpu().numpy(), tensor, partition_axes(dims, case=case))
    table = {each.name: [list(each.shape), str(step.layout.dtype)] for each in weights(case)}
    return {"tensors": results, "ids": ids.cpu().tolist(), "module": parameters, "table": table}


if __name__ == "__main__":
    for file in sys.argv[1:]:
        print(json.dumps(main(Case.from_json(Path(file).read_text()))), flush=True)
    # All is said; taking torch_xla down again would cost more than a second.
    os._exit(0)
