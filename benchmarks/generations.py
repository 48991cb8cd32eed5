"""`python -m benchmarks.generations [--only v5p,v6e]`: every TPU generation against every kind of mesh, both arms.

Each program is lowered, compiled for the chips of that generation, read and judged; `docs/generations.md` has the table
of what each emits beyond its plan, where generations differ, and every program that failed and why.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.generations_page import Entry, Extra, ProgramExtras, cell, page
from compare.report.model.about import About
from compare.report.programs import JudgedProgram, ProgramResult, judge_program
from compare.report.rows import sum_totals
from compare.run.arms import ARMS
from compare.run.cache import Cache, open_cache
from compare.run.results import Outcome
from compare.run.scheduler import run_case
from meshes.assignment import assign_chips
from meshes.case import Case
from meshes.devices.generations import GENERATIONS
from meshes.process.errors import MeshError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "generations.md"

ONE_CHIP = {"v5e": "1x1", "v6e": "1x1", "v5p": "1x1x1", "v4": "1x1x1", "tpu7x": "1x1x1"}
EIGHT = {"v5e": "2x4", "v6e": "2x4", "v5p": "2x2x2", "v4": "2x2x1", "tpu7x": "2x2x1"}
"""The slice of each generation with eight devices."""
TWICE_FOUR = {"v5e": "2x2", "v6e": "2x2", "v5p": "2x2x1", "v4": "1x2x1", "tpu7x": "1x2x1"}
"""The slice of which two have eight devices."""

DENSE = ("tp8", "tp4pp2", "tp8+sp", "cp4tp2")
EXPERTS = ("dp2ep4",)
SLICED = ("tp4pp2", "tp8")
MODELS = {"dense": "tiny", "experts": "tiny-moe"}
SEQ = 128


def main() -> int:
    options = _arguments()
    entries = []
    with open_cache() as cache:
        for generation, mesh, model in _cases(options.only.split(",")):
            entry = _entry(generation, mesh, model, cache=cache)
            print(f"{generation:6} {mesh:26} {cell(entry)} {' | '.join(entry.failures)}", flush=True)
            entries.append(entry)
    if options.only == ",".join(GENERATIONS):
        models = f"`{MODELS['dense']}` and, with `ep`, `{MODELS['experts']}`; {SEQ} tokens"
        PAGE.write_text(page(entries, models=models), encoding="utf-8")
        print(PAGE)
    return int(any(entry.failures for entry in entries))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generations", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", default=",".join(GENERATIONS), help="generations, comma-joined; all, and the page too"
    )
    return parser.parse_args()


def _cases(generations: list[str]) -> Iterator[tuple[str, str, str]]:
    """Generation, mesh with its topology, model; mesh by mesh, because programs are lowered for no generation."""
    yield from (
        (name, f"tp{GENERATIONS[name].devices}@{name}:{ONE_CHIP[name]}", MODELS["dense"]) for name in generations
    )
    for mesh in (*DENSE, *EXPERTS):
        model = MODELS["experts" if mesh in EXPERTS else "dense"]
        yield from ((name, f"{mesh}@{name}:{EIGHT[name]}", model) for name in generations)
    for mesh in SLICED:
        yield from ((name, f"{mesh}@2x{name}:{TWICE_FOUR[name]}", MODELS["dense"]) for name in generations)


def _entry(generation: str, mesh: str, model: str, *, cache: Cache) -> Entry:
    name, _, topology = mesh.partition("@")
    shown = f"{name} over two slices" if topology.startswith("2x") else name
    shown = "one chip" if topology.endswith(f":{ONE_CHIP[generation]}") else shown
    try:
        case = Case.read(mesh, model_name=model, seq=SEQ)
        assign_chips(case.plan)
    except MeshError as error:
        return Entry(shown, generation, {}, (str(error),))
    # The default program of each arm: the controls are other questions.
    arms = [replace(arm, controls=()) for arm in ARMS.values()]
    outcomes = run_case(case, arms=arms, cache=cache, notify=lambda event: None)
    return Entry(
        shown,
        generation,
        {(ARMS[outcome.arm].title, outcome.phase): _found(case, outcome) for outcome in outcomes},
        tuple(
            f"{ARMS[outcome.arm].title} {outcome.phase}: {outcome.error}"
            for outcome in outcomes
            if outcome.status != "ok"
        ),
    )


def _found(case: Case, outcome: Outcome) -> ProgramExtras | None:
    judged = _judged(case, outcome)
    if judged is None or judged.judgement is None:
        return None
    required = sum(row.step_wire_bytes for row in judged.contract)
    emitted = sum(row.step_wire_bytes or 0 for row in judged.rows)
    extras: dict[Extra, int] = {}
    for row in judged.judgement.verdicts:
        collective = row.collective
        for cause, amount in row.causes.items():
            key = Extra(cause, collective.kind, collective.part_of or collective.axes, collective.scope)
            extras[key] = extras.get(key, 0) + amount
    return ProgramExtras(
        ratio=emitted / required if required else 1.0 if not emitted else float("inf"),
        extras=extras,
        unserved_bytes=sum_totals(judged.judgement, judged.contract).unserved,
    )


def _judged(case: Case, outcome: Outcome) -> JudgedProgram | None:
    if outcome.program is None or outcome.compiled is None:
        return None
    about = json.loads((outcome.program / "about.json").read_bytes())
    about |= json.loads((outcome.compiled / "compiled.json").read_bytes())
    hlo = gzip.decompress((outcome.compiled / "optimized.hlo.gz").read_bytes()).decode()
    result = ProgramResult(
        arm=outcome.arm,
        phase=outcome.phase,
        cell=outcome.cell,
        status=outcome.status,
        about=About.from_json(about),
        hlo=hlo,
    )
    return judge_program(case, result)


if __name__ == "__main__":
    sys.exit(main())
