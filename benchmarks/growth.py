"""`python -m benchmarks.growth [chips layers large]`: seconds and memory of both arms as a program grows.

chips: a small model on 8 to 512 chips.  layers: Llama-3.1-8B on eight chips with more and more layers, in a scan and
unrolled.  large: Llama-3.1-405B on 256 chips.  Each line is the arm's own lowering and libtpu's compile, a process
each and run alone, and the reading and judging of what came out.  All parts together are written to `docs/growth.md`.
"""

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.measuring import measure_task
from compare.report.model.about import About
from compare.report.programs import ProgramResult, judge_program
from compare.run import tasks
from compare.run.arms import ARMS, Arm
from meshes.case import Case

CHIPS = {
    8: "tp8",
    32: "dp4tp8",
    64: "dp8tp8",
    128: "dp16tp8",
    256: "dp32tp8",
    512: "dp64tp8@2xv5e:16x16",
}
"""The mesh for each number of chips: more replicas, each of one sequence; the last on two slices."""
LAYERS = (4, 8, 16, 32)
LARGE = "dp16tp8pp2@v5p:8x8x4"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "growth.md"
TITLE = """# How time and memory grow

Made by `python -m benchmarks.growth`.  Seconds are those of all cores together, so that they hold on a busy machine,
too; GB is the most that a process held.  *Lower* is the framework with the twin, from its import to StableHLO;
*compile* is libtpu; *read* is this tool: the HLO read, every collective judged."""
HEADS = {
    "chips": "More chips\n\nA model of four layers, a decode step; every eight chips are one replica more.",
    "layers": "More layers\n\nLlama-3.1-8B's layers on eight chips, a decode step, in a scan and unrolled.",
    "large": "Llama-3.1-405B on 256 chips\n\n126 layers in two stages, batch 128, sequences of 1,024 tokens.",
}
HEAD = (
    "| program | arm | lower, s | GB | compile, s | GB | HLO, MB | read, s |\n|---|---|---:|---:|---:|---:|---:|---:|"
)


@dataclass(frozen=True, slots=True)
class Program:
    """What is measured, and how the table names it."""

    title: str
    case: Case


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"which of {', '.join(HEADS)}; all without one")
    parser.add_argument("--arm", default=",".join(ARMS), help="which frameworks, with commas")
    options = parser.parse_args()
    if unknown := sorted(set(options.parts) - set(HEADS)):
        parser.error(f"unknown part {unknown[0]!r}; the parts are {', '.join(HEADS)}")
    parts = options.parts or list(HEADS)
    said = [TITLE]
    for part in parts:
        said.append(f"\n## {HEADS[part]}\n\n{HEAD}")
        print(said[-1], flush=True)
        for program in PROGRAMS[part]():
            for name in options.arm.split(","):
                said.append(row(program, ARMS[name]))
                print(said[-1], flush=True)
    if parts == list(HEADS):
        PAGE.write_text("\n".join([*said, ""]), encoding="utf-8")
        print(PAGE)


def chips() -> Iterator[Program]:
    for number, mesh in CHIPS.items():
        case = Case.read(mesh, model_name="tiny", phases=("decode",), batch=max(8, number // 8))
        yield Program(f"{case.mesh.name}, {number} chips, {case.topology.name}", case)


def layers() -> Iterator[Program]:
    full = Case.read("tp8", phases=("decode",))
    for number in LAYERS:
        for loop in ("scan", "unrolled"):
            deep = replace(full.model, layers=number, name=f"{full.model.name}-{number}")
            yield Program(f"{number} layers, {loop}", full.at(model=deep, loop=loop))


def large() -> Iterator[Program]:
    for phase in ("prefill", "decode"):
        case = Case.read(LARGE, model_name="llama-3.1-405b", phases=(phase,), batch=128)
        yield Program(f"{phase}, {case.mesh.name}, {case.topology.name}", case)


PROGRAMS = {"chips": chips, "layers": layers, "large": large}


def row(program: Program, arm: Arm) -> str:
    with tempfile.TemporaryDirectory() as scratch:
        lowered, compiled = Path(scratch) / "lowered", Path(scratch) / "compiled"
        first = measure_task(tasks.lower_task(program.case, arm), lowered)
        second = measure_task(tasks.compile_task(program.case, arm, program=lowered), compiled)
        hlo = gzip.decompress((compiled / "optimized.hlo.gz").read_bytes()).decode()
        about = json.loads((lowered / "about.json").read_bytes())
        about |= json.loads((compiled / "compiled.json").read_bytes())
    begun = time.process_time()
    result = ProgramResult(
        arm=arm.name, phase=program.case.phase, cell="tpu", status="ok", about=About.from_json(about), hlo=hlo
    )
    assert judge_program(program.case, result).judgement is not None
    read = time.process_time() - begun
    used = " | ".join(f"{each.cpu_seconds:.1f} | {each.peak_bytes / 1e9:.1f}" for each in (first, second))
    return f"| {program.title} | {arm.title} | {used} | {len(hlo) / 1e6:.1f} | {read:.2f} |"


if __name__ == "__main__":
    main()
