"""The report of `reports.py` with the times of `timelines.py`, compiled and measured."""

import json
from dataclasses import fields
from functools import cache
from typing import Any

from compare.metrics.alignment.timeline_diff import timeline_diff
from compare.metrics.metrics_section import build_section
from compare.render.time.timeline_view import ProgramTimeline
from compare.report.model.codec import decode, encode
from compare.report.model.mesh import DeviceMesh
from compare.report.model.program import CollectiveRow
from compare.report.model.timing import Side, StepTimes
from tests.compare.render.timelines import LABEL, MEASURED, make_timed

Report = dict[str, Any]
Key = tuple[str, str, str]

SLOWER = {"prefill": 1.0, "decode": 0.04}
"""How long the steps of a phase are, in those of `timelines.py`."""

CONTROLS = {"jax": "tpu+gspmd", "torchxla": "tpu+einsum"}


def make_timing(*, label: str, exposed: dict[str, float | None], **times: float | None) -> Report:
    """A modelled `timing` section as JSON, with nothing in it but these: of the step, and by verdict."""
    step = dict.fromkeys(part.name for part in fields(StepTimes)) | {"by_axes": {}, "by_kind": {}, "by_scope": {}}
    lists = ("notes", "each_step", "collectives", "intervals", "per_device", "stragglers", "messages")
    return {
        "source": "modelled",
        "label": label,
        "devices": 1,
        "steps": 1,
        "unjoined_events": 0,
        "per_step": step | times,
        **dict.fromkeys(lists, ()),
        "by_verdict": {
            name: {"exposed_ns": amount, "communication_ns": None, "wait_ns": None} for name, amount in exposed.items()
        },
        "network": {},
        "volume": {},
        "imbalance": {},
        "matrix": None,
        "pipeline": None,
    }


def make_times(phases: tuple[str, ...] = ("prefill",)) -> dict[Key, ProgramTimeline]:
    """Arm, phase, cell -> its timeline: of the default programs, the controls, and one measured on CPU devices."""
    timelines = {}
    for phase in phases:
        for arm, control in CONTROLS.items():
            label = MEASURED if arm == "jax" else MEASURED.replace("jax", "torch_xla")
            for cell, source, words in (
                ("tpu", "modelled", LABEL),
                (control, "modelled", LABEL),
                ("cpu", "measured", label),
            ):
                slower = SLOWER[phase] * (10 if source == "measured" else 1)
                timelines[arm, phase, cell] = make_timed(
                    arm, phase=phase, cell=cell, source=source, label=words, slower=slower
                )
    return timelines


def add_times(report: Report) -> Report:
    """Each program of the report with its `timing`, and a measured one in each arm."""
    timed = json.loads(_add_times(json.dumps(report)))
    report.clear()
    report.update(timed)
    return report


@cache
def _add_times(text: str) -> str:
    """Of reports as JSON: most tests ask for the same one."""
    report: Report = json.loads(text)
    times = make_times(tuple(report["phases"]))
    for phase, entry in report["phases"].items():
        for arm, default in entry["arms"].items():
            cells = list(default.items())
            at = list(default).index("collectives")
            measured = dict(
                [
                    *cells[:at],
                    *{
                        "cell": "cpu",
                        "case": report["case"],
                        "label": times[arm, phase, "cpu"].timeline.label,
                        "executed": {"platform": "cpu", "num_devices": 8, "runtime": arm},
                    }.items(),
                    *cells[at:],
                ]
            )
            del measured["controls"], measured["profiles"]
            default["profiles"] = {"cpu": measured}
            for item in (default, *default["controls"].values(), measured):
                if item["status"] == "ok":
                    item["timing"] = _section(times[arm, phase, item["cell"]], item, report)
        entry["time_differences"] = {
            "modelled": _difference(entry, times, phase, {"jax": "tpu+gspmd", "torchxla": "tpu"}),
            "cpu": _difference(entry, times, phase, {"jax": "cpu", "torchxla": "cpu"}),
        }
    return json.dumps(report)


def _difference(
    entry: dict[str, Any], timelines: dict[Key, ProgramTimeline], phase: str, cells: dict[str, str]
) -> dict[str, Any]:
    """As a report holds it: right less left."""
    left, right = (timelines[arm, phase, cell].timeline for arm, cell in cells.items())
    rows = [_rows(entry["arms"][arm]) for arm in cells]
    sides = [Side(arm=arm, cell=cell) for arm, cell in cells.items()]
    return encode(timeline_diff(left, right, left_rows=rows[0], right_rows=rows[1]).to_report(*sides, most=20))


def _rows(entry: dict[str, Any]) -> list[CollectiveRow]:
    return [decode(CollectiveRow, row) for row in entry["collectives"]]


def _section(timed: ProgramTimeline, entry: dict[str, Any], report: Report) -> dict[str, Any]:
    speed = None if timed.timeline.source == "measured" else 45e9
    mesh = decode(DeviceMesh, report["mesh"])
    return encode(build_section(timed.timeline, rows=_rows(entry), mesh=mesh, microbatches=4, link_bytes_per_s=speed))
