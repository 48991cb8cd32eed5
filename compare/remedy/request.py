"""What a search for remedies is asked."""

from dataclasses import dataclass

from compare.run.arms import Arm
from meshes.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One search: a case, arms, and the most programs to compile."""

    case: Case
    arms: tuple[Arm, ...]
    most: int
    timeout_s: float
