"""Trace and lower one program for TPU, from shapes alone: `python -m jax_impl.lower CASE.json OUTDIR`.

Needs neither a TPU nor libtpu: the mesh is abstract, and device ids are places on it.  Writes OUTDIR/program.mlirbc
and OUTDIR/about.json.  One JSON line on stdout as each stage begins.  Exit 0; 1: it failed; 2: the request can't be
met, and the last line on stderr says why.
"""

import json
import re
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from meshes.case import Case
from meshes.errors import MeshError

PACKAGES = ("jax", "jaxlib", "flax")


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
    import jax

    from jax_impl import about
    from jax_impl.layout import Layout
    from jax_impl.step import OUTPUT_DIMS, Step

    jax.config.update("jax_use_shardy_partitioner", case.partitioner == "native")
    jax.config.update("jax_hlo_source_file_canonicalization_regex", machine_folders(jax.__file__))
    stages.begin("trace")
    step = Step.of(Layout.abstract(case))
    traced = step.layout.jit(step.run, output_dims=OUTPUT_DIMS).trace(*step.arguments)
    stages.begin("lower")
    lowered = traced.lower(lowering_platforms=("tpu",))
    stages.begin("write")
    (out / "program.mlirbc").write_bytes(about.bytecode(lowered))
    found: dict[str, Any] = {
        "arm": "jax",
        "phase": case.phase,
        "versions": {package: version(package) for package in PACKAGES},
        "partitioner": "shardy" if jax.config.jax_use_shardy_partitioner else "gspmd",
        "loop": case.loop,
        "attention": case.attention,
        "style": case.style,
        "compile_options": about.compile_options(lowered, num_devices=case.mesh.num_devices),
        "parameters": about.parameters(step),
        "outputs": about.outputs(traced),
        "seconds": stages.seconds(),
    }
    rows = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    (out / "about.json").write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def machine_folders(package: str) -> str:
    """What to take off source paths: the same program has the same bytes on every machine."""
    folders = (Path(__file__).parents[1], Path(package).parents[1])
    return "|".join(f"^{re.escape(str(folder))}/" for folder in folders)


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m jax_impl.lower CASE.json OUTDIR", file=sys.stderr)
        return 2
    try:
        case = Case.from_json(Path(argv[0]).read_text(encoding="utf-8"))
        case = case.at(phases=(case.phase,))
    except MeshError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, UnicodeDecodeError) as error:
        print(f"cannot read the case {argv[0]}: {error}", file=sys.stderr)
        return 2
    try:
        lower(case, Path(argv[1]))
    except ImportError as error:
        print(f"JAX can't be imported: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"cannot write to {argv[1]}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
