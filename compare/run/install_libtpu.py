"""Install another version of libtpu: `python -m compare.run.install_libtpu REQUEST.json OUTDIR`.

REQUEST holds `version`.  pip installs that package, without dependencies, into OUTDIR, which comes first on the
path, so that `import libtpu` finds it.  Exit 0; 2: not available, and the last line on stderr says why.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from compare.run.errors import WorkError
from meshes.process.documents import read_json
from meshes.process.log import complain

VERSION = re.compile(r"\d+(\.\d+){1,3}")


def read_version(words: str) -> str:
    """A version like `0.0.41`.  Raises `WorkError` for anything else."""
    if not VERSION.fullmatch(words):
        raise WorkError(f"{words!r} is no version of libtpu; write one like 0.0.41")
    return words


def install(version: str, out: Path) -> None:
    """Raises `WorkError` where pip cannot."""
    if not find_spec("pip"):
        raise WorkError(f"libtpu {version} cannot be had: there is no pip here to install it with")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--disable-pip-version-check",
        "--no-input",
        "--target",
        str(out),
        f"libtpu=={version}",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        errors = [line.strip() for line in result.stderr.splitlines() if line.startswith("ERROR:")]
        reason = errors[-1].removeprefix("ERROR: ") if errors else f"pip ended with {result.returncode}"
        raise WorkError(f"libtpu {version} cannot be had: {reason}")


def main(argv: Sequence[str]) -> int:
    if len(argv) != 2:
        complain("usage: python -m compare.run.install_libtpu REQUEST.json OUTDIR")
        return 2
    print(json.dumps({"stage": "install", "seconds": 0.0}), flush=True)
    try:
        install(read_version(read_json(Path(argv[0]))["version"]), Path(argv[1]))
    except (WorkError, OSError) as error:
        complain(error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
