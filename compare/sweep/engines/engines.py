"""The engines that can make the cases of a sweep.  The one place that names them."""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from compare.sweep.engines import local, ray
from compare.sweep.engines.local import CaseOutcome, Notify, Task


class Engine(Protocol):
    """Makes tasks, `at_once` at a time (None: as many as it has room for), and yields each as it ends.

    scratch: a folder here, in which it leaves the run folders.  Left early, it ends what runs.
    """

    def __call__(
        self, tasks: Sequence[Task], /, *, at_once: int | None, scratch: Path, notify: Notify
    ) -> Generator[tuple[Task, CaseOutcome], None, None]: ...


ENGINES: Mapping[str, Engine] = MappingProxyType({"local": local.run_cases, "ray": ray.run_cases})
