"""`python -m benchmarks.gallery`: the whole gallery, from nothing, then from its cache."""

import tempfile
from pathlib import Path

from benchmarks.measuring import measure, python

AIMS = {"from nothing": 300, "from cache": 10}
"""Seconds on 2 cores."""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        command = python("compare.teach", "--out", str(folder / "gallery"))
        for what, aim in AIMS.items():
            usage = measure(command, environment={"WIREDIFF_CACHE": str(folder / "cache")})
            pages = len(list((folder / "gallery").glob("*.html")))
            print(
                f"{pages} pages {what}: {usage.seconds:.1f} s, {usage.cpu_seconds:.1f} s of CPU, "
                f"{usage.peak_bytes / 2**30:.2f} GiB over all processes; aim {aim} s"
            )


if __name__ == "__main__":
    main()
