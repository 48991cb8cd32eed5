"""Trace and lower one program, from shapes alone: `python -m torchxla_impl.lower CASE.json OUTDIR`.

Needs neither a TPU nor libtpu: the mesh is of virtual CPU devices, and device ids are places on it.  Writes
OUTDIR/program.mlirbc and OUTDIR/about.json.  One JSON line on stdout as each stage begins.  Exit 0; 1: it failed;
2: the request can't be met, and the last line on stderr says why.
"""

import os
import sys
from pathlib import Path

from meshes.case import Case
from meshes.process.last_word import claim_stderr
from meshes.twins.worker import Stages, serve, write_about
from torchxla_impl.process.start import start


def lower(case: Case, out: Path) -> None:
    """Write the program of this case's only phase, and its about.json."""
    case, stages = case.at(phases=(case.phase,)), Stages()
    stages.begin("import")
    start(num_devices=case.mesh.num_devices)
    from torch.utils import _pytree as tree

    from torchxla_impl.decoder import scan
    from torchxla_impl.decoder.cache import make_caches
    from torchxla_impl.decoder.step import Step
    from torchxla_impl.process import about, stablehlo
    from torchxla_impl.sharding.create import layout_on_devices
    from torchxla_impl.sharding.lowering import format_sharding, placeholder

    stages.begin("trace")
    step = Step.of(layout_on_devices(case))
    tensors = [placeholder(each.shape, each.dtype) for each in step.arguments]
    given = dict(zip((each.name for each in step.arguments), tensors, strict=True))
    weights = {each.name: given[each.name] for each in step.arguments if each.role == "weight"}
    cache = make_caches(case, given.__getitem__)
    with scan.record_bodies() as bodies:
        ids, cache = step.run(weights, cache, *(given[each.name] for each in step.arguments if each.role == "input"))
    stages.begin("lower")
    outputs = [ids, *tree.tree_leaves(cache)]
    graph = about.lower_graph(outputs)
    description = about.describe_program(step, graph, tensors, outputs=outputs)
    program = stablehlo.bytecode(
        graph,
        bodies=bodies,
        names=[each["name"] for each in description["parameters"]],
        shardings=[format_sharding(step.layout, each["dims"]) for each in description["parameters"]],
        overwritten={each["name"]: each["index"] for each in description["outputs"] if each["name"] in given},
    )
    stages.begin("write")
    (out / "program.mlirbc").write_bytes(program)
    write_about(out, description | {"seconds": stages.seconds()})


def main(argv: list[str]) -> int:
    return serve(lower, argv, usage="python -m torchxla_impl.lower CASE.json OUTDIR", framework="PyTorch/XLA")


if __name__ == "__main__":
    claim_stderr()
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(status)
