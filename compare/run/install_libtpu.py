"""Another version of libtpu, beside the one installed: `python -m compare.run.install_libtpu REQUEST.json OUTDIR`.

REQUEST holds `version`.  pip puts that one package, without what it depends on, into OUTDIR: found there first, it is
what `import libtpu` means.  Exit 0; 2: it can't be had, and the last line on stderr says why.
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
from meshes.process.one_line import complain

VERSION = re.compile(r"\d+(\.\d+){1,3}")


def read_version(words: str) -> str:
    """`0.0.41`.  Raises `WorkError` for what is no version."""
    if not VERSION.fullmatch(words):
        raise WorkError(f"{words!r} is no version of libtpu; write one like 0.0.41")
    return words


def install(version: str, out: Path) -> None:
    """Raises `WorkError` where pip cannot."""
    if not find_spec("pip"):
        raise WorkError(f"libtpu {version} cannot be had: there is no pip here to install it with")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--disable-pip-version-check", "--no-input",
               "--target", str(out), f"libtpu=={version}"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.startswith("ERROR:")]
        reason = said[-1].removeprefix("ERROR: ") if said else f"pip ended with {done.returncode}"
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
