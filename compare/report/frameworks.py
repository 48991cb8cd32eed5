"""Framework-induced bytes: what one arm adds beyond what every arm adds, under the same partitioner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compare.report.rows import extras

Rows = Sequence[Mapping[str, Any]]
Key = tuple[str, str]


PREFERRED = "gspmd"
"""Where every arm was compiled under each partitioner, and their own differ: no program had to be rewritten for it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One judged program of an arm: the cell's name, the partitioner that it was compiled under, its rows."""

    name: str
    partitioner: str
    rows: Rows
    alike: bool = True
    """Whether it differs from the arm's default in nothing but the partitioner."""


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
    pairs = by_partitioner(there)
    defaults = [cells[0].partitioner for cells in there.values()]
    ordered = sorted(pairs, key=lambda name: (-defaults.count(name), name != PREFERRED, name))
    return pairs[ordered[0]] if ordered else {}


def by_partitioner(arms: Mapping[str, Sequence[Cell]]) -> dict[str, dict[str, Cell]]:
    """Partitioner -> for each arm its cell of that partitioner; those that every arm was compiled under.

    Empty where fewer than two arms were judged.
    """
    own: dict[str, dict[str, Cell]] = {arm: {} for arm, cells in arms.items() if cells}
    for arm, found in own.items():
        for cell in arms[arm]:
            if cell.alike:
                found.setdefault(cell.partitioner, cell)
    shared = set.intersection(*(set(found) for found in own.values())) if len(own) > 1 else set()
    return {name: {arm: found[name] for arm, found in own.items()} for name in sorted(shared)}


def common_bytes(cells: Mapping[str, Cell]) -> dict[Key, int]:
    """(scope, axes) -> the extra bytes that every arm has."""
    found = [extras(cell.rows) for cell in cells.values()]
    keys = set.intersection(*(set(extra) for extra in found)) if found else set()
    return {key: min(extra[key] for extra in found) for key in sorted(keys)}


def splits(arms: Mapping[str, Sequence[Cell]]) -> dict[str, Split]:
    """For each arm how its extra bytes split; empty where arms cannot be compared, or rows of one cannot be counted."""
    return splits_of(compared(arms), defaults={arm: cells[0] for arm, cells in arms.items() if cells})


def splits_of(cells: Mapping[str, Cell], *, defaults: Mapping[str, Cell]) -> dict[str, Split]:
    """The same of these cells, one of each arm."""
    if any(row["executions"] is None for cell in cells.values() for row in cell.rows):
        return {}
    common = sum(common_bytes(cells).values())
    found = {}
    for arm, cell in cells.items():
        extra = sum(extras(cell.rows).values())
        default = sum(extras(defaults[arm].rows).values())
        found[arm] = Split(
            cell=cell.name, common=common, framework_induced=extra - common, partitioner_induced=default - extra
        )
    return found


def pairs(arms: Mapping[str, Sequence[Cell]]) -> list[dict[str, Any]]:
    """What is common and what each framework's under each partitioner that all arms were compiled under.

    The first is the pair that the totals are of.  `framework_induced` is None where rows can't be counted.
    """
    defaults, chosen = {arm: cells[0] for arm, cells in arms.items() if cells}, compared(arms)
    told = []
    for partitioner, cells in by_partitioner(arms).items():
        parts = splits_of(cells, defaults=defaults)
        told.append({
            "partitioner": partitioner,
            "cells": {arm: cell.name for arm, cell in cells.items()},
            "chosen": cells == chosen,
            "common": next((part.common for part in parts.values()), None),
            "framework_induced": {arm: parts[arm].framework_induced if parts else None for arm in cells},
        })  # fmt: skip
    return sorted(told, key=lambda pair: not pair["chosen"])
