"""Many planted copies of a twin through its own `lower`, in one process.

`python -m tests.planted.lowering ARM FOLDER…`: each folder has a case.json and, where a line is planted,
package/ with a copy of the twin that is imported in place of the real one.  Gets program.mlirbc and about.json.
"""

import os
import sys
from contextlib import redirect_stdout
from importlib import import_module, invalidate_caches
from io import StringIO
from pathlib import Path

from meshes.case import Case
from tests.laws.workers import each


def lower(package: str, folder: Path) -> None:
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]
    copy = str(folder / "package")
    sys.path.insert(0, copy)
    invalidate_caches()
    try:
        with redirect_stdout(StringIO()):
            import_module(f"{package}.lower").lower(Case.from_json((folder / "case.json").read_text()), folder)
    finally:
        sys.path.remove(copy)


if __name__ == "__main__":
    arm, *folders = sys.argv[1:]
    each(folders, lambda folder: lower(arm, folder))
    # All is written; taking torch_xla down again would cost more than a second.
    sys.stdout.flush()
    os._exit(0)
