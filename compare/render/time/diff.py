"""The page's comparison of two timelines: where one communicates longer, and what only one of them does."""

import json
from collections.abc import Mapping
from typing import Any

from compare.render.time.timeline_view import told
from compare.render.time.timing_section import GROUPS
from compare.render.units import time_text

Report = Mapping[str, Any]

_MOST = 12
"""Places and collectives that are told one by one."""


def differences(report: Report, phase: str) -> list[dict[str, Any]]:
    """Of a phase: the compared programs as modelled, then each pair that was measured alike."""
    found = report["phases"][phase].get("time_differences", {})
    return [_pair(report, phase, name, one) for name, one in found.items()]


def _pair(report: Report, phase: str, name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    names = {arm: entry["title"] for arm, entry in report["arms"].items()}
    sides = {
        side: {**found[side], "title": names.get(found[side]["arm"], found[side]["arm"])} for side in ("left", "right")
    }
    source = "modelled" if name == "modelled" else "measured"
    labels = dict.fromkeys(told(source, label) for label in found["labels"].values())
    return {
        "left": sides["left"],
        "right": sides["right"],
        "source": _source(report["phases"][phase], found["left"]) if source == "measured" else "; ".join(labels),
        "labels": list(labels) if source == "measured" else [],
        "sentence": _sentence(sides, found["total"]),
        "by_scope": found["by_scope"][:_MOST],
        "more": max(0, len(found["by_scope"]) - _MOST),
        "excess": [_only(row, sides[row["side"]], phase) for row in found["excess"][:_MOST]],
        "more_excess": max(0, len(found["excess"]) - _MOST),
        "notes": [_named(note, sides) for note in found["notes"]],
    }


def _source(phase: Mapping[str, Any], side: Mapping[str, Any]) -> str:
    """`measured on CPU devices`: two labels, each with all that was reduced, are too long to stand first."""
    ran = phase["arms"][side["arm"]]["profiles"].get(side["cell"], {})
    return GROUPS[2] if (ran.get("executed") or {}).get("platform") == "cpu" else GROUPS[0]


def _named(note: str, sides: Mapping[str, Mapping[str, Any]]) -> str:
    """A note of one side, with the program's name for the side's."""
    side, _, words = note.partition(": ")
    return f"{sides[side]['title']} {sides[side]['cell']}: {words}" if side in sides else note


def _sentence(sides: Mapping[str, Mapping[str, Any]], total: Mapping[str, Any]) -> str:
    """`TorchXLA tpu communicates 62.0 ms a step longer than JAX tpu+gspmd, and waits 48.4 ms longer`."""
    left, right = (f"{side['title']} {side['cell']}" for side in sides.values())
    longer, exposed = total["difference_communication_ns"], total["difference_exposed_ns"]
    if longer is None or exposed is None:
        return f"{left} against {right}: times are not known by device"
    if not longer and not exposed:
        return f"{left} and {right} communicate and wait equally long"
    if longer < 0:
        left, right, longer, exposed = right, left, -longer, -exposed
    waits = (
        f"waits {time_text(abs(exposed))} {'longer' if exposed > 0 else 'less'}" if exposed else "waits equally long"
    )
    return f"{right} communicates {time_text(longer)} a step longer than {left}, and {waits}"


def _only(row: Mapping[str, Any], side: Mapping[str, Any], phase: str) -> dict[str, Any]:
    """What one side does and the other does not, and where the strip can show it."""
    show = {"phase": phase, "arm": side["arm"], "cell": side["cell"], "names": [row["collective"]]}
    return {**row, "title": side["title"], "show": json.dumps(show)}
