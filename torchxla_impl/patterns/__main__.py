"""Lower many patterns in one process: `python -m torchxla_impl.patterns REQUEST.json OUTDIR`.

REQUEST holds `programs`: each with `pattern`, `partitioner` (`gspmd`), `axes`, and `arrays` (name -> shape and dtype);
all meshes have the same number of devices.  Number n gets OUTDIR/n/program.mlirbc and about.json, or failed.txt with
one line.  One JSON line on stdout for each.  Exit 0; 2: the request can't be met, and the last line on stderr says why.
"""

import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from math import prod
from pathlib import Path
from typing import Any

from torchxla_impl.start import start

CHAPTERS = ("moves", "matmuls", "pieces", "attention", "shapes", "blocks")
"""The files that hold patterns."""


def lower(asked: Mapping[str, Any], out: Path) -> None:
    """Write one program, and what is known about it."""
    import numpy as np
    import torch
    import torch_xla
    import torch_xla.distributed.spmd as xs
    from torch_xla.core import xla_builder

    from torchxla_impl import about, scan, stablehlo
    from torchxla_impl.layout import DTYPES
    from torchxla_impl.patterns.pattern import PATTERNS, pin

    pattern, axes = PATTERNS[asked["pattern"]], asked["axes"]
    mesh = xs.Mesh(np.arange(prod(axes.values())), tuple(axes.values()), tuple(axes))
    xs.set_global_mesh(mesh)
    dtypes = DTYPES | {"s32": torch.int32}
    given = {
        name: xla_builder.create_placeholder_tensor(tuple(each["shape"]), dtypes[each["dtype"]])
        for name, each in asked["arrays"].items()
    }
    # The library's own mark moves data, and there is none; that of something which is computed does not.
    marked = [torch.ops.aten.alias(tensor) for tensor in given.values()]
    for tensor, name in zip(marked, given, strict=True):
        torch_xla._XLAC._xla_annotate_custom_sharding(tensor, mesh.get_op_sharding(pattern.takes[name]))
    with scan.remembered() as bodies:
        made = pattern.function(*marked)
    made = made if isinstance(made, tuple) else (made,)
    results = [pin(each, *spec) for each, spec in zip(made, pattern.gives, strict=True)]
    graph = about.lowered(results)
    order = {graph.tensor_parameter_id(tensor): name for name, tensor in given.items()}
    names = [order[number] for number in sorted(order)]
    found = {
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
    out.mkdir(parents=True, exist_ok=True)
    (out / "program.mlirbc").write_bytes(program)
    (out / "about.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _sharding(mesh: Any, spec: tuple[str | None, ...], *, torch_xla: Any, xla_builder: Any) -> str:
    """As XLA writes it, in PyTorch/XLA's own translation."""
    import torch

    probe = torch.ops.aten.alias(xla_builder.create_placeholder_tensor((1,) * len(spec), torch.float32))
    torch_xla._XLAC._xla_annotate_custom_sharding(probe, mesh.get_op_sharding(spec))
    return str(torch_xla._XLAC._get_xla_sharding_spec(probe))


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m torchxla_impl.patterns REQUEST.json OUTDIR", file=sys.stderr)
        return 2
    try:
        programs = json.loads(Path(argv[0]).read_bytes())["programs"]
        devices = max(prod(each["axes"].values()) for each in programs)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"cannot read the request {argv[0]}: {error!r}", file=sys.stderr)
        return 2
    try:
        start(num_devices=devices)
        for chapter in CHAPTERS:
            import_module(f"torchxla_impl.patterns.{chapter}")
    except ImportError as error:
        print(f"PyTorch/XLA can't be imported: {error}", file=sys.stderr)
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
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(status)
