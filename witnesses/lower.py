"""Trace and lower a third-party program: `python -m witnesses.lower CASE.json OUTDIR NAME`.

The protocol of a twin's worker (see `meshes.twins.worker`): OUTDIR/program.mlirbc and OUTDIR/about.json, from shapes
alone; one JSON line on stdout as each stage begins; exit 0, 1 or 2.
"""

import os
import sys
from pathlib import Path

from meshes.case import Case
from meshes.process.last_word import claim_stderr
from meshes.twins.worker import Stages, serve, write_about
from witnesses.catalog import witness
from witnesses.witness import check, resolve

DOORS = {"jax": "witnesses.jax_door", "torchax": "witnesses.jax_door", "torchxla": "witnesses.torchxla_door"}
"""The module that traces what comes in by each door."""


def lower(case: Case, out: Path, name: str) -> None:
    """Write the program of this case's only phase, and its about.json."""
    case, row, stages = case.at(phases=(case.phase,)), witness(name), Stages()
    check(row, case)
    stages.begin("import")
    program, about = resolve(f"{DOORS[row.door]}:lower")(row, case, stages=stages)
    stages.begin("write")
    (out / "program.mlirbc").write_bytes(program)
    write_about(out, about | {"seconds": stages.seconds()})


def main(argv: list[str]) -> int:
    return serve(lower, argv, usage="python -m witnesses.lower CASE.json OUTDIR NAME", framework=witness_title(argv))


def witness_title(argv: list[str]) -> str:
    """What a message about a missing package names."""
    return argv[2] if len(argv) > 2 else "the reference model"


if __name__ == "__main__":
    claim_stderr()
    status = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(status)  # taking torch_xla down again would cost more than a second
