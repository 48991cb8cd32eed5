"""The engines that can run the cases of a sweep, by name."""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from compare.sweep.engines.local import CaseOutcome, CaseTask, Notify

Ended = Generator[tuple["CaseTask", "CaseOutcome"], None, None]


class Engine(Protocol):
    """Runs tasks, `at_once` at a time (None: as many as it has room for), and yields each as it ends.

    scratch: a local folder for the run folders.  Closing the generator early kills the running tasks.
    """

    def __call__(
        self, tasks: Sequence["CaseTask"], /, *, at_once: int | None, scratch: Path, notify: "Notify"
    ) -> Ended: ...


def _run_here(tasks: Sequence["CaseTask"], /, *, at_once: int | None, scratch: Path, notify: "Notify") -> Ended:
    from compare.sweep.engines.local import run_cases

    return run_cases(tasks, at_once=at_once, scratch=scratch, notify=notify)


def _run_on_cluster(tasks: Sequence["CaseTask"], /, *, at_once: int | None, scratch: Path, notify: "Notify") -> Ended:
    from compare.sweep.engines.ray import run_cases

    return run_cases(tasks, at_once=at_once, scratch=scratch, notify=notify)


ENGINES: Mapping[str, Engine] = MappingProxyType({"local": _run_here, "ray": _run_on_cluster})
"""Each is loaded when it runs: a command line is read without them."""
