"""The headline of time: the avoidable exposed communication of each step, and why one step is longer."""

from collections.abc import Sequence

from compare.render.time.timing_section import ProgramTiming, labels, timings
from compare.render.units import capitalize_first, time_text
from compare.report.model.report import Report

_ALIKE = 0.01
"""Fraction of the longer step below which steps count as equal; smaller parts of a difference are left out."""


def time_sentence(report: Report) -> str:
    """The default programs' avoidable exposed communication, the worst arm first; then why its steps are longer.

    Empty where no program has times by verdict.
    """
    defaults = [timing for phase in report.phases for timing in timings(report, phase) if timing.default]
    known = [timing for timing in defaults if timing.avoidable_ns is not None]
    if not known:
        return ""
    first_arm, *others = sorted(
        dict.fromkeys(timing.arm for timing in known), key=lambda arm: _sort_key(known, arm), reverse=True
    )
    label = capitalize_first(" and ".join(labels(known)))
    longer = _compare_steps(
        [timing for timing in known if timing.arm == first_arm], [timing for timing in known if timing.arm != first_arm]
    )
    if not any(timing.avoidable_ns for timing in known):
        return f"{label}: no step has avoidable exposed communication.{longer}"
    of_first = [timing for timing in known if timing.arm == first_arm]
    words = " and ".join(f"{_avoidable_words(timing)} {timing.phase} step" for timing in of_first)
    sentence = f"{label}: {of_first[0].title} spends {words} in avoidable exposed communication"
    rest = "; ".join(_others_words([timing for timing in known if timing.arm == arm]) for arm in others)
    return f"{sentence} ({rest}).{longer}" if rest else f"{sentence}."


def _sort_key(timings: Sequence[ProgramTiming], arm: str) -> tuple[float, float]:
    """Sort key of an arm: (avoidable ns, step ns), summed over its steps."""
    of_arm = [timing for timing in timings if timing.arm == arm]
    return sum(timing.avoidable_ns or 0 for timing in of_arm), sum(timing.times.step_ns or 0 for timing in of_arm)


def _avoidable_words(timing: ProgramTiming) -> str:
    """`72.0 ms of a 488 ms`."""
    return f"{time_text(timing.avoidable_ns)} of a {time_text(timing.times.step_ns)}"


def _others_words(timings: list[ProgramTiming]) -> str:
    """`JAX: 23.6 ms of 267 ms and 212 µs of 24.9 ms`."""
    parts = [f"{time_text(timing.avoidable_ns)} of {time_text(timing.times.step_ns)}" for timing in timings]
    return f"{timings[0].title}: {' and '.join(parts)}"


def _compare_steps(timings: Sequence[ProgramTiming], others: Sequence[ProgramTiming]) -> str:
    """` TorchXLA's prefill step is 221 ms longer than JAX's (173 ms more compute, 48.4 ms more exposed communication).`

    Empty unless there are two arms, or where steps are equally long.
    """
    if len({timing.arm for timing in others}) != 1:
        return ""
    comparisons: list[str] = []
    for timing, other in ((timing, other) for timing in timings for other in others if timing.phase == other.phase):
        step_ns, other_ns = timing.times.step_ns or 0, other.times.step_ns or 0
        if abs(step_ns - other_ns) > _ALIKE * max(step_ns, other_ns):
            words = f"{time_text(abs(step_ns - other_ns))} {'longer' if step_ns > other_ns else 'shorter'}"
            step, than = f"{timing.phase} step", f" than {other.title}'s"
            whose = f"its {step} {words}" if comparisons else f"{timing.title}'s {step} is {words}{than}"
            comparisons.append(f"{whose} ({_part_differences(timing, other, step_ns - other_ns)})")
    return f" {', '.join(comparisons)}." if comparisons else ""


def _part_differences(timing: ProgramTiming, other: ProgramTiming, difference_ns: float) -> str:
    """`173 ms more compute, 48.4 ms more exposed communication`, the main part of the difference first."""
    parts = (
        ((timing.times.compute_ns or 0) - (other.times.compute_ns or 0), "compute"),
        ((timing.times.exposed_ns or 0) - (other.times.exposed_ns or 0), "exposed communication"),
        ((timing.times.copy_wait_ns or 0) - (other.times.copy_wait_ns or 0), "waiting for local copies"),
        (timing.idle_ns - other.idle_ns, "idle"),
    )
    return ", ".join(
        f"{time_text(abs(part))} {'more' if part > 0 else 'less'} {name}"
        for part, name in sorted(parts, key=lambda item: -item[0] * difference_ns)
        if abs(part) > _ALIKE * abs(difference_ns)
    )
