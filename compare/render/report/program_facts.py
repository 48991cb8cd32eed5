"""What was found of a program besides its collectives, as rows of a small table."""

from collections.abc import Iterator, Mapping
from typing import Any

from compare.render.units import bytes_text

Rows = list[tuple[str, str]]

NOT_TOLD = ("optimal_s", "optimal_seconds")
"""The compiler's guess of a time: nothing in a report is a time on a TPU."""


def facts(found: Mapping[str, Any], unit: str = "") -> Rows:
    """Name and value of everything in it, what is inside others behind their names; `unit` is that of its numbers."""
    return [(" ".join(names).replace("_", " "), _text(names[-1], value, unit)) for names, value in _leaves(found)]


def _leaves(found: Mapping[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in found.items():
        if name in NOT_TOLD:
            continue
        if isinstance(value, Mapping):
            yield from _leaves(value, (*before, name))
        else:
            yield (*before, name), value


def _text(name: str, value: Any, unit: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_text(name, one, unit) for one in value) or "–"
    if isinstance(value, int | float):
        if "bytes" in name:
            return bytes_text(value)
        words = f"{value:,}" if isinstance(value, int) else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
        return f"{words} {unit}".strip()
    return str(value)
