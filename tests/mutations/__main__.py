"""Every mutation of table.toml, planted in a copy of the checkout: `python -m tests.mutations [ROOM …]`.

The test that the table names must fail with it; prints a line each, and ends with 1 if one did not.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutations.table import Mutation, copy_checkout, read_table

TIMEOUT_S = 300


def is_caught(mutation: Mutation, tree: Path) -> bool:
    """Whether its test fails with it; the copy is as before afterwards."""
    path = tree / mutation.file
    text = path.read_text(encoding="utf-8")
    path.write_text(mutation.plant(text), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", mutation.caught_by]
    try:
        done = subprocess.run(words, cwd=tree, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False)
        return done.returncode == 1
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(text, encoding="utf-8")


def main(rooms: list[str]) -> int:
    """0: each was caught by the test that the table names."""
    chosen = [mutation for mutation in read_table() if not rooms or mutation.room in rooms]
    survived = 0
    with tempfile.TemporaryDirectory() as scratch:
        tree = copy_checkout(Path(scratch) / "tree")
        for mutation in chosen:
            caught = is_caught(mutation, tree)
            survived += not caught
            word = "caught" if caught else "SURVIVED"
            print(f"{word:9} {mutation.room:9} {mutation.file}: {mutation.new.strip()}", flush=True)
    print(f"{len(chosen) - survived} of {len(chosen)} caught")
    return 1 if survived else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
