"""Bytes by network: what programs move between slices, apart from what they move within them."""

from collections.abc import Mapping
from typing import Any

from compare.views.programs import programs
from compare.views.units import bytes_text

Report = Mapping[str, Any]


def between_slices(report: Report, phase: str) -> list[str]:
    """One sentence for a phase of programs of several slices; none for those of a single one."""
    if report["mesh"]["slices"] == 1:
        return []
    told = [
        f"{one.title} {one.cell} {bytes_text(one.entry['totals']['dcn_wire_bytes'])}"
        for one in programs(report)
        if one.phase == phase and one.judged and "dcn_wire_bytes" in one.entry["totals"]
    ]
    slices = report["mesh"]["slices"]
    return [f"between the {slices} slices (dcn): {', '.join(told)}; all else within them (ici)"] * bool(told)
