"""The energy of each program of a sweep, from its report and the tables in its run folder; nothing is compiled."""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from compare.energy.amounts import event_joules
from compare.energy.coefficients import COMPONENTS, STATIC
from compare.energy.step_energy import list_rates
from compare.hlo.text.errors import HloError
from compare.hlo.text.files import decompress, read_bytes
from compare.metrics.network.matrix import ici_bytes_by_chip
from compare.metrics.network.sent_bytes import bytes_sent_by
from compare.report.compiler_options import option_of
from compare.report.model.program import ProgramReport
from compare.report.model.report import Report
from compare.report.model.timing import Timing
from compare.sweep.energy.kernels import time_by_class
from compare.sweep.summary import ChipRow, EnergySummary, ProgramSummary, ResultRow, Sweep
from compare.timeline.columns import WORK_COLUMNS
from meshes.process.documents import read_json

REPORT, EVENTS, HLO = "report.json", "tables/events.parquet", "optimized.hlo.gz"
_COMPUTATION = re.compile(r"^(%|ENTRY )", re.MULTILINE)
_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')
_NAME = re.compile(r"%[\w.-]+")
_COLUMNS = ("arm", "phase", "cell", "source", "device", "name", "hlo_op", "role", "collective", "scope", "kind",
            "duration_ns", "step", "alone_ns", "stands_for", *WORK_COLUMNS)  # fmt: skip


def add_energy(sweep: Sweep, folder: Path) -> Sweep:
    """The sweep with the energy of each program whose run folder, in `folder`, has one."""
    return {**sweep, "results": [_with_energy(row, folder) for row in sweep["results"]]}


def _with_energy(row: ResultRow, folder: Path) -> ResultRow:
    if not row["folder"] or not row["phases"]:
        return row
    try:
        report = Report.from_json(read_json(folder / row["folder"] / REPORT))
        events = pd.read_parquet(folder / row["folder"] / EVENTS, columns=list(_COLUMNS))
    except (OSError, ValueError, KeyError):
        return row
    energies = dict(measure_programs(report, events))
    phases = dict(row["phases"])
    for phase, summary in phases.items():
        default = {program["arm"]: program["cell"] for program in summary["programs"] if program["is_default"]}
        programs: list[ProgramSummary] = []
        for program in summary["programs"]:
            energy = energies.get((phase, program["arm"], program["cell"]))
            if energy is not None:
                program = {**program, "energy": energy}
                if option_of(program["cell"]):
                    at = folder / row["folder"] / program["arm"] / phase
                    program["same_program"] = is_same_program(at / program["cell"], at / default[program["arm"]])
            programs.append(program)
        phases[phase] = {**summary, "programs": programs}
    return {**row, "phases": phases}


def measure_programs(report: Report, events: pd.DataFrame) -> Iterator[tuple[tuple[str, str, str], EnergySummary]]:
    """(phase, arm, cell) and the energy of each arm's default program, and of those with other compiler options.

    events: those of the run folder's table, of all its programs.
    """
    modelled = events[events["source"].astype(str).eq("modelled")]
    groups = {key: rows for key, rows in modelled.groupby(["phase", "arm", "cell"], observed=True)}
    for phase, contents in report.phases.items():
        for arm, programs in contents.arms.items():
            options = (program for cell, program in programs.controls.items() if option_of(cell))
            for program in (programs.default, *options):
                rows = groups.get((phase, arm, program.cell))
                if program.energy and program.timing and rows is not None and report.energy_model:
                    yield (phase, arm, program.cell), _summarize(program, program.timing, rows, report)


def is_same_program(left: Path, right: Path) -> bool:
    """Whether two folders of programs hold the same one: all but names, metadata and source lines.

    False where one cannot be read.
    """
    try:
        first, second = (read_bytes(folder / HLO) for folder in (left, right))
        return first == second or _normalize(first) == _normalize(second)
    except (OSError, HloError, UnicodeDecodeError):
        return False


