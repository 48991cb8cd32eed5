"""`python -m benchmarks.witnesses`: models that other people wrote, judged by the contract: docs/witnesses.json.

Compiles every witness and both twins for each mesh at full depth (`compare.run --witness …`), and writes what each
program moves, what is beyond the plan, and the line of source, into docs/witnesses.json and the tables of
docs/witnesses.md.  About 20 minutes on two quiet cores for both meshes; what is cached is not compiled again.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from compare.render.units import bytes_text, ratio_text
from compare.report.differences import group_by_cause
from compare.report.model.program import ProgramReport
from compare.report.model.report import Report
from compare.report.witness_bytes import main_line
from compare.report.witnesses import WITNESSES

ROOT = Path(__file__).parents[1]
DATA, PAGE = ROOT / "docs/witnesses.json", ROOT / "docs/witnesses.md"
MESHES = ("dp2tp4", "tp8")
SHOWN = ("tpu", "tpu+einsum", "tpu+torchax", *WITNESSES)


def compile_run(mesh: str, *, model: str, out: Path) -> Path:
    """The run folder of one mesh, with every witness."""
    argv = [
        sys.executable,
        "-m",
        "compare.run",
        "--mesh",
        mesh,
        "--model",
        model,
        "--out",
        str(out),
        "--json",
        "--witness",
        ",".join(WITNESSES),
        "--controls",
        "partitioner,attention,tracer",
        "--timeout",
        "3600",
    ]
    done = subprocess.run(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"compare.run --mesh {mesh} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return Path(done.stderr.rstrip().splitlines()[-1]).parent


def summarize(report: Report) -> Iterator[dict[str, object]]:
    """One row for each phase and program."""
    for phase, phase_report in report.phases.items():
        for line in phase_report.headline:
            if line.cell in SHOWN:
                program = phase_report.arms[line.arm].cell(line.cell)
                yield {
                    "model": report.case.model.name,
                    "mesh": report.case.mesh.name,
                    "phase": phase,
                    "arm": line.arm,
                    "program": line.cell,
                    "status": line.status,
                    "wire_bytes": line.wire_bytes,
                    "ratio": line.ratio,
                    "inherent": line.inherent,
                    "inflated": line.inflated,
                    "induced": line.induced,
                    "missing": line.missing,
                    "constraints": program.constraints,
                    "versions": program.versions,
                    "beyond": list(_beyond(program)),
                }


def _beyond(program: ProgramReport) -> Iterator[dict[str, object]]:
    groups = sorted(group_by_cause(program.collectives).items(), key=lambda item: -item[1].bytes)
    for key, group in groups:
        yield key._asdict() | {"bytes": group.bytes, "executions": group.executions, "source_line": main_line(group)}


def tables(rows: list[dict[str, object]]) -> str:
    """For each mesh and phase a table in Markdown."""
    parts = []
    for table in dict.fromkeys(map(_table, rows)):
        model, mesh, phase = table
        parts += [
            f"**{model}, {mesh}, {phase}**",
            "",
            "| program | emitted ÷ inherent | beyond the plan | most of it |",
            "|---|---|---|---|",
        ]
        parts += [_line(row) for row in rows if _table(row) == table]
        parts.append("")
    return "\n".join(parts)


def _table(row: dict[str, object]) -> tuple[str, str, str]:
    """Model, mesh and phase: a table of the page."""
    return str(row["model"]), str(row["mesh"]), str(row["phase"])


def _line(row: dict[str, object]) -> str:
    name = (
        row["program"]
        if row["program"] in WITNESSES
        else f"{ {'jax': 'JAX', 'torchxla': 'TorchXLA'}[str(row['arm'])] } {row['program']}"
    )
    if row["ratio"] is None:
        return f"| `{name}` | {row['status']} | | |"
    beyond = int(str(row["inflated"])) + int(str(row["induced"]))
    most = next(iter(row["beyond"]), None) if isinstance(row["beyond"], list) else None
    text = (
        f"{most['kind']} over {most['axes']} in {most['scope']}, {most['executions']} × ({most['source_line'] or '–'})"
        if most
        else ""
    )
    return f"| `{name}` | {ratio_text(float(str(row['ratio'])), '')} | {bytes_text(beyond)} | {text} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.witnesses", description=__doc__)
    parser.add_argument("--meshes", default=",".join(MESHES))
    parser.add_argument("--model", default="llama-3.1-8b")
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--runs", nargs="*", type=Path, metavar="RUN", help="run folders that are there already")
    parser.add_argument("--table", action="store_true", help="only write the tables again, from docs/witnesses.json")
    options = parser.parse_args()
    if not options.table:
        meshes = [] if options.runs else options.meshes.split(",")
        folders = options.runs or [compile_run(mesh, model=options.model, out=options.out) for mesh in meshes]
        reports = [Report.from_json(json.loads((folder / "report.json").read_text())) for folder in folders]
        rows = [row for report in reports for row in summarize(report)]
        keys = {_table(row) for row in rows}
        kept = [row for row in json.loads(DATA.read_text()) if _table(row) not in keys]
        DATA.write_text(json.dumps([*kept, *rows], indent=1) + "\n")
    rows = json.loads(DATA.read_text())
    begin, end = "<!-- tables: python -m benchmarks.witnesses -->\n", "<!-- /tables -->"
    PAGE.write_text(
        re.sub(
            f"{re.escape(begin)}.*{re.escape(end)}", lambda _: begin + tables(rows) + end, PAGE.read_text(), flags=re.S
        )
    )


if __name__ == "__main__":
    main()
