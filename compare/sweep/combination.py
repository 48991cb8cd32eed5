"""One case of a sweep, possible or not."""

from dataclasses import dataclass

from meshes.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One model on one mesh, by their names in the request."""

    model: str
    mesh: str
    case: Case | None = None
    refused: str = ""
    """Why the case is impossible, one line."""
