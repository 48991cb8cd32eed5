"""`python -m benchmarks.large`: Llama-3.1-405B on 256 chips, 70B on 32, 4 layers on 256; both arms, from nothing.

Prints wall time and the largest sum of resident memory over all processes of the run.
"""

import tempfile
from pathlib import Path

from benchmarks.measuring import measure, python

MOST = ("--mesh", "dp16tp8pp2@v5p:8x8x4", "--model", "llama-3.1-405b", "--batch", "128")
RUNS = {
    "Llama-3.1-405B on dp16pp2tp8, v5p:8x8x4": MOST,
    "Llama-3.1-70B on tp8pp4, v5p:2x4x4": ("--mesh", "tp8pp4@v5p:2x4x4", "--model", "llama-3.1-70b"),
    "tiny (4 layers) on dp32tp8, v5e:16x16": ("--mesh", "dp32tp8", "--model", "tiny", "--batch", "32"),
    "tiny (4 layers) on dp16pp2tp8, v5e:16x16": ("--mesh", "dp16pp2tp8", "--model", "tiny", "--batch", "64"),
}


def main() -> None:
    for title, words in RUNS.items():
        with tempfile.TemporaryDirectory() as scratch:
            out = str(Path(scratch) / "runs")
            usage = measure(python("compare.run", *words, "--no-cache", "--out", out))
        print(f"{title}: {usage.seconds:.0f} s, {usage.peak_bytes / 2**30:.1f} GiB at the most")


if __name__ == "__main__":
    main()
