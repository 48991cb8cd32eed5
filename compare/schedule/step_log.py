"""What each class of devices does in one step, in the order of the program's text, loops unrolled."""

from dataclasses import dataclass, field

from compare.hlo.collective import Collective
from compare.schedule.class_collectives import CollectiveCost
from compare.schedule.device_classes import Classes
from compare.timeline.arrays import Floats, Mask


@dataclass(frozen=True, slots=True)
class Compute:
    """Operations of the TensorCore without communication between them, and waits for local copies."""

    ns: Floats
    """Of each class; 0 where it does not run."""
    work: Floats
    """(classes, 3): matrix_flops, vector_ops, memory_bytes."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An execution of a collective, or its start or done."""

    part: str
    """`whole`, `start` or `done`."""
    number: int
    """The same for start and done, and of no other execution; ascending in the order of wholes and starts."""
    row: Collective
    cost: CollectiveCost
    active: Mask
    """The classes that execute it."""


@dataclass(frozen=True, slots=True)
class StepLog:
    """The entries of all classes."""

    classes: Classes
    entries: list[Compute | Exchange] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    """Assumptions of the model, one line each."""

    def compute(self, ns: Floats, work: Floats, active: Mask) -> None:
        """work: (3,), of each active class."""
        self.entries.append(Compute(ns, active[:, None] * work))

    def exchange(self, part: str, number: int, row: Collective, cost: CollectiveCost, active: Mask) -> None:
        self.entries.append(Exchange(part, number, row, cost, active))
