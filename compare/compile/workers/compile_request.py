"""Compile one arm's StableHLO for a TPU that isn't there.

`python -m compare.compile.workers.compile_request REQUEST.json OUTDIR`.

Imports jaxlib and libtpu, no framework.  REQUEST holds `program` (path of the bytecode), `topology` (of one slice,
`v5e:2x4`), `num_slices`, `places` (slice, x, y, z, core of each logical device), `compile_options` (as in the arm's
about.json), `strip` (folders to take off source paths) and `passes` (whether to record the program between libtpu's
passes).  Writes OUTDIR/optimized.hlo.gz, OUTDIR/compiled.json and, where passes were recorded, OUTDIR/passes.tar.xz.
One JSON line on stdout as each stage begins.  Exit 0; 1: libtpu gave up; 2: the request can't be met; the last
line on stderr says why.  libtpu may also abort the process: the parent reports that death.
"""

import gzip
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from compare.compile.errors import RefusedError
from compare.compile.requests import CompileRequest
from compare.compile.workers.worker import Stages, read_request, serve, write
from meshes.process.last_word import claim_stderr

if TYPE_CHECKING:
    from jaxlib._jax import Executable

FIELDS = frozenset({"program", "topology", "num_slices", "places", "compile_options", "strip", "passes"})
FLAG_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
"""Of the environment, what changes the compiled program beside the options."""


def compile_request(request: CompileRequest, out: Path) -> "Executable":
    """Compile, and write the program and compiled.json; returns the executable."""
    stages = Stages()
    stages.begin("import")
    from compare.compile import compile_and_name, compiler, executable_info
    from compare.passes import archive

    compiler.start()
    devices = compiler.list_devices(request["topology"], num_slices=request["num_slices"])
    ordered = compiler.order_devices(devices, request["places"])
    job = compile_and_name.CompileJob(request=request, ordered=ordered, out=out, begin=stages.begin)
    program = Path(request["program"]).read_bytes()
    stages.begin("compile")
    compiled = job.compile(compiler.parse_stablehlo(program), passes=request["passes"])
    names = job.restore_names(compiled, program=compiler.parse_stablehlo(program))
    (hlo,) = compiled.executable.hlo_modules()
    stages.begin("write")
    # Neither a time nor a file name in the header: the same program gives the same bytes.
    (out / "optimized.hlo.gz").write_bytes(gzip.compress(names.text.encode(), compresslevel=6, mtime=0))
    if compiled.packed:
        (out / archive.FILE).write_bytes(compiled.packed)
    about = {
        "versions": {package: version(package) for package in ("jaxlib", "libtpu")},
        "topology": request["topology"],
        "num_slices": request["num_slices"],
        "device_kind": ordered[0].device_kind,
        "num_devices": len(ordered),
        "device_ids": [device.id for device in ordered],
        "mesh_chips": compiler.positions_of_ids(ordered, executable_info.read_device_ids(hlo)),
        "compile_options": request["compile_options"],
        "flags": {name: os.environ[name] for name in FLAG_VARIABLES if name in os.environ},
        "passes": {"recorded": bool(compiled.packed), "why_not": compiled.why},
        "op_names": {"lost": names.lost, "restored": names.restored},
        "memory": executable_info.read_memory(compiled.executable),
        "cost": executable_info.estimate_cost(compiled.executable),
        "seconds": stages.seconds(),
    }
    write(out / "compiled.json", about)
    return compiled.executable


def handle_request(request: Path, out: Path) -> None:
    """Read the request, and compile it."""
    fields: CompileRequest = read_request(request, fields=FIELDS)
    if not Path(fields["program"]).is_file():
        raise RefusedError(f"there is no program {fields['program']}")
    compile_request(fields, out)


if __name__ == "__main__":
    claim_stderr()
    sys.exit(
        serve(handle_request, sys.argv[1:], module="compare.compile.workers.compile_request", needs="the TPU compiler")
    )
