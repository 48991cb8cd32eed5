"""`python -m benchmarks.startup`: how long commands take that compute nothing, against `python -c "import numpy"`.

`--help` of every command, beside the help of a parser without options, argparse's own time; and the contract of a mesh.
Each runs several times, in turn with the import; the medians of wall time are compared.
"""

import statistics
import subprocess
import sys
import time

from compare.cli import front_door

ROUNDS = 9
NUMPY = "import numpy"
ARGPARSE = "import argparse; argparse.ArgumentParser().format_help()"
LINES = {
    NUMPY: ("-c", NUMPY),
    ARGPARSE: ("-c", ARGPARSE),
    "compare.plan --mesh tp4pp2": ("-m", "compare.plan", "--mesh", "tp4pp2"),
    **{f"compare {name} --help": ("-m", "compare", name, "--help") for name in front_door.COMMANDS},
}
ALLOWED_RATIO, ALLOWED_S = 1.3, 0.15


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name in LINES}
    for _ in range(ROUNDS):
        for name, words in LINES.items():
            seconds[name].append(_run(words))
    medians = {name: statistics.median(runs) for name, runs in seconds.items()}
    numpy = medians.pop(NUMPY)
    print(f"{NUMPY}: {numpy:.3f} s")
    for name, median in medians.items():
        print(f"{name}: {median:.3f} s, {median / numpy:.2f} ×")
    print(f"the slowest: {max(medians.values()) / numpy:.2f} × (at most {ALLOWED_RATIO} ×, and {ALLOWED_S} s)")


def _run(words: tuple[str, ...]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
