"""A gate for continuous integration: `--fail-if 'step > 5 %'`: B is slower than A by more than that."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compare.diff.profiles.difference import ProfilesDifference, ProgramDifference
from compare.diff.profiles.parts import PARTS, STEP, Pair
from compare.timeline.errors import TimingError

_WORDS = re.compile(r"\s*(?:(?P<program>[^\s<>]+)\.)?(?P<part>\w+)\s*>\s*(?P<limit>[\d.]+)\s*(?P<unit>%|[nµum]?s)\s*")
_UNITS = {"ns": 1.0, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9}
_LEAST_SHARE = 0.01
"""Of the time of its profile: without a name a condition is of the programs that take as much."""
_SHAPE = f"write [program.]part > number with %, ns, us, ms or s; parts are {', '.join((STEP, *PARTS))}"


@dataclass(frozen=True, slots=True)
class Condition:
    """What must not hold; an empty program matches each that takes a share of the time."""

    text: str
    program: str
    part: str
    limit: float
    unit: str

    def exceeds(self, pair: Pair) -> bool:
        """Whether B is longer than A by more than the limit; any time is more than a share of none."""
        a, b = (float(amount or 0) for amount in pair)
        if self.unit == "%":
            return b - a > self.limit / 100 * a
        return b - a > self.limit * _UNITS[self.unit]


def read_condition(text: str) -> Condition:
    """`TimingError`, which says what was read and what would be right."""
    match = _WORDS.fullmatch(text)
    if match is None or match["part"] not in (STEP, *PARTS):
        raise TimingError(f"cannot read --fail-if {text!r}; {_SHAPE}")
    try:
        limit = float(match["limit"])
    except ValueError:
        raise TimingError(f"--fail-if {text!r}: {match['limit']!r} is no number; {_SHAPE}") from None
    return Condition(text, match["program"] or "", match["part"], limit, match["unit"])


def list_slower(diff: ProfilesDifference, conditions: Sequence[Condition]) -> list[str]:
    """A line for each program and condition that holds.  `TimingError` where no program has the name."""
    return [line for condition in conditions for line in _slower(diff, condition)]


def _slower(diff: ProfilesDifference, condition: Condition) -> Iterator[str]:
    programs = [program for program in diff.programs if _is_meant(program, condition)]
    if not programs:
        names = ", ".join(program.program for program in diff.programs if None not in program.executions) or "none"
        raise TimingError(f"--fail-if {condition.text!r}: no such program is in both profiles; name one of: {names}")
    for program in programs:
        pair = program.step_ns if condition.part == STEP else program.parts[condition.part]
        if None in pair:
            yield f"--fail-if {condition.text!r}: {condition.part} of {program.program} is not known"
        elif condition.exceeds(pair):
            amounts = f"{pair[0]:,} ns, then {pair[1]:,} ns"
            yield f"--fail-if {condition.text!r}: {condition.part} of {program.program} is {amounts}"


def _is_meant(program: ProgramDifference, condition: Condition) -> bool:
    if None in program.executions:
        return False
    large = max(share or 0 for share in program.share) >= _LEAST_SHARE
    return condition.program == program.program or (not condition.program and large)
