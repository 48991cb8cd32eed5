"""Trace and lower one program, from shapes alone: `python -m torchxla_impl.lower CASE.json OUTDIR`.

Needs neither a TPU nor libtpu: the mesh is of virtual CPU devices, and device ids are places on it.  Writes
OUTDIR/program.mlirbc and OUTDIR/about.json.  One JSON line on stdout as each stage begins.  Exit 0; 1: it failed;
2: the request can't be met, and the last line on stderr says why.
"""

import json
import os
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from meshes.case import Case
from meshes.errors import MeshError

PACKAGES = ("torch", "torch_xla", "jaxlib")
"""jaxlib turns the HLO into StableHLO."""


@dataclass(slots=True)
class Stages:
    """Seconds of each stage, told on stdout as it begins."""

    _start: float = field(default_factory=monotonic)
    _begun: dict[str, float] = field(default_factory=dict)

    def begin(self, stage: str) -> None:
        self._begun[stage] = monotonic() - self._start
        print(json.dumps({"stage": stage, "seconds": round(self._begun[stage], 3)}), flush=True)

    def seconds(self) -> dict[str, float]:
        ends = [*list(self._begun.values())[1:], monotonic() - self._start]
        return {name: round(end - begun, 3) for (name, begun), end in zip(self._begun.items(), ends, strict=True)}


def lower(case: Case, out: Path) -> None:
    """Write the program of this case's only phase, and what is known about it."""
    stages = Stages()
    stages.begin("import")
    from torchxla_impl.start import start

    start(num_devices=case.mesh.num_devices)
    from torchxla_impl import about, scan, stablehlo
    from torchxla_impl.cache import Cache
    from torchxla_impl.layout import Layout
    from torchxla_impl.step import Step

    stages.begin("trace")
    step = Step.of(Layout.on_devices(case))
    tensors = [step.layout.placeholder(each.shape, each.dtype) for each in step.arguments]
    given = dict(zip((each.name for each in step.arguments), tensors, strict=True))
    weights = {each.name: given[each.name] for each in step.arguments if each.role == "weight"}
    cache = Cache(given["cache.k"], given["cache.v"])
    with scan.remembered() as bodies:
        ids, cache = step.run(weights, cache, *(given[each.name] for each in step.arguments if each.role == "input"))
    stages.begin("lower")
    graph = stablehlo.lowering([ids, *cache])
    parameters = about.parameters(step, [graph.tensor_parameter_id(each) for each in tensors])
    outputs = about.outputs(step, [ids, *cache])
    program = stablehlo.bytecode(
        graph,
        bodies=bodies,
        names=[each["name"] for each in parameters],
        shardings=[step.layout.sharding(each["dims"]) for each in parameters],
        overwritten={each["name"]: each["index"] for each in outputs if each["name"] in given},
    )
    stages.begin("write")
    (out / "program.mlirbc").write_bytes(program)
    found: dict[str, Any] = {
        "arm": "torchxla",
        "phase": case.phase,
        "versions": {package: version(package) for package in PACKAGES},
        "partitioner": "gspmd",
        "loop": case.loop,
        "attention": case.attention,
        "style": case.style,
        "compile_options": about.compile_options(num_devices=case.mesh.num_devices),
        "parameters": parameters,
        "outputs": outputs,
        "seconds": stages.seconds(),
    }
    rows = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    (out / "about.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m torchxla_impl.lower CASE.json OUTDIR", file=sys.stderr)
        return 2
    try:
        case = Case.from_json(Path(argv[0]).read_text(encoding="utf-8"))
        lower(case.at(phases=(case.phase,)), Path(argv[1]))
    except MeshError as error:
        print(error, file=sys.stderr)
        return 2
    except ImportError as error:
        print(f"PyTorch/XLA can't be imported: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"cannot read {argv[0]} or write to {argv[1]}: {error.strerror or error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(status)
