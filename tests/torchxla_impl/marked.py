"""The programs of tensors with data: `python marked.py FOLDER…`, each with a case.json.

Weights, cache and inputs are on eight CPU devices, each placed with `mark_sharding`; the step is traced on them, not
run, and asked for through the runtime's own door.  Writes FOLDER/program.mlirbc.
"""

import os
import sys
from pathlib import Path

from meshes.case import Case
from torchxla_impl.process.start import start


def main(case: Case, out: Path) -> None:
    start(num_devices=case.mesh.num_devices)
    import torch
    import torch_xla
    from jaxlib import _jax

    from torchxla_impl.decoder.cache import make_caches
    from torchxla_impl.decoder.step import Step
    from torchxla_impl.sharding.create import layout_on_devices
    from torchxla_impl.sharding.lowering import shard

    step = Step.of(layout_on_devices(case))
    given = {
        each.name: shard(step.layout, torch.zeros(each.shape, dtype=each.dtype), each.dims) for each in step.arguments
    }
    weights = {each.name: given[each.name] for each in step.arguments if each.role == "weight"}
    inputs = (given[each.name] for each in step.arguments if each.role == "input")
    ids, cache = step.run(weights, make_caches(case, given.__getitem__), *inputs)
    hlo = torch_xla._XLAC._get_xla_tensors_hlo_proto([ids, *cache])
    (out / "program.mlirbc").write_bytes(_jax.mlir.hlo_to_stablehlo(hlo))


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        main(Case.from_json((folder / "case.json").read_text()), folder)
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(0)
