"""Compile many small programs in one process: `python -m compare.compile.workers.compile_batch REQUEST.json`.

Imports jaxlib and libtpu, no framework.  REQUEST holds `topology`, and `programs`: each with `program` (path of the
bytecode), `compile_options`, `out` (a folder), and `axes` where it is first translated to Shardy.  Each folder gets
optimized.hlo.gz, or failed.txt with one line.  One JSON line on stdout as each is begun.  Exit 0; 2: the request can't
be met, and the last line on stderr says why.  libtpu may also abort the process: what has neither file then was not
reached, and the parent asks anew.
"""

import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from meshes.process.documents import read_json
from meshes.process.last_word import claim_stderr
from meshes.process.log import complain

FAILED = "failed.txt"


def main(argv: Sequence[str]) -> int:
    if len(argv) != 1:
        complain("usage: python -m compare.compile.workers.compile_batch REQUEST.json")
        return 2
    try:
        batch = read_json(Path(argv[0]))
        topology, programs = batch["topology"], list(batch["programs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        complain(f"cannot read the request {argv[0]}: {error!r}")
        return 2
    try:
        from compare.compile import compiler
        from compare.compile.errors import WorkerError
        from compare.compile.workers import gspmd_to_shardy
    except ImportError as error:
        complain(f"the TPU compiler can't be imported: {error}")
        return 2
    compiler.start()
    devices = compiler.list_devices(topology)
    for program in programs:
        out = Path(program["out"])
        print(json.dumps({"stage": out.name}), flush=True)
        try:
            options = compiler.build_options(program["compile_options"], devices)
            module = compiler.parse_stablehlo(Path(program["program"]).read_bytes())
            if program.get("axes"):
                gspmd_to_shardy.rewrite_annotations(module, axes=program["axes"])
            (hlo,) = compiler.compile_module(module, ordered=devices, options=options).hlo_modules()
        except WorkerError as error:
            (out / FAILED).write_text(f"{error}\n", encoding="utf-8")
            continue
        # Neither a time nor a file name in the header: the same program gives the same bytes.
        (out / "optimized.hlo.gz").write_bytes(gzip.compress(hlo.to_string().encode(), compresslevel=6, mtime=0))
    return 0


if __name__ == "__main__":
    claim_stderr()
    sys.exit(main(sys.argv[1:]))
