"""Compile one arm's StableHLO for a TPU that isn't there: `python -m compare.program.aot REQUEST.json OUTDIR`.

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
from tempfile import TemporaryDirectory
from typing import Any

from compare.program.aot_error import RefusedError
from compare.program.aot_worker import Stages, read_request, serve, write

FIELDS = frozenset({"program", "topology", "num_slices", "places", "compile_options", "strip", "passes"})
FLAG_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
"""Of the environment, what changes the compiled program beside the options."""


def compile_request(request: dict[str, Any], out: Path) -> None:
    """Compile, and write what was found."""
    stages = Stages()
    stages.begin("import")
    from compare.program import aot_compiler, aot_found, aot_names, aot_passes, passes

    aot_compiler.start()
    there = aot_compiler.devices(request["topology"], num_slices=request["num_slices"])
    ordered = aot_compiler.order(there, request["places"])
    made = aot_compiler.options(request["compile_options"], ordered)
    module = aot_compiler.module(Path(request["program"]).read_bytes())
    stages.begin("compile")
    with TemporaryDirectory(dir=out) as dump:
        if asks := aot_passes.wanted(request):
            made.env_option_overrides += aot_passes.flags(Path(dump), all_of_them=request["passes"])
        executable = aot_compiler.compiled(module, ordered=ordered, made=made)
        before = aot_names.before(Path(dump)) if asks and request["num_slices"] > 1 else ""
        packed, why = b"", "not asked for"
        if request["passes"]:
            stages.begin("passes")
            packed, why = aot_passes.record(Path(dump), strip=lambda text: aot_found.stripped(text, request["strip"]))
    (hlo,) = executable.hlo_modules()
    stages.begin("write")
    text, before = (aot_found.stripped(one, request["strip"]) for one in (hlo.to_string(), before))
    names = aot_names.restored(text, before)
    # Neither a time nor a file name in the header: the same program gives the same bytes.
    (out / "optimized.hlo.gz").write_bytes(gzip.compress(names.text.encode(), compresslevel=6, mtime=0))
    if packed:
        (out / passes.FILE).write_bytes(packed)
    found = {
        "versions": {package: version(package) for package in ("jaxlib", "libtpu")},
        "topology": request["topology"],
        "num_slices": request["num_slices"],
        "device_kind": ordered[0].device_kind,
        "num_devices": len(ordered),
        "device_ids": [device.id for device in ordered],
        "mesh_chips": aot_compiler.places(ordered, aot_found.device_assignment(hlo)),
        "compile_options": request["compile_options"],
        "flags": {name: os.environ[name] for name in FLAG_VARIABLES if name in os.environ},
        "passes": {"recorded": bool(packed), "why_not": why},
        "op_names": {"lost": names.lost, "restored": names.restored},
        "memory": aot_found.memory(executable),
        "cost": aot_found.cost(executable),
        "seconds": stages.seconds(),
    }
    write(out / "compiled.json", found)


def work(request: Path, out: Path) -> None:
    """What the process is for."""
    asked = read_request(request, fields=FIELDS)
    if not Path(asked["program"]).is_file():
        raise RefusedError(f"there is no program {asked['program']}")
    compile_request(asked, out)


if __name__ == "__main__":
    sys.exit(serve(work, sys.argv[1:], module="compare.program.aot", needs="the TPU compiler"))