def _normalize(packed: bytes) -> str:
    """The text of a program's computations, instructions named by the order in which their names appear."""
    text = decompress(packed).decode()
    begin = _COMPUTATION.search(text)
    names: dict[str, str] = {}
    bare = _METADATA.sub("", text[begin.start() if begin else 0 :])
    return _NAME.sub(lambda name: names.setdefault(name[0], f"%{len(names)}"), bare)


def _summarize(program: ProgramReport, timing: Timing, events: pd.DataFrame, report: Report) -> EnergySummary:
    energy = program.energy
    assert energy is not None
    step_ns = float(timing.per_step.step_ns or 0)
    chips, low, high = energy.chips, energy.low_by_verdict_j, energy.high_by_verdict_j
    return {
        "step_j": energy.step_j,
        "low_j": energy.low_j,
        "high_j": energy.high_j,
        "per_token_j": energy.per_token_j,
        "low_per_token_j": energy.low_j / energy.tokens,
        "high_per_token_j": energy.high_j / energy.tokens,
        "tokens_per_j": energy.tokens_per_j,
        "tokens_per_s": energy.tokens / step_ns * 1e9,
        "mean_w": energy.mean_w / chips,
        "low_mean_w": energy.low_mean_w / chips,
        "high_mean_w": energy.high_mean_w / chips,
        "peak_w": energy.peak_w / chips,
        "needless_j": energy.by_verdict_j["inflated"] + energy.by_verdict_j["induced"],
        "low_needless_j": low["inflated"] + low["induced"],
        "high_needless_j": high["inflated"] + high["induced"],
        "by_component_j": dict(energy.by_component_j),
        "kernels_ns": time_by_class(events, step_ns=step_ns, device_steps=timing.devices * timing.steps),
        "chips": measure_chips(program, timing, events, report),
    }


def measure_chips(program: ProgramReport, timing: Timing, events: pd.DataFrame, report: Report) -> list[ChipRow]:
    """Of each chip, in the order of its first device: use, bytes that it sends over ICI, watts; means over a step.

    A chip's watts are the modelled energy of its devices' events ÷ the step, and its static power, so that those of all
    chips are the mesh's.  Empty where the report does not say which devices a shown one represents.
    """
    step_s = float(timing.per_step.step_ns or 0) / 1e9
    assert report.energy_model is not None
    rates = list_rates(report.energy_model)
    everybody = tuple(known.id for known in report.mesh.devices)
    by_device: dict[int, tuple[float, float, float]] = {}
    rows = events[events["step"].ge(0)]
    dynamic = event_joules(rows, rates)
    for device in timing.per_device:
        mine = rows["device"].eq(device.device).to_numpy()
        hops = float(rows["ici_byte_hops"].to_numpy()[mine].sum()) / timing.steps
        busy = float(device.compute_ns or 0) / float(device.step_ns or 1)
        watts = float(dynamic[mine].sum()) / timing.steps / step_s
        members = device.members or (everybody if device.stands_for == len(everybody) else ())
        by_device |= dict.fromkeys(members, (busy, hops, watts))
    places: dict[object, list[int]] = {}
    for known in report.mesh.devices:
        places.setdefault(tuple(known.place)[:-1], []).append(known.id)
    if set(by_device) != set(everybody):
        return []
    static = float(rates[COMPONENTS.index(STATIC)])
    rows_of_chips = [_chip([by_device[device] for device in devices], static) for devices in places.values()]
    sent = ici_bytes_by_chip(bytes_sent_by(program.collectives, report.mesh), report.mesh)
    if sent is not None:
        for chip, ici_bytes in zip(rows_of_chips, sent, strict=True):
            chip["ici_bytes"] = ici_bytes
    return rows_of_chips


def _chip(devices: list[tuple[float, float, float]], static_w: float) -> ChipRow:
    busy, hops, watts = zip(*devices, strict=True)
    return {"use": sum(busy) / len(busy), "ici_byte_hops": sum(hops), "watts": sum(watts) + static_w}
