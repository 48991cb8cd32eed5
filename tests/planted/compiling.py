"""Many lowered programs through the pipeline's own compile, in one process.

`python -m tests.planted.compiling FOLDER…`: each folder has what an arm's `lower` wrote, and gets what
`compare.compile.workers.compile_request` writes.
"""

import json
import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from compare.compile.workers import compile_request
from meshes.assignment import assign_chips
from meshes.case import Case
from tests.laws.workers import ROOT, each


def compile_one(folder: Path) -> None:
    case = Case.from_json((folder / "case.json").read_text())
    request = {
        "program": str(folder / "program.mlirbc"),
        "topology": case.topology.slice_name,
        "num_slices": case.topology.slices,
        "places": assign_chips(case.plan),
        "compile_options": json.loads((folder / "about.json").read_text())["compile_options"],
        # A copy of a twin is read as the twin.
        "strip": [str(ROOT), str(folder / "package")],
        "passes": False,
    }
    with redirect_stdout(StringIO()):
        compile_request.compile_request(request, folder)


if __name__ == "__main__":
    each(sys.argv[1:], compile_one)
    sys.stdout.flush()
    os._exit(0)
