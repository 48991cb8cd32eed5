"""`python -m benchmarks.model [--compile]`: the model of a TPU's time against every published measurement.

Writes the table of `docs/model.md` from `published.toml` and `programs.json.gz`; `--compile` makes the latter again
with the libtpu that is installed, in a few minutes.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.measuring import fill_tables
from benchmarks.published import Measurement, Program, chip, measurements, programs, save
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.run.tasks import QUIET
from compare.schedule.hardware import Hardware
from compare.schedule.schedule import model_module
from compare.timeline.timeline import Timeline
from meshes.devices.generations import GENERATIONS
from meshes.devices.topology import Place

PAGE = Path(__file__).parent.parent / "docs" / "model.md"


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """A measurement and its modelled time; None if there is no program for it."""

    measured: Measurement
    model_s: float | None

    @property
    def error(self) -> float | None:
        return None if self.model_s is None else self.model_s / measured_s(self.measured) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", action="store_true", help="compile the small programs again")
    if parser.parse_args().compile:
        save(compile_programs(measurements()))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(summary(check_model(measurements(), programs())))


def page(text: str) -> str:
    """The page with its tables made again."""
    held = check_model(measurements(), programs())
    tables = {"errors": errors(held), "summary": summary(held), "constants": constants_table()}
    return fill_tables(text, tables, maker="benchmarks/model.py")


def compile_programs(rows: list[Measurement]) -> dict[str, Program]:
    """One process for each slice: libtpu answers some input by ending its process."""
    compiled: dict[str, Program] = {}
    by_slice: dict[tuple[str, str], list[Measurement]] = {}
    for row in rows:
        if row.is_program:
            by_slice.setdefault((row.generation, row.slice), []).append(row)
    for slice_rows in by_slice.values():
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-m", "benchmarks.small_programs", scratch]
            lines = "\n".join(row.request() for row in slice_rows)
            subprocess.run(command, input=lines, text=True, check=True, env=os.environ | QUIET)
            for row in slice_rows:
                entry = json.loads((Path(scratch) / f"{row.id}.json").read_text())
                compiled[row.id] = Program(entry["hlo"], tuple(Place(*place) for place in entry["places"]))
    return compiled


def check_model(rows: list[Measurement], compiled: Mapping[str, Program]) -> list[ModelCheck]:
    return [
        ModelCheck(row, model_s(row, compiled[row.id], Hardware.of(chip(row))) if row.id in compiled else None)
        for row in rows
    ]


def measured_s(row: Measurement) -> float:
    """Seconds; of a rate of a link 1 / rate, so that a slower model is a larger number there too."""
    return float(row.fields["measured_s"]) if "measured_s" in row.fields else 1 / row.fields["measured_bytes_per_s"]


def model_s(row: Measurement, program: Program, hardware: Hardware) -> float:
    """Modelled seconds of a measurement: of the collective, or of the whole program if timed by the host."""
    timeline = _timeline(row, program, hardware)
    total_s = float(timeline.steps["duration_ns"].max()) / 1e9
    if row.what != "collective" or row.timing == "host":
        return total_s
    comms = timeline.events[timeline.events["role"] == "communication"]
    seconds = float(comms["duration_ns"].max()) / 1e9
    if "measured_s" in row.fields:
        return seconds
    free = replace(hardware, launch_ns=0.0, hop_ns=0.0)
    load = _timeline(row, program, replace(free, link_bytes_per_ns=1.0)).events["duration_ns"].max()
    return seconds / float(load)


def _timeline(row: Measurement, program: Program, hardware: Hardware) -> Timeline:
    module = read(program.text)
    rows = collectives(module, {})
    if row.fields.get("alone"):
        rows = [replace(row, groups=row.groups[:1]) for row in rows]
    torus = program.torus(chip(row), on_chip_weight=hardware.link_bytes_per_ns / hardware.chip_bytes_per_ns)
    return model_module(module, rows, torus, hardware=hardware, slices=1, name=row.generation)


def fit_links(rows: list[Measurement], compiled: Mapping[str, Program], *, hop_s: float | None) -> tuple[float, ...]:
    """launch_s, hop_s and bytes/s of a link from the `fit` collectives of one generation, whose time is linear in them.

    hop_s: where it is known from elsewhere.
    """
    fitted = [row for row in rows if row.role == "fit" and row.what == "collective"]
    none = replace(Hardware.of(chip(fitted[0])), launch_ns=0.0, hop_ns=0.0, link_bytes_per_ns=1e30)
    units = [{"launch_ns": 1e9}, {"hop_ns": 1e9}, {"link_bytes_per_ns": 1.0}]
    parts = np.array([[model_s(row, compiled[row.id], replace(none, **unit)) for unit in units] for row in fitted])
    seconds = np.array([measured_s(row) for row in fitted])
    if hop_s is None:
        launch, hop, per_byte = np.linalg.solve(parts, seconds)
    else:
        launch, per_byte = np.linalg.solve(parts[:, [0, 2]], seconds - hop_s * parts[:, 1])
        hop = hop_s
    return float(launch), float(hop), 1e9 / float(per_byte)


def constants_table() -> str:
    """Every constant of every generation, with its source."""
    lines = ["| generation | constant | value | source |", "|---|---|---:|---|"]
    for name in sorted(GENERATIONS, key=lambda name: (re.sub(r"\D", "", name), name)):
        for key, figure in GENERATIONS[name].time.items():
            lines.append(f"| {name} | `{key}` | {figure.value:.5g} | {figure.source} |")
    return "\n".join(lines)


def errors(held: list[ModelCheck]) -> str:
    """One row for each measurement."""
    lines = ["| measurement | of | measured | model | error | |", "|---|---|---:|---:|---:|---|"]
    for check in held:
        row = check.measured
        unit = "" if "measured_s" in row.fields else " a byte"
        model = "–" if check.model_s is None else _time(check.model_s) + unit
        source = row.source.rsplit(" ", 1)[-1]
        cells = f"{_of(row)} | {_time(measured_s(row))}{unit} | {model} | {_percent(check.error)} | {row.role} |"
        lines.append(f"| [{row.id}]({source}) | {cells}")
    return "\n".join(lines)


def summary(held: list[ModelCheck]) -> str:
    """The median and the largest error by what was measured, of the checks alone."""
    rows = [check for check in held if check.measured.role == "check" and check.error is not None]
    lines = ["| checked | measurements | median of \\|error\\| | largest |", "|---|---:|---:|---:|"]
    kinds: dict[str, list[float]] = {}
    for check in rows:
        kind = check.measured.fields.get("kind", check.measured.what)
        for key in (f"{check.measured.generation} {kind}, {check.measured.timing}", "all"):
            kinds.setdefault(key, []).append(check.error or 0.0)
    for key in sorted(kinds, key=lambda key: (key == "all", key)):
        relative_errors = kinds[key]
        middle = _percent(statistics.median(map(abs, relative_errors))).removeprefix("+")
        lines.append(f"| {key} | {len(relative_errors)} | {middle} | {_percent(max(relative_errors, key=abs))} |")
    return "\n".join(lines)


def _percent(error: float | None) -> str:
    if error is None:
        return "–"
    return f"{round(100 * error):+d}%" if round(100 * error) else "0%"


def _of(row: Measurement) -> str:
    """In a few words what was measured."""
    fields = row.fields
    if row.what == "matmul":
        return f"{fields['m']}×{fields['k']}×{fields['n']} {fields['dtype']}, {row.timing}"
    if row.what == "collective":
        groups = "×".join(map(str, fields["group_shape"]))
        size = fields["bytes"]
        small = f"{size / 1024:g} KiB" if size % 1024 == 0 else f"{size / 1e6:g} MB"
        shown = f"{size / 2**20:g} MiB" if size % 2**18 == 0 else small
        return f"{fields['kind']} of {shown} over {groups} of {fields['topology']}, {row.timing}"
    if row.what == "hbm":
        return f"{fields['op']} of {fields['bytes'] / 2**21:g} MiB, {row.timing}"
    return f"{fields.get('program') or fields['model'] + ' ' + fields['phase']}, {row.timing}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e12:.3g} ps"


if __name__ == "__main__":
    main()
