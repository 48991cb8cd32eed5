"""Load checkpoints in small pieces, on several meshes: `python pieces.py JSON`, dtype -> checkpoint, and MESH….

Prints JSON: of each dtype and mesh, the names of the weights that were not brought as they should be, and how many
pieces there were.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from meshes.case import Case
from meshes.checkpoint import Checkpoint, read_model
from meshes.weights import weights
from torchxla_impl.process.start import start


def load_in_pieces(folder: Path, mesh: str, dtype: str) -> dict[str, Any]:
    case = Case.read(mesh, shapes=read_model(folder), phases=("prefill",), dtype=dtype, batch=32, seq=16)
    start(num_devices=case.mesh.num_devices)
    import torch
    import torch_xla

    from torchxla_impl.decoder.step import Step
    from torchxla_impl.process import loading
    from torchxla_impl.sharding.create import layout_on_devices
    from torchxla_impl.sharding.lowering import format_sharding

    loading.PIECE_BYTES = 2048
    step, read, reads = Step.of(layout_on_devices(case)), Checkpoint.open(folder).read, []

    def counted(*at: Any) -> np.ndarray:
        reads.append(at[0].name)
        return read(*at)

    wrong, specs = [], {spec.name: spec for spec in weights(case)}
    for name, tensor in loading.read_weights(step, counted).items():
        spec = specs[name]
        values = read(spec, tuple(slice(0, size) for size in spec.shape), case)
        right = torch.from_numpy(values).view(torch.bfloat16) if dtype == "bf16" else torch.from_numpy(values)
        split = torch_xla._XLAC._get_xla_sharding_spec(tensor) == format_sharding(step.layout, spec.dims)
        if not split or not torch.equal(tensor.cpu(), right):
            wrong.append(name)
    return {"wrong": wrong, "weights": len(set(reads)), "pieces": len(reads)}


if __name__ == "__main__":
    given, *meshes = sys.argv[1:]
    folders = {dtype: Path(folder) for dtype, folder in json.loads(given).items()}
    loaded = {
        dtype: {mesh: load_in_pieces(folder, mesh, dtype) for mesh in meshes} for dtype, folder in folders.items()
    }
    print(json.dumps(loaded), flush=True)
    # All is said; taking torch_xla down again would cost more than a second.
    os._exit(0)
