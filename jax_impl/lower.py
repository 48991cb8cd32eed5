"""Trace and lower one program for TPU, from shapes alone: `python -m jax_impl.lower CASE.json OUTDIR`.

Needs neither a TPU nor libtpu: the mesh is abstract, and device ids are places on it.  Writes OUTDIR/program.mlirbc
and OUTDIR/about.json.  One JSON line on stdout as each stage begins.  Exit 0; 1: it failed; 2: the request can't be
met, and the last line on stderr says why.
"""

import sys
from pathlib import Path

from jax_impl.process.start import configure
from meshes.case import Case
from meshes.process.last_word import claim_stderr
from meshes.twins.worker import Stages, serve, write_about


def lower(case: Case, out: Path) -> None:
    """Write the program of this case's only phase, and its about.json."""
    case, stages = case.at(phases=(case.phase,)), Stages()
    stages.begin("import")
    from jax_impl.decoder.step import Step
    from jax_impl.process import about
    from jax_impl.sharding.create import abstract_layout
    from jax_impl.sharding.lowering import jit_step

    configure(case)
    stages.begin("trace")
    step = Step.of(abstract_layout(case))
    traced = jit_step(step.layout, step.run, output_dims=step.output_dims).trace(*step.arguments)
    stages.begin("lower")
    lowered = traced.lower(lowering_platforms=("tpu",))
    stages.begin("write")
    (out / "program.mlirbc").write_bytes(about.bytecode(lowered))
    write_about(out, about.describe_program(step, traced, lowered) | {"seconds": stages.seconds()})


def main(argv: list[str]) -> int:
    return serve(lower, argv, usage="python -m jax_impl.lower CASE.json OUTDIR", framework="JAX")


if __name__ == "__main__":
    claim_stderr()
    sys.exit(main(sys.argv[1:]))
