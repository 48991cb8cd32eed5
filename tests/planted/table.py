"""The table of planted defects."""

from collections.abc import Mapping

from tests.planted import by_hand, harmless, missing, pins, scattered, statistics, steps, weights
from tests.planted.defect import Defect

DEFECTS: tuple[Defect, ...] = (
    *weights.DEFECTS,
    *pins.DEFECTS,
    *missing.DEFECTS,
    *scattered.DEFECTS,
    *statistics.DEFECTS,
    *steps.DEFECTS,
    *by_hand.DEFECTS,
    *harmless.DEFECTS,
)

CHAPTERS: Mapping[str, str] = {
    "Weights": "A weight is split on another dim than the plan's, made whole, or glued to another.",
    "Pins": "A pin says something else than the plan, or makes whole what the plan keeps split.",
    "Missing pins": "A pin is left out, and the partitioner finds another way.",
    "The stream": "The residual stream is split over tp, as sequence parallelism does, where the plan keeps it whole.",
    "Statistics": "A maximum or a mean over the axis of a row, in its scope, beside what the row moves.",
    "Sums, ticks and hops": "The step does more than is asked for, or sends it in wider elements.",
    "By hand": "In JAX's step of style `explicit`, which sends the plan and nothing else, one collective is another.",
    "Another call": "The same mathematics by another function.",
    "Harmless": "The program moves exactly what it moved before.",
}


def changes() -> tuple[tuple[Defect, str], ...]:
    """Each change of one arm: a defect and the arm."""
    return tuple((defect, arm) for defect in DEFECTS for arm in defect.sites)
