"""Progress events and outcomes of cells."""

from dataclasses import dataclass
from pathlib import Path

from meshes.case import Case

NOT_INSTALLED = "not-installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The progress of one cell; sent at each change, and about ten times a second while its worker runs."""

    arm: str
    phase: str
    cell: str
    step: str
    """`lower`, `rewrite`, `install`, `compile`, `profile` or `execute`."""
    stage: str
    """`start`, a worker's stage (`import`, `trace`, …), or how the step ended: `done`, `cached`, a status."""
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
    """A status of `ProcessEnd` (`ok failed refused crashed timeout`); `not-installed`; or `not offered`: a control that
    does not exist here."""
    error: str = ""
    """One line."""
    step: str = ""
    """The step that failed."""
    program: Path | None = None
    """Folder with program.mlirbc and about.json."""
    rewritten: Path | None = None
    """The same for a program that was translated for another partitioner before the compile."""
    compiled: Path | None = None
    """Folder with optimized.hlo.gz and compiled.json."""
    profile: Path | None = None
    """Folder with trace/ and about.json of an executed program; the consumer moves it."""
    executed: Case | None = None
    """Of an executed program: its case."""
    cached: tuple[str, ...] = ()
    """Steps whose results were in the cache."""
    stderr: tuple[str, ...] = ()
    """The last lines of the worker that failed."""
