"""A report as tables for further analysis: one row per instruction, contract row, difference or program.

Lists and maps are JSON text in columns named `…_json`; bytes are integers, null where unknown.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from compare.render.programs import Program, programs, titles
from compare.render.table_columns import COLLECTIVES, DIFFERENCES, INHERENT, TOTALS
from compare.report.model.codec import encode
from compare.report.model.report import Report

Row = dict[str, object]

_ENTRY_FIELDS = ("status", "error", "partitioner", "loop", "attention", "style")
_SUMS = ("inherent", "inflated", "induced", "common", "framework_induced", "partitioner_induced", "missing", "unserved")


def collectives(report: Report) -> pd.DataFrame:
    """Every collective of every phase, arm and cell, in program order."""
    return frame(
        (
            {**_program_columns(program), "place_in_program": index, **encode(row)}
            for program in programs(report)
            for index, row in enumerate(program.rows)
        ),
        COLLECTIVES,
    )


def inherent(report: Report) -> pd.DataFrame:
    """The contract of every phase."""
    return frame(
        (
            {"phase": phase, "contract_row": index, **encode(row)}
            for phase, phase_report in report.phases.items()
            for index, row in enumerate(phase_report.inherent)
        ),
        INHERENT,
    )


def differences(report: Report) -> pd.DataFrame:
    """Every group of inflated or induced bytes, by phase, largest excess first."""
    return frame(
        (
            {"phase": phase, **encode(entry), "step_wire_bytes": entry.bytes}
            for phase, phase_report in report.phases.items()
            for entry in phase_report.differences
        ),
        DIFFERENCES,
    )


def totals(report: Report) -> pd.DataFrame:
    """One row for each program, failed ones included."""
    names = titles(report)
    return frame(
        (
            {
                **{name: getattr(program.entry, name) for name in _ENTRY_FIELDS},
                **_program_columns(program),
                "title": names[program.arm],
                "asked_bytes": report.phases[program.phase].inherent_total,
                **_sums(program, required=report.phases[program.phase].inherent_total),
                **_energy(program),
            }
            for program in programs(report)
        ),
        TOTALS,
    )


TABLES: Mapping[str, Callable[[Report], pd.DataFrame]] = {
    "collectives": collectives,
    "inherent": inherent,
    "differences": differences,
    "totals": totals,
}


def save(report: Report, folder: Path) -> None:
    """Write each table as `<name>.parquet`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        table(report).to_parquet(folder / f"{name}.parquet", engine="pyarrow", compression="zstd", index=False)


def _program_columns(program: Program) -> Row:
    return {"phase": program.phase, "arm": program.arm, "cell": program.cell, "is_default": program.default}


def _sums(program: Program, *, required: int) -> Row:
    sums = encode(program.entry.totals) if program.entry.totals else {}
    emitted = sums.get("wire_bytes")
    return {
        **{f"{name}_bytes": sums.get(name) for name in _SUMS},
        **{name: sums.get(name) for name in TOTALS if name.endswith(("wire_bytes", "_rows"))},
        "compute_over_floor": sums.get("compute_over_floor"),
        "emitted_over_inherent": emitted / required if emitted is not None and required else None,
    }


def _energy(program: Program) -> Row:
    energy = program.entry.energy
    if energy is None:
        return {}
    parts = {f"{name}_j": joules for by in (energy.by_component_j, energy.by_verdict_j) for name, joules in by.items()}
    return encode(energy) | parts


def frame(rows: Iterator[Row], columns: Mapping[str, str]) -> pd.DataFrame:
    """Rows as a frame with fixed dtypes, also if empty."""
    all_rows: Sequence[Row] = list(rows)
    data = {name: pd.Series([_value(row, name) for row in all_rows], dtype=kind) for name, kind in columns.items()}
    return pd.DataFrame(data)


def _value(row: Row, column: str) -> object:
    if column.endswith("_json"):
        return json.dumps(row.get(column.removesuffix("_json")), separators=(",", ":"))
    return row.get(column)
