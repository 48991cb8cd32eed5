"""Compile one arm's StableHLO for a TPU that isn't there: `python -m compare.program.aot REQUEST.json OUTDIR`.

Imports jaxlib and libtpu, no framework.  REQUEST holds `program` (path of the bytecode), `topology` (of one slice,
`v5e:2x4`), `num_slices`, `places` (slice, x, y, z, core of each logical device), `compile_options` (as in the arm's
about.json) and `strip` (folders to take off source paths).  Writes OUTDIR/optimized.hlo.gz and OUTDIR/compiled.json.
One JSON line on stdout as each stage begins.  Exit 0; 1: libtpu gave up; 2: the request can't be met; the last
line on stderr says why.  libtpu may also abort the process: the parent reports that death.
"""

import gzip
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

from compare.program.aot_error import AotError, RefusedError

FIELDS = frozenset({"program", "topology", "num_slices", "places", "compile_options", "strip"})
FLAG_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
"""Of the environment, what changes the compiled program beside the options."""


class Stages:
    """Seconds of each stage, told on stdout as it begins."""

    def __init__(self) -> None:
        self._start = monotonic()
        self._begun: dict[str, float] = {}

    def begin(self, stage: str) -> None:
        self._begun[stage] = monotonic() - self._start
        print(json.dumps({"stage": stage, "seconds": round(self._begun[stage], 3)}), flush=True)

    def seconds(self) -> dict[str, float]:
        ends = [*list(self._begun.values())[1:], monotonic() - self._start]
        return {name: round(end - begun, 3) for (name, begun), end in zip(self._begun.items(), ends, strict=True)}


def compile_request(request: dict[str, Any], out: Path) -> None:
    """Compile, and write what was found."""
    stages = Stages()
    stages.begin("import")
    from compare.program import aot_compiler, aot_found

    aot_compiler.start()
    there = aot_compiler.devices(request["topology"], num_slices=request["num_slices"])
    ordered = aot_compiler.order(there, request["places"])
    made = aot_compiler.options(request["compile_options"], ordered)
    module = aot_compiler.module(Path(request["program"]).read_bytes())
    stages.begin("compile")
    executable = aot_compiler.compiled(module, ordered=ordered, made=made)
    (hlo,) = executable.hlo_modules()
    stages.begin("write")
    text = aot_found.stripped(hlo.to_string(), request["strip"])
    # Neither a time nor a file name in the header: the same program gives the same bytes.
    (out / "optimized.hlo.gz").write_bytes(gzip.compress(text.encode(), compresslevel=6, mtime=0))
    found = {
        "versions": {package: version(package) for package in ("jaxlib", "libtpu")},
        "topology": request["topology"],
        "num_slices": request["num_slices"],
        "device_kind": ordered[0].device_kind,
        "num_devices": len(ordered),
        "mesh_chips": aot_compiler.places(ordered, aot_found.device_assignment(hlo)),
        "compile_options": request["compile_options"],
        "flags": {name: os.environ[name] for name in FLAG_VARIABLES if name in os.environ},
        "memory": aot_found.memory(executable),
        "cost": aot_found.cost(executable),
        "seconds": stages.seconds(),
    }
    rows = (f" {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    (out / "compiled.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")


def read_request(path: Path) -> dict[str, Any]:
    """The request, with nothing missing and nothing more."""
    try:
        request = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RefusedError(f"cannot read the request {path}: {error}") from error
    if not isinstance(request, dict) or set(request) != FIELDS:
        raise RefusedError(f"the request {path} needs exactly the fields {', '.join(sorted(FIELDS))}")
    if not Path(request["program"]).is_file():
        raise RefusedError(f"there is no program {request['program']}")
    return request


def main(argv: list[str]) -> int:
    if len(argv) != 2:
        print("usage: python -m compare.program.aot REQUEST.json OUTDIR", file=sys.stderr)
        return 2
    try:
        compile_request(read_request(Path(argv[0])), Path(argv[1]))
    except AotError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except ImportError as error:
        print(f"the TPU compiler can't be imported: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"cannot write to {argv[1]}: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
