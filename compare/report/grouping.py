"""Rows in groups, and amounts in sums, by a key; keys are in order of first occurrence."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

Row = TypeVar("Row")
Key = TypeVar("Key", bound=Hashable)
Amount = TypeVar("Amount", int, float)


def group_by(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """Key -> its rows, in their order."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def sum_by(amounts: Iterable[tuple[Key, Amount]]) -> dict[Key, Amount]:
    """Key -> the sum of its amounts."""
    sums: dict[Key, Amount] = {}
    for key, amount in amounts:
        sums[key] = sums.get(key, 0) + amount
    return sums


def largest_first(sums: dict[Key, Amount]) -> dict[Key, Amount]:
    """The same sums; equal ones stay in their order."""
    return dict(sorted(sums.items(), key=lambda item: -item[1]))
