"""One program of a timeline: its operations, and each of its executions as a step."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from compare.timeline.columns import STEP_COLUMNS
from compare.timeline.errors import TimingError
from compare.timeline.timeline import Timeline, add_overlap

EXECUTED = "nothing marks steps: each execution of"
OUTSIDE = "begin outside all steps, and count in none"
"""Words of notes on steps that are not those of one program."""
_NUMBER = re.compile(r"\(\d+\)$")


def list_programs(timeline: Timeline) -> list[str]:
    """The programs that were executed, the one with the most time first."""
    runs = timeline.executions
    if not len(runs):
        return []
    sums = runs.groupby(runs["module"].astype(str))["duration_ns"].sum()
    return [str(name) for name in sums.sort_values(ascending=False, kind="stable").index if name]


def bare_names(programs: Sequence[str]) -> dict[str, str]:
    """Program -> its name without its number, `jit_f` of `jit_f(17)`, where no other has that name."""
    bare = [_NUMBER.sub("", name) for name in programs]
    return {name: short if bare.count(short) == 1 else name for name, short in zip(programs, bare, strict=True)}


def find_program(timeline: Timeline, word: str) -> str:
    """The program of this name, with or without its number.

    `TimingError`, which names all, where there is none or several.
    """
    programs = list_programs(timeline)
    found = [name for name in programs if word in (name, _NUMBER.sub("", name))]
    if len(found) == 1:
        return found[0]
    names = ", ".join((found or list(bare_names(programs).values()))[:20]) or "none"
    why = f"{len(found)} programs of the name {word!r}" if found else f"no program {word!r}"
    raise TimingError(f"the profile has {why}; name one of: {names}")


def select_program(timeline: Timeline, program: str) -> Timeline:
    """Its operations alone; each of its executions is a step."""
    runs = timeline.executions[timeline.executions["module"].eq(program)].sort_values("start_ns")
    numbers = {"step": runs.groupby("device").cumcount()}
    steps = pd.DataFrame({name: numbers.get(name, runs.get(name)) for name in STEP_COLUMNS}).astype(STEP_COLUMNS)
    events = timeline.events[timeline.events["program"].eq(program)]
    asides = timeline.asides
    return replace(
        timeline,
        events=add_overlap(events, steps),
        asides=asides[asides["program"].eq(program)] if len(asides) else pd.DataFrame(),
        steps=steps,
        executions=runs,
        step_program=program,
        notes=tuple(note for note in timeline.notes if not note.startswith(EXECUTED) and OUTSIDE not in note),
    )
