"""The headline of time: the avoidable exposed communication of each step, and why one step is the longer."""

from collections.abc import Sequence

from compare.render.time.timing_section import ProgramTiming, labels, timings
from compare.render.units import time_text
from compare.report.model.report import Report

_ALIKE = 0.01
"""Steps differ that differ by more than this part of the longer one; of a difference, less than this is left out."""


def time_sentence(report: Report) -> str:
    """Of the default programs, the arm with the most avoidable wait first; then why its steps are longer or shorter.

    Empty where no program has times by verdict.
    """
    found = [one for phase in report.phases for one in timings(report, phase) if one.default]
    told = [one for one in found if one.avoidable_ns is not None]
    if not told:
        return ""
    first, *others = sorted(dict.fromkeys(one.arm for one in told), key=lambda arm: _length(told, arm), reverse=True)
    label = " and ".join(labels(told))
    label = f"{label[0].upper()}{label[1:]}"
    longer = _against([one for one in told if one.arm == first], [one for one in told if one.arm != first])
    if not any(one.avoidable_ns for one in told):
        return f"{label}: no step has avoidable exposed communication.{longer}"
    own = [one for one in told if one.arm == first]
    words = " and ".join(f"{_part(one)} {one.phase} step" for one in own)
    sentence = f"{label}: {own[0].title} spends {words} in avoidable exposed communication"
    rest = "; ".join(_short([one for one in told if one.arm == arm]) for arm in others)
    return f"{sentence} ({rest}).{longer}" if rest else f"{sentence}."


def _length(told: Sequence[ProgramTiming], arm: str) -> tuple[float, float]:
    """Of an arm's steps together: what they wait in vain, and all."""
    own = [one for one in told if one.arm == arm]
    return sum(one.avoidable_ns or 0 for one in own), sum(one.times.step_ns or 0 for one in own)


def _part(one: ProgramTiming) -> str:
    """`72.0 ms of a 488 ms`."""
    return f"{time_text(one.avoidable_ns)} of a {time_text(one.times.step_ns)}"


def _short(own: list[ProgramTiming]) -> str:
    """`JAX: 23.6 ms of 267 ms and 212 µs of 24.9 ms`."""
    parts = [f"{time_text(one.avoidable_ns)} of {time_text(one.times.step_ns)}" for one in own]
    return f"{own[0].title}: {' and '.join(parts)}"


def _against(own: Sequence[ProgramTiming], others: Sequence[ProgramTiming]) -> str:
    """` TorchXLA's prefill step is 221 ms longer than JAX's (173 ms more compute, 48.4 ms more exposed).`

    For communication is not all that makes a step long.  Empty where there are not two arms, or steps are alike.
    """
    if len({one.arm for one in others}) != 1:
        return ""
    told: list[str] = []
    for one, other in ((one, other) for one in own for other in others if one.phase == other.phase):
        mine, its = one.times.step_ns or 0, other.times.step_ns or 0
        if abs(mine - its) > _ALIKE * max(mine, its):
            words = f"{time_text(abs(mine - its))} {'longer' if mine > its else 'shorter'}"
            step, than = f"{one.phase} step", f" than {other.title}'s"
            whose = f"its {step} {words}" if told else f"{one.title}'s {step} is {words}{than}"
            told.append(f"{whose} ({_parts(one, other, mine - its)})")
    return f" {', '.join(told)}." if told else ""


def _parts(one: ProgramTiming, other: ProgramTiming, by: float) -> str:
    """`173 ms more compute, 48.4 ms more exposed communication`, what explains most of `by` first."""
    parts = (
        ((one.times.compute_ns or 0) - (other.times.compute_ns or 0), "compute"),
        ((one.times.exposed_ns or 0) - (other.times.exposed_ns or 0), "exposed communication"),
        (one.idle_ns - other.idle_ns, "idle"),
    )
    return ", ".join(
        f"{time_text(abs(part))} {'more' if part > 0 else 'less'} {name}"
        for part, name in sorted(parts, key=lambda found: -found[0] * by)
        if abs(part) > _ALIKE * abs(by)
    )
