"""Framework-induced bytes: what one arm adds beyond what every arm adds, under the same partitioner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compare.judge.program import extras

Rows = Sequence[Mapping[str, Any]]
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cell:
    """One judged program of an arm: the cell's name, the partitioner that it was compiled under, its rows."""

    name: str
    partitioner: str
    rows: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One arm's extra bytes, in parts that add up: extra = common + framework + partitioner (which can be negative)."""

    cell: str
    """The cell that was compared with the other arms."""
    common: int
    framework_induced: int
    partitioner_induced: int
    """Extra bytes of the default cell beyond those of the compared cell: gone with the other partitioner."""


def compared(arms: Mapping[str, Sequence[Cell]]) -> dict[str, Cell]:
    """For each arm the cell to compare, all of one partitioner: the default cells where those agree.

    Cells come default first.  Empty where fewer than two arms were judged or no partitioner is common to all.
    """
    there = {arm: cells for arm, cells in arms.items() if cells}
    if len(there) < 2:
        return {}
    shared = set.intersection(*({cell.partitioner for cell in cells} for cells in there.values()))
    defaults = [cells[0].partitioner for cells in there.values()]
    choice = next((name for name in sorted(defaults, key=defaults.count, reverse=True) if name in shared), None)
    if choice is None:
        return {}
    return {arm: next(c for c in cells if c.partitioner == choice) for arm, cells in there.items()}


def common_bytes(cells: Mapping[str, Cell]) -> dict[Key, int]:
    """(scope, axes) -> the extra bytes that every arm has."""
    found = [extras(cell.rows) for cell in cells.values()]
    keys = set.intersection(*(set(extra) for extra in found)) if found else set()
    return {key: min(extra[key] for extra in found) for key in sorted(keys)}


def splits(arms: Mapping[str, Sequence[Cell]]) -> dict[str, Split]:
    """For each arm how its extra bytes split; empty where arms cannot be compared, or rows of one cannot be counted."""
    cells = compared(arms)
    if any(row["executions"] is None for cell in cells.values() for row in cell.rows):
        return {}
    common = sum(common_bytes(cells).values())
    found = {}
    for arm, cell in cells.items():
        extra = sum(extras(cell.rows).values())
        default = sum(extras(arms[arm][0].rows).values())
        found[arm] = Split(
            cell=cell.name, common=common, framework_induced=extra - common, partitioner_induced=default - extra
        )
    return found
