"""`python -m benchmarks.presets [NAME …]`: each preset on a mesh that it fits, both arms, both phases, from nothing.

Prints wall time, the largest sum of resident memory over all processes, and for each phase and arm the bytes on the
wire of a step beside those that the plan needs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measuring import measure, python

PRESETS: dict[str, tuple[str, ...]] = {
    "llama-3.2-1b": ("tp8",),
    "llama-3.1-8b": ("tp4pp2",),
    "llama-3.1-70b": ("tp8pp4@v5p:2x4x4",),
    "llama-3.1-405b": ("dp16tp8pp2@v5p:8x8x4", "--batch", "128"),
    "qwen3-4b": ("tp8+sp",),
    "qwen3-32b": ("cp2tp8@v5e:4x4",),
    "qwen3-30b-a3b": ("dp2ep8@v5e:4x4", "--batch", "16"),
    "mixtral-8x7b": ("ep4tp2",),
    "qwen1.5-moe-a2.7b": ("tp2ep4",),
    "phi-4": ("tp4pp2",),
    "tiny": ("dp2pp2tp2",),
    "tiny-moe": ("pp2ep4", "--batch", "16"),
}
"""Preset -> mesh, and what else it needs."""


def main(names: list[str]) -> int:
    """Exit status 1 where an arm failed."""
    failed = 0
    for name in names or PRESETS:
        mesh, *words = PRESETS[name]
        with tempfile.TemporaryDirectory() as scratch:
            try:
                usage = measure(
                    python("compare.run", "--model", name, "--mesh", mesh, *words, "--no-cache", "--out", scratch)
                )
                took = f"{usage.seconds:.0f} s, {usage.peak_bytes / 2**30:.1f} GiB at the most"
            except subprocess.CalledProcessError as error:
                failed, took = 1, f"exit status {error.returncode}"
            print(f"{name} on {mesh}: {took}", flush=True)
            for line in _read_bytes(Path(scratch)):
                print(f"  {line}", flush=True)
    return failed


def _read_bytes(runs: Path) -> list[str]:
    """Bytes by phase and arm, of the only run in this folder."""
    lines = []
    for path in runs.glob("*/report.json"):
        report = json.loads(path.read_bytes())
        for phase, phase_report in report["phases"].items():
            needed = sum(row["step_wire_bytes"] for row in phase_report["inherent"])
            for arm, program in phase_report["arms"].items():
                if error := report["arms"][arm]["error"]:
                    lines.append(f"{phase} {arm}: {error}")
                elif program.get("totals"):
                    emitted = program["totals"]["wire_bytes"]
                    ratio = f"{emitted / needed:.3f} ×" if needed else "nothing needed"
                    lines.append(
                        f"{phase} {arm}: {emitted / 1e6:.1f} MB on the wire, {needed / 1e6:.1f} needed ({ratio})"
                    )
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
