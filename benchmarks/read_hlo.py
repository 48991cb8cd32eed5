"""`python -m benchmarks.read_hlo`: HLO text into judged rows, against XLA's own parser on the same text.

The text is that of the unrolled 32-layer Llama-3.1-8B of either arm on tp8: its decode, which compiles faster.  XLA's
parser runs in a process of its own; both are timed in this one run, in turn, and the medians are compared.
"""

import gzip
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import measure, python
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read

ROUNDS = 7

XLA = """
import sys, time
from jaxlib import _hlo
text = open(sys.argv[1]).read()
for _ in range(int(sys.argv[2])):
    begun = time.perf_counter()
    _hlo.hlo_module_from_text(text)
    print(time.perf_counter() - begun)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "runs"
        measure(python("compare.run", "--mesh", "tp8", "--loop", "unrolled", "--phase", "decode", "--out", str(out)))
        for arm in ("jax", "torchxla"):
            (packed,) = out.glob(f"*/{arm}/decode/tpu/optimized.hlo.gz")
            _compare(arm, gzip.decompress(packed.read_bytes()).decode(), Path(scratch) / f"{arm}.hlo")


def _compare(arm: str, text: str, path: Path) -> None:
    path.write_text(text)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        rows = collectives(read(text), {"tp": 8})
        ours.append(time.perf_counter() - begun)
        theirs.append(_xla(path))
    mine, xla = statistics.median(ours), statistics.median(theirs)
    print(
        f"{arm}: {len(text) / 1e6:.2f} MB, {len(rows)} rows: {mine * 1e3:.0f} ms; "
        f"XLA's parser {xla * 1e3:.0f} ms; ratio {mine / xla:.2f}"
    )


def _xla(path: Path) -> float:
    """The median of a few parses in a fresh process, the first left out."""
    done = subprocess.run([sys.executable, "-c", XLA, str(path), "4"], check=True, capture_output=True, text=True)
    return statistics.median(map(float, done.stdout.split()[1:]))


if __name__ == "__main__":
    main()
