"""Bytes by network: what programs move between slices, apart from what they move within them."""

from collections.abc import Mapping
from typing import Any

from compare.render.programs import programs
from compare.render.units import bytes_text

Report = Mapping[str, Any]

_WORDS = {"dcn": "between slices (dcn)", "ici+dcn": "within slices and between them (ici+dcn)"}


def network_words(row: Mapping[str, Any]) -> str:
    """Of a row of the contract what it talks through, where that is not a slice's own links alone."""
    return _WORDS.get(row.get("network", "ici"), "")


def between_slices(report: Report, phase: str) -> list[str]:
    """One sentence for a phase of programs of several slices; none for those of a single one."""
    if report["mesh"]["slices"] == 1:
        return []
    found = {
        f"{one.title} {one.cell}": one.entry["totals"]["dcn_wire_bytes"]
        for one in programs(report)
        if one.phase == phase and one.judged and "dcn_wire_bytes" in one.entry["totals"]
    }
    if not found:
        return []
    where = f"the {report['mesh']['slices']} slices (dcn)"
    if not any(found.values()):
        return [f"nothing moves between {where}"]
    told = ", ".join(f"{name} {bytes_text(amount)}" for name, amount in found.items())
    return [f"between {where}: {told}; all else within them (ici)"]
