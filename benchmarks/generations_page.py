"""The page of generations and meshes: a table, where generations differ, what failed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from compare.render.units import bytes_text
from meshes.devices.generations import GENERATIONS

NEARLY = 1.01
"""Ratios that differ by less are alike."""


class Extra(NamedTuple):
    """What a program moves beyond its plan, of one cause at one place."""

    cause: str
    kind: str
    axes: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramExtras:
    """One program, judged."""

    ratio: float
    """Emitted over inherent bytes."""
    extras: Mapping[Extra, int]
    unserved_bytes: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One mesh on one generation: its programs by arm and phase, `None` where there is none, and why."""

    mesh: str
    generation: str
    programs: Mapping[tuple[str, str], ProgramExtras | None]
    failures: tuple[str, ...]


def page(entries: Sequence[Entry], *, models: str) -> str:
    """The page as markdown."""
    by = {(entry.mesh, entry.generation): entry for entry in entries}
    meshes = list(dict.fromkeys(entry.mesh for entry in entries))
    rows = [f"| `{mesh}` | " + " | ".join(cell(by[mesh, name]) for name in GENERATIONS) + " |" for mesh in meshes]
    failures = [f"* `{entry.mesh}` on {entry.generation}: {text}" for entry in entries for text in entry.failures]
    parts = [
        _HEAD.format(models=models),
        f"| mesh | {' | '.join(GENERATIONS)} |",
        "|---" * (len(GENERATIONS) + 1) + "|",
        *rows,
        "\n## Where generations differ\n",
        *([line for mesh in meshes for line in _differences([by[mesh, name] for name in GENERATIONS])] or ["Nowhere."]),
        "\n## What failed\n",
        *(failures or ["Nothing."]),
        "\n## Whose plan was not served in full\n",
        *(list(_unserved(entries)) or ["None's."]),
        "",
    ]
    return "\n".join(parts)


_HEAD = """# Generations and meshes

Made by `python -m benchmarks.generations`: both arms, each compiled for a slice of eight devices of every generation
that libtpu knows (v4 and tpu7x have two devices a chip), for one chip, and for two slices of four devices.  Models
{models}.  Each cell is what the program emits over what its plan needs, JAX in prefill / decode, then TorchXLA with the
attention call of its documentation; 1.00 is the plan, `–` a program that failed.
"""


def cell(entry: Entry) -> str:
    """`1.00 / 1.00, 2.11 / 114`: arm after arm, phase after phase."""
    ratios = {key: _ratio(program) for key, program in entry.programs.items()}
    arms = dict.fromkeys(arm for arm, _ in ratios)
    return ", ".join(" / ".join(text for (name, _), text in ratios.items() if name == arm) for arm in arms) or "–"


def _ratio(program: ProgramExtras | None) -> str:
    if program is None:
        return "–"
    return f"{program.ratio:.2f}" if program.ratio < 10 else f"{program.ratio:.0f}"


def _differences(entries: Sequence[Entry]) -> Iterator[str]:
    """Of one mesh: the generations on which a program emits more than on the best, and what."""
    for key in entries[0].programs:
        by_generation = {entry.generation: program for entry in entries if (program := entry.programs.get(key))}
        best = min(by_generation, key=lambda name: by_generation[name].ratio, default="")
        for name, program in by_generation.items():
            if program.ratio > NEARLY * by_generation[best].ratio:
                more = _more(program.extras, by_generation[best].extras)
                what = f"`{entries[0].mesh}`, {' '.join(key)}"
                ratios = f"{_ratio(program)} on {name}, {_ratio(by_generation[best])} on {best}"
                yield f"* {what}: {ratios}; more there: {more}"


def _more(extras: Mapping[Extra, int], others: Mapping[Extra, int]) -> str:
    """The largest of what one program has beyond another: cause, collective, scopes, bytes."""
    more: dict[Extra, int] = {}
    scopes: dict[Extra, list[str]] = {}
    for extra, amount in extras.items():
        if (left := amount - others.get(extra, 0)) > 0:
            key = extra._replace(scope="")
            more[key] = more.get(key, 0) + left
            scopes.setdefault(key, []).append(extra.scope)
    if not more:
        return "nothing of a cause that is not there"
    most = max(more, key=lambda key: more[key])
    places = ", ".join(f"`{scope}`" for scope in dict.fromkeys(scopes[most]))
    return f"{most.kind} over {most.axes} in {places} ({most.cause}, {bytes_text(more[most])})"


def _unserved(entries: Sequence[Entry]) -> Iterator[str]:
    for entry in entries:
        for key, program in entry.programs.items():
            if program and program.unserved_bytes:
                yield f"* `{entry.mesh}` on {entry.generation}, {' '.join(key)}: {bytes_text(program.unserved_bytes)}"
