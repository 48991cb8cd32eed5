"""`python -m benchmarks.startup`: how long the commands that compile nothing take, against `python -c "import numpy"`.

Each command runs several times, in turn with the import; the medians of wall time are compared.
"""

import statistics
import subprocess
import sys
import time

ROUNDS = 9
NUMPY = ("-c", "import numpy")
COMMANDS = {
    "compare.plan --mesh tp4pp2": ("-m", "compare.plan", "--mesh", "tp4pp2"),
    "compare.hlo --help": ("-m", "compare.hlo", "--help"),
}
ALLOWED_RATIO, ALLOWED_S = 1.3, 0.15


def main() -> None:
    seconds: dict[str, list[float]] = {name: [] for name in ("import numpy", *COMMANDS)}
    for _ in range(ROUNDS):
        seconds["import numpy"].append(_run(NUMPY))
        for name, words in COMMANDS.items():
            seconds[name].append(_run(words))
    numpy = statistics.median(seconds["import numpy"])
    print(f"import numpy: {numpy:.3f} s")
    for name in COMMANDS:
        median = statistics.median(seconds[name])
        allowed = ALLOWED_RATIO * numpy + ALLOWED_S
        print(f"{name}: {median:.3f} s, {median / numpy:.2f} × (at most {allowed:.3f} s)")


def _run(words: tuple[str, ...]) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
