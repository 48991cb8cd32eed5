"""Exposed time that only one framework's program has, and what a faster network hides of it.

As docs/definitions.md counts bytes: of inflated and induced bytes per scope and axes, what a program has beyond the
least that any framework's has, among programs of the same partitioner.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from compare.simulate.what_if.subjects import Outcome, Subject

SMALL = 1.0
"""Percent of the step: less of framework-induced time no longer matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkInduced:
    """Of one program; ns of a rank's step."""

    cell: str
    """The program that is compared: of the default's partitioner, or of the other framework's."""
    now_ns: float
    twice_ns: float
    """With twice the bandwidth."""
    unlimited_ns: float
    enough: float | None
    """The least factor of bandwidth from which it is less than `SMALL` % of the step; `None` where none is."""


def list_induced(outcomes: Mapping[str, Outcome]) -> dict[str, float]:
    """By framework, ns: outcomes of the compared programs of one phase on one machine."""
    places = [set(outcome.avoidable_ns) for outcome in outcomes.values()]
    common = {
        place: min(outcome.avoidable_ns[place] for outcome in outcomes.values())
        for place in (set.intersection(*places) if places else ())
    }
    return {
        arm: sum(max(ns - common.get(place, 0.0), 0.0) for place, ns in outcome.avoidable_ns.items())
        for arm, outcome in outcomes.items()
    }


def compare_frameworks(
    subjects: Sequence[Subject],
    speed_up: Callable[[Subject, float], Outcome],
    search: Callable[[Callable[[float], bool]], float | None],
    most: float,
) -> dict[tuple[str, str], FrameworkInduced]:
    """By (framework, phase).

    speed_up: a program with so many times the bandwidth.  search: the least factor from which something no longer
    matters.  most: the largest factor.
    """
    rows: dict[tuple[str, str], FrameworkInduced] = {}
    for phase in dict.fromkeys(subject.phase for subject in subjects):
        compared = {each.arm: each.compared for each in subjects if each.phase == phase and each.compared is not None}
        if len(compared) < 2:
            continue

        def outcomes(factor: float, compared: Mapping[str, Subject] = compared) -> dict[str, Outcome]:
            return {arm: speed_up(subject, factor) for arm, subject in compared.items()}

        now, twice, unlimited = (list_induced(outcomes(factor)) for factor in (1.0, 2.0, most))
        for arm, subject in compared.items():

            def matters(factor: float, arm: str = arm) -> bool:
                at_factor = outcomes(factor)
                return 100 * list_induced(at_factor)[arm] >= SMALL * at_factor[arm].step_ns > 0

            rows[arm, phase] = FrameworkInduced(
                cell=subject.cell,
                now_ns=now[arm],
                twice_ns=twice[arm],
                unlimited_ns=unlimited[arm],
                enough=search(matters) if now[arm] else None,
            )
    return rows
