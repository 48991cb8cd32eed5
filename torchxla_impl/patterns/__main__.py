"""Lower many patterns in one process: `python -m torchxla_impl.patterns REQUEST.json OUTDIR` (see batch_requests).

`partitioner` is `gspmd`, and all meshes have the same number of devices.
"""

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

from meshes.process.batch_requests import serve, write
from meshes.process.last_word import claim_stderr
from torchxla_impl.process.start import start


def lower(request: Mapping[str, Any], out: Path) -> None:
    """Write one program, and what is known about it."""
    import numpy as np
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as xs
    from torch_xla.core import xla_builder

    from torchxla_impl.decoder import scan
    from torchxla_impl.patterns.pattern import PATTERNS, pin
    from torchxla_impl.process import about, stablehlo
    from torchxla_impl.sharding.spec import DTYPES

    pattern, axes = PATTERNS[request["pattern"]], request["axes"]
    mesh = xs.Mesh(np.arange(prod(axes.values())), tuple(axes.values()), tuple(axes))
    xs.set_global_mesh(mesh)
    dtypes = DTYPES | {"s32": torch.int32, "s8": torch.int8}
    given = {
        name: xla_builder.create_placeholder_tensor(tuple(each["shape"]), dtypes[each["dtype"]])
        for name, each in request["arrays"].items()
    }
    # The library's own mark moves data, and there is none; that of something which is computed does not.
    marked = [torch.ops.aten.alias(tensor) for tensor in given.values()]
    for tensor, name in zip(marked, given, strict=True):
        torch_xla._XLAC._xla_annotate_custom_sharding(tensor, mesh.get_op_sharding(pattern.takes[name]))
    with scan.record_bodies() as bodies:
        returned = pattern.function(*marked)
    returned = returned if isinstance(returned, tuple) else (returned,)
    results = [pin(each, *spec) for each, spec in zip(returned, pattern.gives, strict=True)]
    graph = about.lower_graph(results)
    order = {graph.tensor_parameter_id(tensor): name for name, tensor in given.items()}
    names = [order[number] for number in sorted(order)]
    description = {
        "versions": {package: version(package) for package in ("torch", "torch_xla")},
        "compile_options": about.compile_options(num_devices=prod(axes.values())),
        "source": pattern.source,
        "takes": [{"shape": list(given[name].shape), "axes": list(pattern.takes[name])} for name in given],
        "gives": [
            {"shape": list(each.shape), "axes": list(spec)} for each, spec in zip(results, pattern.gives, strict=True)
        ],
    }
    program = stablehlo.bytecode(
        graph,
        bodies=bodies,
        names=names,
        shardings=[
            _sharding(mesh, pattern.takes[name], torch_xla=torch_xla, xla_builder=xla_builder) for name in names
        ],
        overwritten={},
    )
    write(out, program=program, about=description)


def _sharding(mesh: Any, spec: tuple[str | None, ...], *, torch_xla: Any, xla_builder: Any) -> str:
    """As XLA writes it, in PyTorch/XLA's own translation."""
    import torch

    probe = torch.ops.aten.alias(xla_builder.create_placeholder_tensor((1,) * len(spec), torch.float32))
    torch_xla._XLAC._xla_annotate_custom_sharding(probe, mesh.get_op_sharding(spec))
    return str(torch_xla._XLAC._get_xla_sharding_spec(probe))


def main(argv: list[str]) -> int:
    def begin(num_devices: int) -> None:
        start(num_devices=num_devices)

    return serve(lower, argv, package="torchxla_impl.patterns", framework="PyTorch/XLA", begin=begin)


if __name__ == "__main__":
    claim_stderr()
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(status)
