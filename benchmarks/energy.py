"""`python -m benchmarks.energy`: what energy adds to a warm run, as CPU time of all its processes.

The example run is read, judged, modelled and drawn as it is, and as if no coefficient were known: alternating, so that
other work on the machine meets both alike.  The figure to reach: at most 5 %.
"""

import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.measuring import measure

EXAMPLE = Path(__file__).parents[1] / "docs/example-run"
ROUNDS = 7
AIM = 0.05
DRAW = "from compare.cli.report import main; main([{run!r}, '--out', {out!r}])"
WITHOUT = """
from dataclasses import replace
from compare.run.folder import load_run
build = load_run.build_timelines
load_run.build_timelines = lambda *words, **options: replace(build(*words, **options), chip=None)
"""


def main() -> int:
    """Print both and their ratio; 1 where it is above the aim."""
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory() as folder:
        draw = DRAW.format(run=str(EXAMPLE), out=str(Path(folder) / "run"))
        for _ in range(ROUNDS):
            for name, code in (("with", draw), ("without", WITHOUT + draw)):
                seconds[name].append(measure([sys.executable, "-c", code]).cpu_seconds)
    ratios = [more / less - 1 for more, less in zip(seconds["with"], seconds["without"], strict=True)]
    added = median(ratios)
    print(
        f"CPU time with energy {median(seconds['with']):.2f} s, without {median(seconds['without']):.2f} s: "
        f"{100 * added:+.1f} % in the median of {ROUNDS} rounds ({100 * min(ratios):+.1f} to {100 * max(ratios):+.1f}; "
        f"aim {100 * AIM:.0f} %)"
    )
    return int(added > AIM)


if __name__ == "__main__":
    raise SystemExit(main())
