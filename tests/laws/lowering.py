"""Many cases through one arm's own `lower`, in one process: `python -m tests.laws.lowering ARM FOLDER…`.

Each folder has a case.json, and gets program.mlirbc and about.json.
"""

import os
import sys
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path

from meshes.case import Case
from tests.laws.workers import each


def lower(arm: str, folder: Path) -> None:
    with redirect_stdout(StringIO()):
        import_module(f"{arm}.lower").lower(Case.from_json((folder / "case.json").read_text()), folder)


if __name__ == "__main__":
    arm, *folders = sys.argv[1:]
    each(folders, lambda folder: lower(arm, folder))
    # All is written; taking torch_xla down again would cost more than a second.
    os._exit(0)
