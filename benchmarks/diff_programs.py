"""`python -m benchmarks.diff_programs`: the diff of two real programs of about 3 MB, the whole command.

The programs are the decode of the unrolled 32-layer Llama-3.1-8B on tp8, of either arm.
"""

import resource
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import measure, python

AIM_S = 3.0
ROUNDS = 3


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "runs"
        measure(python("compare.run", "--mesh", "tp8", "--loop", "unrolled", "--phase", "decode", "--out", str(out)))
        a, b = (str(next(out.glob(f"*/{arm}/decode/tpu/optimized.hlo.gz"))) for arm in ("jax", "torchxla"))
        for pair in ((a, a), (a, b), (b, b)):
            seconds, cpu_seconds = min(_diffed(*pair) for _ in range(ROUNDS))
            names = " and ".join(Path(one).parents[2].name for one in pair)
            print(f"{names}: {seconds:.1f} s ({cpu_seconds:.1f} of CPU), aim {AIM_S:g} s")


def _diffed(a: str, b: str) -> tuple[float, float]:
    """Wall and processor seconds of one command; it exits 1 where the two differ."""
    begun, used = time.monotonic(), _cpu_s()
    done = subprocess.run(python("compare.diff", a, b, "--mesh", "tp8"), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return time.monotonic() - begun, _cpu_s() - used


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
