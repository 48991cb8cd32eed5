"""The engines that can run the cases of a sweep, by name."""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from compare.sweep.engines import local, ray
from compare.sweep.engines.local import CaseOutcome, CaseTask, Notify


class Engine(Protocol):
    """Runs tasks, `at_once` at a time (None: as many as it has room for), and yields each as it ends.

    scratch: a local folder for the run folders.  Closing the generator early kills the running tasks.
    """

    def __call__(
        self, tasks: Sequence[CaseTask], /, *, at_once: int | None, scratch: Path, notify: Notify
    ) -> Generator[tuple[CaseTask, CaseOutcome], None, None]: ...


ENGINES: Mapping[str, Engine] = MappingProxyType({"local": local.run_cases, "ray": ray.run_cases})
