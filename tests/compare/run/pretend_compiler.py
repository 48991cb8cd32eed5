"""Stands in for libtpu: `python -m … REQUEST.json OUTDIR` "compiles" what says `module @name`, and fails where told."""

import gzip
import json
import sys
from pathlib import Path

from tests.compare.verdict.toy_hlo import GATHER, SUM, program

request, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
text = Path(request["program"]).read_text()
if "fails" in text:
    sys.exit("the compiler says no")
print(json.dumps({"stage": "compile"}), flush=True)
(out / "dump").mkdir()
(out / "program.mlirbc").write_text(text)
(out / "optimized.hlo.gz").write_bytes(gzip.compress(program(SUM, GATHER).encode()))
(out / "before.hlo.gz").write_bytes(gzip.compress(program(SUM).encode()))
(out / "passes.tar.xz").write_bytes(b"recorded")
meshes = ['sdy.mesh @mesh = <["data"=2, "tensor"=4]>'] if "meshed" in text else []
about = {"num_slices": 1, "topology": request["topology"] or "v5e:2x4", "versions": {"libtpu": "0"}, "device_ids": []}
about |= {"meshes": meshes, "chosen": {}}
(out / "compiled.json").write_text(json.dumps(about))
