"""A gate for continuous integration: `--fail-if 'torchxla.decode.induced > 1 MB'`."""

import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from compare.contract.row import JudgeError
from compare.report.model.program import DEFAULT_CELL, ProgramReport
from compare.report.model.report import Report

TOTALS = (
    "framework_induced",
    "partitioner_induced",
    "induced",
    "inflated",
    "inherent",
    "common",
    "missing",
    "unserved",
    "wire_bytes",
    "ici_wire_bytes",
    "dcn_wire_bytes",
    "unknown_rows",
    "upper_bound_rows",
)
"""The totals of a report's programs that an expression can name."""
_EXACT = frozenset({"unknown_rows", "upper_bound_rows"})
"""Counts that are always exact."""
_COMPARED = frozenset({"framework_induced", "partitioner_induced", "common"})
"""Totals that compare frameworks."""

_COMPARE: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt}
)
_UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_WORDS = re.compile(
    r"\s*(?P<name>[^\s<>=!]+)\s*(?P<test>>=|<=|==|!=|>|<)\s*(?P<limit>[^\s<>=!]+?)\s*(?P<unit>[kMGT]?B)?\s*"
)
SHAPE = "write [arm.][phase.][cell.]total > number, like framework_induced>0 or torchxla.decode.induced > 1 MB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition that must not hold; an empty arm, phase or cell matches any."""

    text: str
    arm: str
    phase: str
    cell: str
    total: str
    test: str
    limit: float

    def holds(self, low: float, high: float) -> bool | None:
        """Whether it holds for a total from `low` to `high`; `None` where the bounds do not decide it."""
        compare = _COMPARE[self.test]
        answers = {compare(value, self.limit) for value in (low, high)}
        if self.test in ("==", "!=") and low < self.limit < high:
            return None
        return answers.pop() if len(answers) == 1 else None


def read_condition(text: str, *, arms: Collection[str], phases: Collection[str]) -> Condition:
    """Read one expression.  Raises `JudgeError`, one line, that says what was read and what would be right."""
    match = _WORDS.fullmatch(text)
    if not match:
        raise JudgeError(f"cannot read --fail-if {text!r}; {SHAPE}")
    *words, total = match["name"].split(".")
    if total not in TOTALS:
        raise JudgeError(f"--fail-if {text!r}: there is no total {total!r}; choose from {', '.join(TOTALS)}")
    if total in _COMPARED and len(arms) < 2:
        raise JudgeError(f"--fail-if {text!r}: {total} is a comparison of frameworks, and this run is of one")
    arm = words.pop(0) if words and words[0] in arms else ""
    phase = words.pop(0) if words and words[0] in phases else ""
    cell = ".".join(words)
    if cell and not re.fullmatch(r"(?:tpu|cpu)(?:\+.+)?", cell):
        raise JudgeError(
            f"--fail-if {text!r}: {cell!r} is no arm of this run ({', '.join(arms)}), no phase of it "
            f"({', '.join(phases)}) and no cell (tpu, tpu+gspmd …); {SHAPE}"
        )
    try:
        limit = float(match["limit"].replace("_", "")) * _UNITS[match["unit"] or ""]
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise JudgeError(f"--fail-if {text!r}: {match['limit']!r} is no number; {SHAPE}")
    return Condition(text=text, arm=arm, phase=phase, cell=cell, total=total, test=match["test"], limit=limit)


def list_violations(report: Report, conditions: Sequence[Condition]) -> list[str]:
    """One line for each program for which a condition holds or cannot be decided."""
    return [line for condition in conditions for line in _violations(report, condition)]


def _violations(report: Report, condition: Condition) -> Iterator[str]:
    programs = [
        (phase, arm, program)
        for phase, contents in report.phases.items()
        for arm, programs in contents.arms.items()
        for program in programs.compiled
        if _is_about(condition, phase, arm, program)
    ]
    if not programs:
        yield f"--fail-if {condition.text!r}: the run has no such program"
    for phase, arm, program in programs:
        name = f"{report.arms[arm].title} {phase} {program.cell}"
        if line := _violation(condition, program):
            yield f"--fail-if {condition.text!r}: {condition.total} of {name} {line}"


def _is_about(condition: Condition, phase: str, arm: str, program: ProgramReport) -> bool:
    cell = condition.cell or DEFAULT_CELL
    return condition.arm in ("", arm) and condition.phase in ("", phase) and program.cell == cell


def _violation(condition: Condition, program: ProgramReport) -> str:
    """The value for which the condition holds, or why it is unknown; empty where it does not hold."""
    totals = program.totals
    if totals is None:
        return f"is not known: the program is {program.status}"
    value: int | None = getattr(totals, condition.total)
    if value is None:
        return "is not known: frameworks are compared only where two were judged and every row was counted"
    known = condition.total in _EXACT
    low = 0 if totals.upper_bound_rows and not known else value
    high = math.inf if totals.unknown_rows and not known else value
    holds = condition.holds(low, high)
    amount = f"{value:,}" if known else f"{value:,} B a step"
    if holds is None:
        bound = "at least" if high == math.inf else "at most"
        return f"is {bound} {amount}, as far as its collectives could be counted: the condition cannot be decided"
    return f"is {amount}" if holds else ""
