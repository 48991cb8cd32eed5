"""What is told of a cell: where it is while it is made, and how it ended."""

from dataclasses import dataclass
from pathlib import Path

from meshes.case import Case

NOT_INSTALLED = "not-installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Where one cell is.  Told at each change, and about ten times a second while its worker runs."""

    arm: str
    phase: str
    cell: str
    step: str
    """`lower`, `rewrite`, `install`, `compile`, `profile` or `execute`."""
    stage: str
    """`start`, a worker's own word (`import`, `trace`, …), or how the step ended: `done`, `cached`, a status."""
    seconds: float
    """Since the step's process started."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one cell ended, and where its results are."""

    arm: str
    phase: str
    cell: str
    status: str
    """`ok failed refused crashed timeout not-installed`, or `not offered`: a control that cannot be, and says why."""
    error: str = ""
    """One line."""
    step: str = ""
    """The step that did not go well."""
    program: Path | None = None
    """Folder with program.mlirbc and about.json."""
    rewritten: Path | None = None
    """The same of a program that was said to another partitioner before the compile."""
    compiled: Path | None = None
    """Folder with optimized.hlo.gz and compiled.json."""
    profile: Path | None = None
    """Folder with trace/ and about.json of a program that was run; whoever takes it owns it."""
    executed: Case | None = None
    """Of a program that is run, the case that it is run for."""
    cached: tuple[str, ...] = ()
    """Steps whose results were in the cache."""
    stderr: tuple[str, ...] = ()
    """The last lines of the worker that did not go well."""
