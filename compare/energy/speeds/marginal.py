"""Whether a faster part of the machine would save a step's energy: its marginal efficiency."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compare.energy.coefficients import DCN, ICI, MEMORY
from compare.energy.core_speed import COMPUTE, Marginal, measure_marginal
from compare.energy.speeds.subjects import SpeedSubject, Subjects
from compare.render.units import joules_text, time_text

_TITLES = {COMPUTE: "compute", MEMORY: "memory", ICI: "ICI", DCN: "DCN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Margins:
    """One program."""

    subject: SpeedSubject
    parts: tuple[Marginal, ...]


def measure_run(subjects: Subjects) -> list[Margins]:
    """Of every program, of the parts that it uses."""
    return [
        Margins(subject=each, parts=tuple(measure_marginal(each.workload, subjects.chip, subjects.voltage)))
        for each in subjects.programs
    ]


def list_marginal_lines(subjects: Subjects, margins: Sequence[Margins]) -> Iterator[str]:
    """A table for each program; above 0 a faster part saves energy."""
    yield f"{subjects.basis}; {subjects.voltage_words}"
    for each in margins:
        yield f"{each.subject.title} {each.subject.phase}: energy saved per speed, % per %"
        yield f"{'':>10}{'efficiency':>12}{'range':>20}{'binds':>12}{'spends':>12}"
        for part in each.parts:
            ends = f"{part.range.low:+.3f} to {part.range.high:+.3f}"
            yield (
                f"{_TITLES[part.part]:>10}{part.efficiency:>+12.3f}{ends:>20}{time_text(part.bound_ns):>12}"
                f"{joules_text(part.dynamic_j):>12}{_verdict(part)}"
            )


def _verdict(part: Marginal) -> str:
    if part.range.low > 0:
        return "   faster saves energy"
    return "   faster costs energy" if part.range.high < 0 else "   either, within the range"


def marginal_json(margins: Sequence[Margins]) -> list[dict[str, object]]:
    """The same as data."""
    return [
        {
            "arm": each.subject.arm,
            "phase": each.subject.phase,
            "cell": each.subject.cell,
            "parts": {
                part.part: {
                    "efficiency": part.efficiency,
                    "low": part.range.low,
                    "high": part.range.high,
                    "bound_ns": part.bound_ns,
                    "dynamic_j": part.dynamic_j,
                }
                for part in each.parts
            },
        }
        for each in margins
    ]
