"""`python -m benchmarks.diff_programs`: the diff of two programs of about 3 MB, the whole command.

The programs are the decode of the unrolled 32-layer Llama-3.1-8B on tp8, of either arm; then the worst of that size,
which is nothing but collectives, against itself with one more.
"""

import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import cpu_seconds, measure, python

AIM_S = 3.0
ROUNDS = 3

COLLECTIVES = 11_000
SUM = "add {\n  a = bf16[] parameter(0)\n  b = bf16[] parameter(1)\n  ROOT c = bf16[] add(a, b)\n}\n"
GROUPS = "channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true"
NAMED = 'metadata={op_name="jit(step)/while/body/layer.mlp.down/dot_general" source_file="model.py" source_line=7}'


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "runs"
        measure(python("compare.run", "--mesh", "tp8", "--loop", "unrolled", "--phase", "decode", "--out", str(out)))
        a, b = (str(next(out.glob(f"*/{arm}/decode/tpu/optimized.hlo.gz"))) for arm in ("jax", "torchxla"))
        for pair in ((a, a), (a, b), (b, b)):
            seconds, cpu_seconds = min(_diffed(*pair) for _ in range(ROUNDS))
            names = " and ".join(Path(path).parents[2].name for path in pair)
            print(f"{names}: {seconds:.1f} s ({cpu_seconds:.1f} of CPU), aim {AIM_S:g} s")
        pair = [_nothing_else(Path(scratch) / f"{more}.hlo", more=more) for more in (0, 1)]
        seconds, cpu_seconds = min(_diffed(*map(str, pair)) for _ in range(ROUNDS))
        size = pair[0].stat().st_size / 1e6
        print(
            f"{COLLECTIVES:,} collectives, {size:.1f} MB: {seconds:.1f} s ({cpu_seconds:.1f} of CPU), aim {AIM_S:g} s"
        )


def _nothing_else(path: Path, *, more: int) -> Path:
    """A program of 8 devices that is nothing but sums, each of another size."""
    shapes = [f"bf16[{256 + number},1024]" for number in range(COLLECTIVES + more)]
    lines = [
        f"  p{at} = {shape} parameter({at})\n  r{at} = {shape} all-reduce(p{at}), {GROUPS}, to_apply=add, {NAMED}\n"
        for at, shape in enumerate(shapes)
    ]
    lines.append("  ROOT t = () tuple()\n")
    path.write_text(f"HloModule m, num_partitions=8\n{SUM}ENTRY main {{\n{''.join(lines)}}}\n")
    return path


def _diffed(a: str, b: str) -> tuple[float, float]:
    """Wall and processor seconds of one command; it exits 1 where the two differ."""
    begun, used = time.monotonic(), cpu_seconds()
    done = subprocess.run(python("compare.diff", a, b, "--mesh", "tp8"), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return time.monotonic() - begun, cpu_seconds() - used


if __name__ == "__main__":
    main()
